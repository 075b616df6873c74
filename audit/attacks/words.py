"""The attack on words: the numbers inside them, their length, how they begin and end; and types and other forms."""

from __future__ import annotations

from audit.attacks.protocol import WORDS, Exploration
from audit.attacks.reading import FORMS
from audit.events import Statistic, cell

__all__ = ["Words"]


class Words:
    """What is inside words of so many values that they do not repeat; where they do, the words themselves."""

    name = WORDS
    automatic = True

    def candidates(self, exploration: Exploration) -> tuple[Statistic, ...]:
        """Return one statistic for each thing that is read of words, if outputs hold any."""
        if exploration.reading is None:
            return ()
        columns = exploration.reading.columns
        inside = range(exploration.reading.n_parts, len(columns))
        words = sorted(exploration.words)
        forms = [number for number in words if columns[number].source.startswith(FORMS) and number not in inside]
        return tuple(cell(number) for number in ([*inside, *forms] if inside else words))
