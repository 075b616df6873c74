"""The attack on words: the numbers inside them, their length, how they begin and end; and types and other forms."""

from __future__ import annotations

from audit.attacks.protocol import Exploration
from audit.attacks.reading import FORMS, MANY
from audit.events import Statistic, cell

__all__ = ["candidates"]


def candidates(exploration: Exploration) -> tuple[Statistic, ...]:
    """Return one statistic for each feature of words, and one for the words themselves if they repeat."""
    if exploration.reading is None:
        return ()
    columns = exploration.reading.columns
    inside = range(exploration.reading.n_parts, len(columns))
    own = [number for number in sorted(exploration.words) if number not in inside]
    if inside:
        own = [n for n in own if columns[n].source.startswith(FORMS) or len(columns[n].words or ()) <= MANY]
    return tuple(cell(number) for number in (*inside, *own))
