"""Scores of selection runs as tables: how many runs of each part lie at and between thresholds, on either database."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.attacks.protocol import Family
from audit.events import CellRule, Side, Statistic, ThresholdRule
from audit.exact.roots import brentq

__all__ = ["ALL", "FOLDS", "HELD", "PARTS", "Table", "TailCounts", "tabulated"]

Floats = NDArray[np.float64]
Rule = ThresholdRule | CellRule
Cells = Floats | tuple[Floats, Floats] | None

PARTS = 16  # parts of the runs; folds leave parts out, and resamples repeat them
LEVELS = 96  # thresholds tried on a score
OUTER = 64  # largest and smallest values, among which wide gaps are searched
PAIR = 2  # occurrences of a value of a continuous score that may be chance
ATOMS = 16  # most repeated values of a score that counts as continuous
VALUES = 4096  # distinct scores up to which each single value may be an event
STEEPEST = 30.0  # largest log-likelihood ratio of a fit: beyond it, no guess is wrong
DOUBT = 5.0  # standard errors by which runs must contradict a stated log-likelihood ratio to reject it
ALL = np.ones((1, PARTS))  # weights of the parts: each once
FOLDS: Floats = 1 - np.repeat(np.eye(4), PARTS // 4, axis=1)  # weights for training: one fold left out
HELD: Floats = 1.0 - FOLDS  # weights for testing: the fold that was left out


class TailCounts(NamedTuple):
    """Runs with scores up to each threshold and from each on, shape (draws, m + 1), with one empty tail each."""

    x_below: Floats
    x_above: Floats
    y_below: Floats
    y_above: Floats


@dataclass(frozen=True)
class Table:
    """Counts of one score: at and between thresholds, or of each of few values."""

    statistic: Statistic
    family: Family
    values: Floats  # thresholds, shape (m,)
    x: Floats  # runs of each part at and between them, shape (PARTS, 2 m + 1); of few values at them, (PARTS, m)
    y: Floats
    stated: tuple[Floats, Floats] | None = None  # expected counts of these runs on x, on y by a log-likelihood ratio
    cells: Cells = None  # few single values; or many, and how much each favors y
    unscored_runs: tuple[Floats, Floats] | None = None  # runs of each part on `x` and on `y` that have no score

    @property
    def runs(self) -> float:
        """Number of runs on both databases together."""
        return float(sum(part[0, 0] for part in self.total(ALL)))

    def total(self, weights: Floats) -> list[Floats]:
        """Return the weighted numbers of runs on `x` and on `y`, shape (draws, 1)."""
        total = [side.sum(axis=1) for side in (self.x, self.y)]
        if self.unscored_runs is not None:
            total = [side + none for side, none in zip(total, self.unscored_runs, strict=True)]
        return [(weights @ side)[:, None] for side in total]

    def tail_counts(self, weights: Floats, *, by: Floats | None = None, stated: bool = False) -> TailCounts:
        """Return the weighted counts beyond each threshold; weights of the parts have shape (draws, PARTS)."""
        # Single values are ordered by counts with the weights `by`, if given. If all runs count, each fold is counted
        # in the order that the other folds give.
        if weights is ALL and isinstance(self.cells, np.ndarray):
            return TailCounts(*(part.sum(axis=0, keepdims=True) for part in self.tail_counts(HELD, by=FOLDS)))
        sums: list[Floats] = []
        sides = self.stated if stated and self.stated is not None else (self.x, self.y)
        order = self._order(weights if by is None else by) if isinstance(self.cells, np.ndarray) else None
        for side in sides:
            counts = weights @ side
            if order is not None:
                counts = np.take_along_axis(counts, order, axis=1)
            below = np.zeros((len(counts), counts.shape[1] + 1))
            np.cumsum(counts, axis=1, out=below[:, 1:])
            upto, before = (below, below) if order is not None else (below[:, ::2], below[:, 1::2])
            sums += [upto, below[:, -1:] - before]
        return TailCounts(*sums)

    def _order(self, weights: Floats) -> NDArray[np.intp]:
        lean = _lean(weights @ self.x, weights @ self.y, *self.total(weights))
        return np.argsort(lean, axis=1, kind="stable")

    def rule(self, lower: int, upper: int, above: Side) -> Rule:
        """Return the rule of two thresholds: scores up to place `lower`, and scores from place `upper` on."""
        if isinstance(self.cells, np.ndarray):
            order = self._order(ALL)[0]
            low_side, high_side = (np.sort(self.cells[order[part]]) for part in (slice(lower), slice(upper, None)))
            return CellRule(high_side, low_side) if above == "y" else CellRule(low_side, high_side)
        low = float(self.values[lower - 1]) if lower > 0 else -math.inf
        high = float(self.values[upper]) if upper < self.values.size else math.inf
        rule = ThresholdRule(low, high, above)
        if self.cells is None:
            return rule
        guess = rule.guess(self.cells[1])
        return CellRule(self.cells[0][guess > 0], self.cells[0][guess < 0])


def tabulated(
    statistics: Sequence[Statistic], scores_x: Floats, scores_y: Floats, families: Sequence[Family]
) -> list[Table]:
    """Return one table per family for each score that varies; scores have shape (runs, k) on each database."""
    tables: list[Table] = []
    for column, statistic in enumerate(statistics):
        x, y = scores_x[:, column], scores_y[:, column]
        if min(x.size, y.size) and (np.any(x != x[0]) or np.any(y != x[0])):
            kinds = families if statistic.labels is None else set(families) - {"threshold"}
            own = [table for family in kinds if (table := _table(family, statistic, x, y)) is not None]
            tables += own[:1] if own and own[0].stated is not None else own  # the order of a log-ratio is known
    return tables


def _table(family: Family, statistic: Statistic, x: Floats, y: Floats) -> Table | None:
    if family == "cell":
        return _of_cells(statistic, x, y)
    by = _factor(statistic, x, y)
    return _of_scores(statistic, family, x, y, by if by and _is_log_ratio(by * x, by * y, DOUBT) else 0.0)


def _factor(statistic: Statistic, x: Floats, y: Floats) -> float:
    """Return the log-likelihood ratio of a score of 1: stated, or fitted by maximum likelihood; 0 if there is none."""
    if not statistic.proportional:
        return float(statistic.log_ratio)
    largest = float(max(np.abs(x).max(), np.abs(y).max()))

    def slope(by: float) -> float:
        """Return the derivative of the log-likelihood of the runs' databases by the factor, which decreases."""
        return float(np.sum(y * special.expit(-by * y)) - np.sum(x * special.expit(by * x)))

    steepest = STEEPEST / largest
    if slope(0.0) <= 0:
        return 0.0
    return steepest if slope(steepest) >= 0 else brentq(slope, 0.0, steepest, rtol=1e-6)


