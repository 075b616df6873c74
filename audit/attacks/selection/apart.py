"""Scores apart from all others, beyond a wide gap or repeated where none are: rare, and yet no choice among many."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.attacks.attack import Family
from audit.events import CellRule, Event, Statistic, ThresholdRule

__all__ = ["or_apart"]

Floats = NDArray[np.float64]
Rule = ThresholdRule | CellRule

RARE = 0.01  # share of the scores that may be set apart from all others
SEEN = 3  # times that a value repeats: chance makes pairs of many scores
FEWEST = 4  # right guesses, all there are, beyond one for each side or value: chance does so once in 16 times


def or_apart(
    event: Event,
    statistics: Sequence[Statistic],
    scores_x: Floats,
    scores_y: Floats,
    families: Sequence[Family],
    *,
    counting: int,
    confidence: float,
    forgiven: float,
) -> Event:
    """Return the event, or scores that are set apart if they promise twice as much on the runs that chose it."""
    share = counting / (len(scores_x) + len(scores_y))

    def promised(right: int, guessed: int) -> float:
        """Log-odds of the exact limit of as many right guesses in the runs that count, beyond what is forgiven."""
        limit = (
            float(special.betaincinv(right * share, (guessed - right) * share + 1, 1 - confidence)) if right else 0.0
        )
        lost = min(forgiven * counting / (guessed * share), 1.0)
        return float(special.logit(min(max((limit - lost) / max(1 - lost, 1e-9), 1e-15), 1 - 1e-15)))

    column = statistics.index(event.statistic)
    on_x, on_y = event.rule.guess(scores_x[:, column]), event.rule.guess(scores_y[:, column])
    guessed = int(np.count_nonzero(on_x) + np.count_nonzero(on_y))
    best = promised(int(np.sum(on_x < 0) + np.sum(on_y > 0)), guessed) if guessed else 0.0
    for number, statistic in enumerate(statistics):
        found = _confirmed(scores_x[:, number], scores_y[:, number], families)
        if found is not None and promised(found[0], found[0]) > 2 * max(best, 0.0):
            best, event = promised(found[0], found[0]), Event(statistic, found[1])
    return event


def _confirmed(x: Floats, y: Floats, families: Sequence[Family]) -> tuple[int, Rule] | None:
    """Return a rule of scores that are set apart, and how often it guesses, if each half of the runs confirms it.

    What one half of the runs sets apart must speak for the same database in the other, without exception.
    """
    parts = [(x[which], y[which]) for which in (slice(0, None, 2), slice(1, None, 2))]
    ways: list[Callable[[Floats, Floats], Rule | None]] = []
    if "threshold" in families:
        ways += [partial(_beyond_gaps, *sides) for sides in ((True, True), (False, True), (True, False))]
    if "cell" in families:
        ways.append(partial(_by_value, _repeated(np.concatenate([x, y]))))
    for propose in ways:
        found = [propose(x, y)]  # mostly none
        found += [propose(*part) for part in parts if found[0] is not None]
        rules = [rule for rule in found if rule is not None]
        if len(rules) < 3:
            continue
        right = wrong = 0
        for rule, other in zip(rules[1:], reversed(parts), strict=True):
            on_x, on_y = map(rule.guess, other)
            right += int(np.sum(on_x < 0) + np.sum(on_y > 0))
            wrong += int(np.sum(on_x > 0) + np.sum(on_y < 0))
        if right - _choices(rules[0]) >= FEWEST and wrong == 0:
            return right, rules[0]
    return None


def _choices(rule: Rule) -> int:
    """Return how many sides or values were first given to a database: as many guesses say nothing."""
    return rule.y.size + rule.x.size if isinstance(rule, CellRule) else 1


def _repeated(scores: Floats) -> Floats:
    """Return the values that are seen several times; none if it is not rare that values repeat."""
    values, seen = np.unique(scores, return_counts=True)
    return values[seen >= SEEN] if seen[seen > 1].sum() <= RARE * scores.size else np.array([])


def _by_value(values: Floats, x: Floats, y: Floats) -> CellRule | None:
    """Return the rule of some values, each for the database on which it is seen more often."""
    if values.size == 0:
        return None
    on_x, on_y = (
        np.bincount(np.searchsorted(values, side[np.isin(side, values)]), minlength=values.size) for side in (x, y)
    )
    return CellRule(values[on_y > on_x], values[on_x > on_y])


def _beyond_gaps(below: bool, above: bool, x: Floats, y: Floats) -> ThresholdRule | None:
    """Return the rule of the scores beyond a gap below, above or on either side, which speaks for most of them."""
    scores = np.concatenate([x, y])
    low = -_gap(-scores) if below else -math.inf
    high = _gap(scores) if above else math.inf
    if (below and low == -math.inf) or (above and high == math.inf):
        return None
    right = np.sum(x <= low) + np.sum(y >= high) >= np.sum(y <= low) + np.sum(x >= high)
    return ThresholdRule(low, high, "y" if right else "x")


def _gap(scores: Floats) -> float:
    """Return the middle of the widest gap below the largest scores, as wide as it is far from the median; else inf."""
    beyond = scores.size - max(2, int(scores.size * RARE)) - 1
    if beyond < 0:
        return math.inf
    parted = np.partition(scores, [scores.size // 2, beyond])
    middle, top = parted[scores.size // 2], np.sort(parted[beyond:])
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        wide = np.where(top[:-1] > middle, np.diff(top) / (top[:-1] - middle), 0.0)
    at = int(wide.argmax())
    return float(top[at] / 2 + top[at + 1] / 2) if wide[at] >= 1 else math.inf
