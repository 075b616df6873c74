"""Before an accusation: whether the event tells the databases apart in new processes that see `y` first, too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy  # loads its parts where they are used, some of which take long
from numpy.typing import NDArray

from audit.events import Guesses
from audit.measure.choice import Choice
from audit.results import AuditResult
from audit.sampling.anew import runs_anew
from audit.sampling.runs import GivenRuns
from audit.sampling.streams import seed_sequence
from audit.values import raised

__all__ = ["check_again"]

FALSE = 1e-6  # probability with which a real leak is refused, at most
RUNS = 50  # on either database in a new process, and no more than a quarter of those that counted if fewer do
SHARE, WRONG = 1 / 4, 1 / 20  # of the runs that guess right at least, and of these that guess wrong at most
AGREE = 1 / 4  # probability with which two values that are drawn for the databases come out as before, at most
SECONDS = 60  # that new processes may take, and as long as the audit took
KEPT = "A number, cache or format that the process keeps for each data set looks like this and may be no loss: "
UNKNOWN = f"The event was seen in one process, which saw x first. {KEPT}run plaudit again with the databases swapped, "
UNKNOWN += "in a new process."
GIVEN = f"The event tells the databases apart in every run. {KEPT}record outputs anew, in a process that sees y first."


def check_again(result: AuditResult, chosen: Choice) -> AuditResult:
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
    before, root = chosen.runs.before, seed_sequence(result.seed_entropy)
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