def _is_log_ratio(x: Floats, y: Floats, pessimism: float) -> bool:
    """Tell whether guesses by the sign of the scores are right as often as a log-likelihood ratio predicts."""
    stated = special.expit(np.abs(np.concatenate([x[x != 0], y[y != 0]])))
    right = np.sum(x < 0) + np.sum(y > 0)
    return bool(abs(right - stated.sum()) <= pessimism * math.sqrt(float(np.sum(stated * (1 - stated)))) + 1)


def _of_cells(statistic: Statistic, x: Floats, y: Floats) -> Table | None:
    """Return counts of single values; if they are many, one half of the runs orders them and the other is counted."""
    values, times = np.unique(np.concatenate([x, y]), return_counts=True)
    if values.size > VALUES or np.sum(times > PAIR) <= ATOMS < LEVELS < values.size:
        values = values[times > PAIR]  # a continuous score may still have atoms
    if values.size == 0:
        return None
    if values.size <= LEVELS:
        parts = [_parts(side) for side in (x, y)]
        in_values = [np.isin(side, values) for side in (x, y)]
        on_x, on_y = (
            _counted(np.searchsorted(values, side[which]), part[which], values.size)
            for side, part, which in zip((x, y), parts, in_values, strict=True)
        )
        return Table(
            statistic, "cell", values, on_x, on_y, cells=values, unscored_runs=_unscored_runs(parts, in_values)
        )
    half_x, half_y = x.size // 2, y.size // 2
    values, times = np.unique(np.concatenate([x[:half_x], y[:half_y]]), return_counts=True)
    if values.size > VALUES:
        values = values[times > 1]
    if not 1 <= values.size <= VALUES:
        return None

    def places(scores: Floats) -> NDArray[np.intp]:
        place = np.minimum(np.searchsorted(values, scores), values.size - 1)
        return np.where(values[place] == scores, place, values.size)

    counts = [np.bincount(places(side), minlength=values.size + 1).astype(float) for side in (x[:half_x], y[:half_y])]
    lean = _lean(counts[0], counts[1], np.array([half_x]), np.array([half_y]))
    lean[-1] = np.nan  # for values not seen
    return _of_scores(statistic, "cell", lean[places(x[half_x:])], lean[places(y[half_y:])], cells=(values, lean[:-1]))


