"""The choice of a few events. Each selection rule is scored by cross-validation: three folds choose, the fourth scores.

The scores show which statistic is best, and how cautious a rule should be: with few runs, a cautious rule avoids events
that look good by chance, and a bold one finds a rare, strong outcome.
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

__all__ = ["Candidate", "Criterion", "SelectionRule", "distinct", "rate_candidates", "select_events"]

Floats = NDArray[np.float64]

LARGER = 0.25  # share of the error probability for a rare event if no other event should show a loss
LEAST_HITS = 9  # fewest hits of an outcome that is not due to chance
CLEARLY = 0.5  # standard errors by which a later candidate must exceed an earlier one
BOLDLY = 1.0  # the same for a less cautious candidate


class SelectionRule(NamedTuple):
    """How to choose an event on one table."""

    caution: float  # standard errors that are subtracted from rates of selection runs
    rare: bool = False  # whether ratings omit the margin of counting runs, which favors frequent events
    sides: int = 2  # tails of a score that an event may cover


SELECTION_RULES = (
    SelectionRule(5.0),
    SelectionRule(2.0),
    SelectionRule(1.0, rare=True, sides=1),
    SelectionRule(1.0, rare=True),
)


class Criterion(Protocol):
    """Rates events by the bound to expect from them on the counting runs."""

    def rated(self, table: Table, weights: Floats, rule: SelectionRule) -> Floats:
        """Return ratings of the events of a table, (draws, events), by weights of the parts of runs, (draws, PARTS)."""

    def counts(self, table: Table, weights: Floats, rule: SelectionRule, by: Floats) -> tuple[Floats, ...]:
        """Return counts of these events, each of shape (draws, events); single values are in the order `by` weights."""

    def promised(self, counts: tuple[float, ...], table: Table, *, rare: bool = False) -> tuple[float, float]:
        """Return the bound to expect from events, given counts that did not choose them, and its standard error."""

    def rare(self, hits: float, runs: float) -> tuple[float, ...]:
        """Return the counts of an outcome that occurs on one database only."""

    def event(self, table: Table, rating: Floats, best: int, rule: SelectionRule) -> Event:
        """Return the event at a place among the ratings."""


@dataclass(frozen=True)
class Candidate:
    """A selection rule on one table, and the cross-validated bound of the events that it chooses."""

    table: Table
    rule: SelectionRule
    promise: float
    error: float

    def event(self, criterion: Criterion) -> Event:
        """Return the event that the rule chooses on all runs."""
        rating = criterion.rated(self.table, ALL, self.rule)
        best = int(np.argmax(rating[0]))
        if not np.isfinite(rating[0, best]):
            return empty_event(self.table.statistic)
        return criterion.event(self.table, rating, best, self.rule)


def empty_event(statistic: Statistic) -> Event:
    """Return an event that matches no output."""
    return Event(statistic, ThresholdRule(-math.inf, math.inf))


def rate_candidates(tables: Sequence[Table], criterion: Criterion) -> list[Candidate]:
    """Return a candidate for each table and each of `SELECTION_RULES`, in this order, scored by cross-validation."""
    candidates = []
    for table in tables:
        first = SELECTION_RULES[0]
        counts = {sides: criterion.counts(table, HELD, first._replace(sides=sides), FOLDS) for sides in (1, 2)}
        for rule in SELECTION_RULES:
            best = criterion.rated(table, FOLDS, rule)
            chosen = np.arange(len(best)), best.argmax(axis=1)
            finite = np.isfinite(best[chosen])
            totals = tuple(float(part[chosen][finite].sum()) for part in counts[rule.sides])
            candidates.append(Candidate(table, rule, *criterion.promised(totals, table, rare=rule.rare)))
    return candidates


def select_events(candidates: Sequence[Candidate], criterion: Criterion) -> list[Event]:
    """Return the best event, the best rare one and the best of the most cautious rule; none if no score varies."""
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
    """Return events without those whose description equals that of an earlier one."""
    first: dict[str, Event] = {}
    for event in events:
        first.setdefault(str(event), event)
    return list(first.values())


def _hits(rival: Candidate, tables: Sequence[Table], criterion: Criterion) -> int:
    """Return the fewest hits with which an outcome of one database only would clearly exceed a rival's bound."""
    # Three of four folds must choose it (hence 0.75), whatever the rival's table is. If an entry has many values, only
    # a part of the runs counts it: more hits are then needed among all runs.
    plain = max(tables, key=lambda table: table.runs)
    entries = [table.runs for table in tables if table.family == "cell" and table.statistic.entry is not None]
    limit, runs, unstated = rival.promise + CLEARLY * rival.error, plain.runs, replace(plain, stated=None)
    for hits in np.unique(np.geomspace(LEAST_HITS, max(runs / 2, LEAST_HITS), 64).astype(int)).tolist():
        counts = criterion.rare(min(0.75 * hits, runs / 2), runs)
        if criterion.promised(counts, unstated, rare=True)[0] > limit:
            break
    return math.ceil(int(hits) * math.sqrt(runs / min(entries, default=runs)))


def best_of(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate with the highest bound; later ones must exceed it by a margin, rare ones only if bolder."""
    best: Candidate | None = None
    for candidate in candidates:
        if best is None or candidate.promise > 0 >= best.promise:
            best = candidate
            continue
        clearly = BOLDLY if candidate.rule.caution < best.rule.caution else 0.0 if candidate.rule.rare else CLEARLY
        if candidate.promise > best.promise + clearly * candidate.error:
            best = candidate
    return best
