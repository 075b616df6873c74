"""The choice of a few events. Each selection rule is scored by cross-validation: three folds choose, the fourth scores.

That says which statistic is best, and how cautious a choice should be: few runs tell the better of many events only
with caution, and a rare, strong outcome only without.
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

__all__ = ["Candidate", "Criterion", "Scores", "SelectionRule", "distinct", "rate_candidates", "select_events"]

Floats = NDArray[np.float64]

LARGER = 0.25  # share of the error probability for a rare event where no other promises a loss
LEAST_HITS = 9  # of an outcome that is no matter of chance
CLEARLY = 0.5  # standard errors by which a later choice must be better than one before it
BOLDLY = 1.0  # the same of a less cautious one


class SelectionRule(NamedTuple):
    """How to choose an event on one table."""

    caution: float  # standard errors that are taken off what selection runs show
    rare: bool = False  # whether events are rated by how surely they tell, however seldom
    sides: int = 2  # of a score, on which an event may lie


SELECTION_RULES = (
    SelectionRule(5.0),
    SelectionRule(2.0),
    SelectionRule(1.0, rare=True, sides=1),
    SelectionRule(1.0, rare=True),
)


class Scores(NamedTuple):
    """Ratings of events in several draws of the runs, and what was counted of each, shape (draws, events)."""

    rating: Floats
    counts: tuple[Floats, ...]


class Criterion(Protocol):
    """Rates events by the bound that they promise on runs that have yet to be made."""

    def scores(self, table: Table, weights: Floats, rule: SelectionRule, *, by: Floats | None = None) -> Scores:
        """Return ratings of all events of a table, parts of the runs weighted, shape (draws, PARTS)."""

    def promised(self, counts: tuple[float, ...], table: Table, *, rare: bool = False) -> tuple[float, float]:
        """Return what events promise that were not chosen on these counts, and its standard error."""

    def rare(self, hits: float, runs: float) -> tuple[float, ...]:
        """Return the counts of an outcome that one database alone gives."""

    def event(self, table: Table, scores: Scores, best: int, rule: SelectionRule) -> Event:
        """Return the event at a place among the scores."""


@dataclass(frozen=True)
class Candidate:
    """A selection rule on one table, and what the events that it chooses promise."""

    table: Table
    rule: SelectionRule
    promise: float
    error: float

    def event(self, criterion: Criterion) -> Event:
        """Return the event that all of the runs choose."""
        scores = criterion.scores(self.table, ALL, self.rule)
        best = int(np.argmax(scores.rating[0]))
        if not np.isfinite(scores.rating[0, best]):
            return empty_event(self.table.statistic)
        return criterion.event(self.table, scores, best, self.rule)


def empty_event(statistic: Statistic) -> Event:
    """Return an event that matches no output."""
    return Event(statistic, ThresholdRule(-math.inf, math.inf))


def rate_candidates(tables: Sequence[Table], criterion: Criterion) -> list[Candidate]:
    """Return every selection rule on every table, in the order of `SELECTION_RULES` each, with what it promises."""
    candidates = []
    for table in tables:
        counts = criterion.scores(table, HELD, SELECTION_RULES[0], by=FOLDS).counts
        for rule in SELECTION_RULES:
            best = criterion.scores(table, FOLDS, rule).rating
            chosen = np.arange(len(best)), best.argmax(axis=1)
            finite = np.isfinite(best[chosen])
            totals = tuple(float(part[chosen][finite].sum()) for part in counts)
            candidates.append(Candidate(table, rule, *criterion.promised(totals, table, rare=rule.rare)))
    return candidates


def select_events(candidates: Sequence[Candidate], criterion: Criterion) -> list[Event]:
    """Return the event that promises most, the best rare one and the most cautious one; none if no score varies."""
    rare, usual = ([one for one in candidates if one.rule.rare is which] for which in (True, False))
    groups = (usual, rare, candidates[:: len(SELECTION_RULES)])
    best = [candidate for group in groups if (candidate := best_of(group)) is not None]
    if not best:
        return []
    main, *others = [candidate.event(criterion) for candidate in best]
    main = replace(main, hits=_hits(best[1], [one.table for one in candidates], criterion))
    if best[0].promise <= 0 < best[1].promise:  # the first will hardly prove anything
        others[0] = replace(others[0], share=LARGER)
    return distinct([main, *others])


def distinct(events: Sequence[Event]) -> list[Event]:
    """Return events without those that say the same as one before them."""
    first: dict[str, Event] = {}
    for event in events:
        first.setdefault(str(event), event)
    return list(first.values())


def _hits(rival: Candidate, tables: Sequence[Table], criterion: Criterion) -> int:
    """Return the fewest runs of an outcome that one database alone gives which promise clearly more than a rival."""
    # Three of four folds have to choose it, whatever the rival's table is. Of an entry of many values it is one among
    # many, and a part of the runs counts it: all of the runs then need more.
    plain = max(tables, key=lambda table: table.runs)
    entries = [table.runs for table in tables if table.family == "cell" and table.statistic.entry is not None]
    limit, runs, unstated = rival.promise + CLEARLY * rival.error, plain.runs, replace(plain, stated=None)
    for hits in np.unique(np.geomspace(LEAST_HITS, max(runs / 2, LEAST_HITS), 64).astype(int)).tolist():
        counts = criterion.rare(min(0.75 * hits, runs / 2), runs)
        if criterion.promised(counts, unstated, rare=True)[0] > limit:
            break
    return math.ceil(int(hits) * math.sqrt(runs / min(entries, default=runs)))


def best_of(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the first candidate that promises most, where bolder ones must do so clearly; of rare ones the highest."""
    best: Candidate | None = None
    for candidate in candidates:
        if best is None or candidate.promise > 0 >= best.promise:
            best = candidate
            continue
        clearly = BOLDLY if candidate.rule.caution < best.rule.caution else 0.0 if candidate.rule.rare else CLEARLY
        if candidate.promise > best.promise + clearly * candidate.error:
            best = candidate
    return best