def _lean(on_x: Floats, on_y: Floats, runs_x: NDArray[Any], runs_y: NDArray[Any]) -> Floats:
    """Return how much values favor `y`: the log-ratio of their rates, shrunk toward 0 by its standard error."""
    ratio = np.log((on_y + 0.5) / (on_x + 0.5)) - np.log(np.maximum(runs_y, 1) / np.maximum(runs_x, 1))
    return np.asarray(np.sign(ratio) * np.maximum(np.abs(ratio) - np.sqrt(1 / (on_x + 0.5) + 1 / (on_y + 0.5)), 0.0))


def _unscored_runs(parts: Sequence[NDArray[np.intp]], scored: Sequence[NDArray[np.bool_]]) -> tuple[Floats, Floats]:
    """Return how many runs of each part have no score."""
    x, y = (np.bincount(part[~which], minlength=PARTS) for part, which in zip(parts, scored, strict=True))
    return x.astype(float), y.astype(float)


def _parts(side: Floats) -> NDArray[np.intp]:
    return np.arange(side.size) % PARTS


def _counted(places: NDArray[np.intp], parts: NDArray[np.intp], width: int, weights: Floats | None = None) -> Floats:
    return np.bincount(parts * width + places, weights, PARTS * width).reshape(PARTS, width).astype(float)


def _of_scores(
    statistic: Statistic, family: Family, x: Floats, y: Floats, by: float = 0.0, cells: Cells = None
) -> Table:
    parts, unscored_runs = [_parts(side) for side in (x, y)], None
    if cells is not None:
        scored = [~np.isnan(side) for side in (x, y)]
        unscored_runs = _unscored_runs(parts, scored)
        x, y = x[scored[0]], y[scored[1]]
        parts = [part[which] for part, which in zip(parts, scored, strict=True)]
    values = grid(np.concatenate([x, y]), LEVELS)
    places = []
    for side in (x, y):
        before = np.searchsorted(values, side)
        places.append(2 * before + (values[np.minimum(before, values.size - 1)] == side))  # at a threshold, or between
    width, stated = 2 * values.size + 1, None
    on_x, on_y = (_counted(*at, width) for at in zip(places, parts, strict=True))
    if by:
        at, both = (np.concatenate(places), np.concatenate(parts)), by * np.concatenate([x, y])
        stated = _counted(*at, width, special.expit(-both)), _counted(*at, width, special.expit(both))
    return Table(statistic, family, values, on_x, on_y, stated, cells, unscored_runs)


def grid(scores: Floats, most: int) -> Floats:
    """Return all distinct scores, or `most` quantiles: denser in both tails, where losses hide, and in wide gaps."""
    values = np.unique(scores)
    if values.size <= most:
        return values
    tail = np.geomspace(2 / scores.size, 2 / most, most // 8)
    levels = np.concatenate([tail, np.linspace(0, 1, most - 2 * tail.size), 1 - tail])
    thresholds = np.unique(np.quantile(scores, np.sort(levels), method="nearest"))
    return -_beside_gap(-_beside_gap(thresholds, values)[::-1], -values[::-1])[::-1]


def _beside_gap(thresholds: Floats, values: Floats) -> Floats:
    """Return thresholds with one in a wide gap among the largest values; those just before it would win by chance."""
    outer, middle = values[-OUTER:], values[values.size // 2]
    with np.errstate(over="ignore"):
        wide = np.diff(outer) >= outer[:-1] - middle
    if not wide.any():
        return thresholds
    at = int(np.flatnonzero(wide)[0])
    inside = outer[at] / 2 + outer[at + 1] / 2
    return np.unique(np.append(thresholds[(thresholds < outer[0]) | (thresholds > outer[at])], inside))
