"""The choice of a few events: what each way to choose promises is told by selection runs that did not choose.

Three of four folds choose a rule and the fourth counts it. That says which statistic is best, and how cautious a choice
should be: few runs tell the better of many rules only with caution, and a rare, strong outcome only without.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from audit.attacks.selection.tables import ALL, FOLDS, HELD, Table
from audit.events import Event, Statistic, ThresholdRule

__all__ = ["WAYS", "Proposal", "Rated", "Rating", "distinct", "proposals", "select_events"]

Floats = NDArray[np.float64]

LARGER = 0.25  # share of the error probability for a rare event where no other promises a loss
LEAST_HITS = 9  # of an outcome that is no matter of chance
CLEARLY = 0.5  # standard errors by which a later choice must be better than one before it
BOLDLY = 1.0  # the same of a less cautious one


class Way(NamedTuple):
    """A way to choose: after so many standard errors, and for how rare an event.

    What is `rare` is rated by how surely it tells, however seldom; on one of the `sides` of a score, or on both.
    """

    caution: float
    rare: bool = False
    sides: int = 2


WAYS = (Way(5.0), Way(2.0), Way(1.0, rare=True, sides=1), Way(1.0, rare=True))


class Rated(NamedTuple):
    """Ratings of rules in several draws of the runs, and what was counted of each, shape (draws, rules)."""

    rating: Floats
    counts: tuple[Floats, ...]


class Rating(Protocol):
    """What rates rules by the bound that they promise on runs that have yet to be made."""

    def rated(self, table: Table, weights: Floats, way: Way, *, by: Floats | None = None) -> Rated:
        """Return ratings of all rules, parts of the runs weighted, shape (draws, PARTS)."""

    def promised(self, counts: tuple[float, ...], table: Table, *, rare: bool = False) -> tuple[float, float]:
        """Return what is promised by rules that were not chosen on these counts, and its standard error."""

    def rare(self, hits: float, runs: float) -> tuple[float, ...]:
        """Return the counts of an outcome that one database alone gives."""

    def event(self, table: Table, rated: Rated, best: int, way: Way) -> Event:
        """Return the event of a rule that was chosen in some way."""


@dataclass(frozen=True)
class Proposal:
    """A way to choose a rule on one table, and what it promises."""

    table: Table
    way: Way
    promise: float
    error: float

    def event(self, rating: Rating) -> Event:
        """Return the event that all of the runs choose."""
        rated = rating.rated(self.table, ALL, self.way)
        best = int(np.argmax(rated.rating[0]))
        return (
            rating.event(self.table, rated, best, self.way)
            if np.isfinite(rated.rating[0, best])
            else never(self.table.statistic)
        )


def never(statistic: Statistic) -> Event:
    """Return the event that never guesses."""
    return Event(statistic, ThresholdRule(-math.inf, math.inf))


def proposals(tables: Sequence[Table], rating: Rating) -> list[Proposal]:
    """Return every way to choose a rule on every table, with what it promises on runs that did not choose.

    Three folds choose a rule and the fourth counts it. Ways of one table stand together, in the order of `WAYS`.
    """
    several = []
    for table in tables:
        counts = rating.rated(table, HELD, WAYS[0], by=FOLDS).counts
        for way in WAYS:
            best = rating.rated(table, FOLDS, way).rating
            chosen = np.arange(len(best)), best.argmax(axis=1)
            finite = np.isfinite(best[chosen])
            totals = tuple(float(of[chosen][finite].sum()) for of in counts)
            several.append(Proposal(table, way, *rating.promised(totals, table, rare=way.rare)))
    return several


def select_events(candidates: Sequence[Proposal], rating: Rating) -> list[Event]:
    """Return the event that promises most, then the best rare one, and the most cautious one; none if no score varies.

    Among equals the first is taken.
    """
    rare, usual = ([proposal for proposal in candidates if proposal.way.rare is which] for which in (True, False))
    ways = (usual, rare, candidates[:: len(WAYS)])
    best = [proposal for some in ways if (proposal := best_of(some)) is not None]
    if not best:
        return []
    main, *others = [proposal.event(rating) for proposal in best]
    main = replace(main, hits=_hits(best[1], [one.table for one in candidates], rating))
    if best[0].promise <= 0 < best[1].promise:  # the first will hardly prove anything
        others[0] = replace(others[0], share=LARGER)
    return distinct([main, *others])


def distinct(events: Sequence[Event]) -> list[Event]:
    """Return events without those that say the same as one before them."""
    names = [str(event) for event in events]
    return [event for place, event in enumerate(events) if names[place] not in names[:place]]


def _hits(rival: Proposal, tables: Sequence[Table], rating: Rating) -> int:
    """Return the fewest runs of an outcome that one database alone gives which promise clearly more than a rival.

    Three of four folds have to choose it, whatever the rival's table is. Of an entry of many values it is one among
    many, and a part of the runs counts it: all of the runs then need more.
    """
    plain = max(tables, key=lambda table: table.runs)
    entries = [table.runs for table in tables if table.family == "cell" and table.statistic.entry is not None]
    limit, runs = rival.promise + CLEARLY * rival.error, plain.runs
    for hits in np.unique(np.geomspace(LEAST_HITS, max(runs / 2, LEAST_HITS), 64).astype(int)).tolist():
        if (
            rating.promised(rating.rare(min(0.75 * hits, runs / 2), runs), replace(plain, stated=None), rare=True)[0]
            > limit
        ):
            break
    return math.ceil(int(hits) * math.sqrt(runs / min(entries, default=runs)))


def best_of(candidates: Sequence[Proposal]) -> Proposal | None:
    """Return the choice that promises most, where later and bolder ones must do so clearly; None if there is none.

    Of rare events the surest is taken.
    """
    best: Proposal | None = None
    for proposal in candidates:
        if best is None or proposal.promise > 0 >= best.promise:
            best = proposal
            continue
        clearly = BOLDLY if proposal.way.caution < best.way.caution else 0.0 if proposal.way.rare else CLEARLY
        if proposal.promise > best.promise + clearly * proposal.error:
            best = proposal
    return best
