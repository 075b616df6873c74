"""Before an accusation: whether the event tells the databases apart in new processes that see `y` first, too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy  # loads its parts where they are used, some of which take long
from numpy.typing import NDArray

from audit.events import Guesses
from audit.io.workers import packed
from audit.measure.choice import Choice
from audit.mechanism import Mechanism
from audit.results import AuditResult
from audit.sampling.anew import runs_anew
from audit.sampling.runs import GivenRuns
from audit.values import raised

__all__ = ["FIRST", "as_before", "check_again", "import_anew"]

FALSE = 1e-6  # probability with which a real leak is refused, at most
RUNS = 50  # on either database in a new process, and no more than a quarter of those that counted if fewer do
SHARE, WRONG = 1 / 4, 1 / 20  # of the runs that guess right at least, and of these that guess wrong at most
AGREE = 1 / 4  # probability with which two values that are drawn for the databases come out as before, at most
SECONDS = 60  # that new processes may take, and as long as the audit took
KEPT = "A number, cache or format that the process keeps for each data set looks like this and may be no loss: "
UNKNOWN = f"The event was seen in one process, which saw x first. {KEPT}run plaudit again with the databases swapped, "
UNKNOWN += "in a new process."
GIVEN = f"The event tells the databases apart in every run. {KEPT}record outputs anew, in a process that sees y first."

FIRST: ContextVar[bytes | None] = ContextVar("a mechanism before several audits; empty: none is tried", default=None)
_seen: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()  # mechanisms as they were before their first audit here
_imported: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()  # mechanisms that new processes import, too


@dataclass(frozen=True)
class _Named:
    """What is pickled as its place in a module."""

    name: str

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return resolve_name, (self.name,)


def import_anew(mechanism: Mechanism, name: str) -> None:
    """Let new processes import a mechanism by module:object; what it drew at import is then drawn anew."""
    with suppress(TypeError):  # of which no list can be kept
        _imported[mechanism] = packed(_Named(name))[1]


def as_before(mechanism: Mechanism) -> tuple[bytes, ...]:
    """Return a mechanism pickled before it has seen any data; of one that was audited before, as it was then.

    Nothing is returned of one that cannot be pickled.
    """
    if (first := FIRST.get()) is not None:
        return (first,) if first else ()
    with suppress(TypeError):
        if mechanism in _imported:
            return (_imported[mechanism],)
    try:
        now = packed(mechanism)[1]
        return tuple(dict.fromkeys([now, _seen.setdefault(mechanism, now)]))
    except TypeError:  # of which no list can be kept
        return (now,)
    except ValueError:
        return ()


def check_again(
    result: AuditResult, chosen: Choice, root: np.random.SeedSequence, before: Sequence[bytes] = ()
) -> AuditResult:
    """Refuse a violation that rests on what a process keeps for each data set; add a note if that cannot be told.

    Only events that hardly ever guess wrong are tried, as those of values that never vary. A value drawn at random
    comes out as before in all new processes with at most the error probability of the audit.
    """
    if result.measured <= result.claim or result.support is not None:
        return result
    place = [(str(one.event), one.counts) for one in chosen.events].index((result.event, result.counts))
    event, here = chosen.events[place].event, _tally(chosen.guessed[place])
    right, wrong, fewest = here[[0, 1], [0, 2]].sum(), here[[0, 1], [2, 0]].sum(), int(here.sum(axis=1).min())
    if isinstance(chosen.runs, GivenRuns):
        return replace(result, notes=(*result.notes, GIVEN)) if right == here.sum() else result
    if right < SHARE * here.sum() or wrong > WRONG * right:
        return result
    times = max(1, math.ceil(math.log(1 - result.confidence) / math.log(AGREE)))
    level = FALSE / (4 * times)
    telling = next((runs for runs in range(1, RUNS) if level * math.comb(fewest + runs, runs) > 10), RUNS)
    runs, data = max(min(RUNS, fewest // 4), telling), ((chosen.runs.pair.x, chosen.runs.pair.y), chosen.runs.kind)
    read, unknown = chosen.runs.read or (lambda outputs: outputs), not before
    for mechanism in before:
        answers = runs_anew(mechanism, data, runs, root, times, SECONDS + result.seconds)
        others = [one for one in answers if _differs(here, _tally([event.guess(read(side)) for side in one]), level)]
        # What the program has set up may be missing there; what a mechanism was before may be another on purpose.
        missing = any(raised(side).all() for one in others for side in one) or mechanism != before[0]
        unknown = unknown or not answers or (bool(others) and missing)
        if others and not missing:
            raise ValueError(
                f"runs must not depend on what the process keeps: {event.statistic.name} tells the databases apart in "
                "this process, which saw x first, but not in a new one that sees y first: make ids, caches and formats "
                "anew in each run, or leave them out"
            )
    return replace(result, notes=(*result.notes, UNKNOWN)) if unknown else result


def _tally(guesses: Sequence[Guesses]) -> NDArray[np.intp]:
    """Return how many runs on either database are guessed to be of `x`, of neither and of `y`, shape (2, 3)."""
    return np.array([np.bincount(side + 1, minlength=3) for side in guesses])


def _differs(here: NDArray[np.intp], there: NDArray[np.intp], level: float) -> bool:
    """Tell whether right guesses are fewer in new processes, or wrong ones more, than chance explains at a level."""
    sides, guesses = np.array([0, 1, 0, 1]), np.array([0, 2, 2, 0])  # the right ones first
    both, hits = here + there, there[sides, guesses]
    law = scipy.stats.hypergeom(both.sum(axis=1)[sides], both[sides, guesses], there.sum(axis=1)[sides])
    return bool((np.where([1, 1, 0, 0], law.cdf(hits), law.sf(hits - 1)) < level).any())
