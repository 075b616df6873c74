"""Choose a rule on selection runs: each is rated by the bound that it promises on fresh ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from audit.attacks.attack import Family
from audit.attacks.selection.apart import or_apart
from audit.attacks.selection.stated import factor, is_log_ratio, stated_accuracy
from audit.bounds.renyi import renyi_variational_lower
from audit.events import CellRule, Event, Statistic, ThresholdRule, WeightRule

__all__ = ["Family", "select_event", "select_region", "select_threshold", "select_weights"]

Floats = NDArray[np.float64]
Rated = tuple[float, float, ThresholdRule]  # what is promised, the standard error of that, and by which rule
# From scores and runs on x and y, pessimism, and how much of a log-likelihood ratio a score of 1 is: 0 if none.
Choose = Callable[[Floats, Floats, tuple[int, int], float, float], Rated | None]

GRID = 256  # thresholds tried on either side
VALUES = 4096  # distinct scores up to which each single value may be an event
PESSIMISM = 5.0  # standard errors taken off a rule's accuracy on the runs that chose it
HELD_OUT_PESSIMISM = 3.0  # the same for sets of values that other runs have chosen and that promise twice as much
WIDENED = 0.5  # standard errors of the difference within which a wider region is no worse
ORDERS = (1.0, 1.25, 1.5, 2.0, 4.0)  # of the Renyi divergence that may be bounded
CLIPS = (1.0, 2.0, 3.0, 4.0, 6.0, 9.0)  # largest log-likelihood ratio that is told apart
INFINITE = 1e100  # what stands for infinity in a mean, so that its square is finite
CLEARLY = 0.5  # standard errors by which a later statistic must be better than a simpler one before it
BINS = (8, 32, 128)  # numbers of bins in which a likelihood ratio is estimated


def select_event(
    statistics: Sequence[Statistic],
    scores_x: Floats,
    scores_y: Floats,
    *,
    families: Sequence[Family],
    counting: int,
    confidence: float,
    forgiven: float = 0.0,
) -> Event:
    """Return the event that promises the largest lower bound of a guessing game on fresh runs.

    `scores_x` and `scores_y`, shape (runs, k), are those of k statistics on selection runs; `counting` others will
    count the event. `forgiven` is the probability that the promise leaves to chance for the pair, its delta. Among
    equals the first statistic and family is taken.

    Returns
    -------
    Event
        Ready to be counted.
    """

    def choose(x: Floats, y: Floats, runs: tuple[int, int], pessimism: float, log_ratio: float) -> Rated | None:
        return _thresholds(x, y, sum(runs), pessimism, counting, confidence, forgiven, log_ratio)

    event = _best(statistics, scores_x, scores_y, families, choose)
    return or_apart(
        event, statistics, scores_x, scores_y, families, counting=counting, confidence=confidence, forgiven=forgiven
    )


def select_region(
    statistics: Sequence[Statistic],
    scores_x: Floats,
    scores_y: Floats,
    *,
    families: Sequence[Family],
    counting: int,
    confidence: float,
) -> Event:
    """Return the event whose two probabilities promise the largest shift between normal laws on fresh runs.

    It only ever names one database: its region is where it does.

    Returns
    -------
    Event
        Ready to be counted.
    """

    def choose(x: Floats, y: Floats, runs: tuple[int, int], pessimism: float, log_ratio: float) -> Rated | None:
        return _regions(x, y, runs, pessimism, counting, confidence)

    return _best(statistics, scores_x, scores_y, families, choose)


def select_threshold(scores_x: Floats, scores_y: Floats, *, counting: int, confidence: float) -> ThresholdRule:
    """Return the rule of the region that `select_region` takes of one score, none of whose values is seen twice.

    Returns
    -------
    ThresholdRule
        Ready to be counted.
    """
    chosen = _regions(scores_x, scores_y, (scores_x.size, scores_y.size), PESSIMISM, counting, confidence)
    return chosen[2] if chosen else ThresholdRule(-math.inf, math.inf)


def select_weights(
    statistics: Sequence[Statistic], scores_x: Floats, scores_y: Floats, *, counting: int, confidence: float
) -> Event:
    """Return the likelihood-ratio estimate, order and direction that promise the largest Renyi divergence.

    Half of the runs estimate likelihood ratios, the other half say what each is worth.

    Returns
    -------
    Event
        Ready to be counted.
    """
    best: tuple[float, Event] = (-math.inf, Event(statistics[0], WeightRule(np.array([]), np.zeros(1))))
    half_x, half_y = len(scores_x) // 2, len(scores_y) // 2
    for column, statistic in enumerate(statistics):
        x, y = scores_x[:, column], scores_y[:, column]
        edges = _edges(np.concatenate([x[:half_x], y[:half_y]]))
        if edges.size == 0 or min(half_x, half_y) == 0:
            continue
        rule = WeightRule(edges, np.zeros(edges.size + 1))
        fit_x, fit_y, held_x, held_y = (
            np.bincount(rule.bins(part), minlength=edges.size + 1)
            for part in (x[:half_x], y[:half_y], x[half_x:], y[half_y:])
        )
        # What the bound will be computed from, were the other runs as these: as many on either database.
        held_x, held_y = (np.rint(held * (counting / 2 / held.sum())).astype(np.int64) for held in (held_x, held_y))
        for weights in _likelihood_ratios(rule, x[:half_x], y[:half_y], fit_x, fit_y):
            for toward, sign in (("y", 1.0), ("x", -1.0)):
                likely, other = (held_y, held_x) if toward == "y" else (held_x, held_y)
                for clip in CLIPS:
                    clipped = np.clip(sign * weights, -clip, clip)
                    for order in ORDERS:
                        value = renyi_variational_lower(clipped, likely, other, order=order, confidence=confidence)
                        if value > best[0] + 1e-12:
                            best = value, Event(statistic, WeightRule(edges, clipped, order, toward))  # type: ignore[arg-type]
                    if clip > np.abs(weights).max():
                        break
    return best[1]


def _best(
    statistics: Sequence[Statistic], scores_x: Floats, scores_y: Floats, families: Sequence[Family], choose: Choose
) -> Event:
    best = (-math.inf, Event(statistics[0], ThresholdRule(-math.inf, math.inf)))
    for column, statistic in enumerate(statistics):
        x, y = scores_x[:, column], scores_y[:, column]
        if np.all(x == x[0]) and np.all(y == x[0]):  # one score tells nothing
            continue
        for family in families:
            found: Any
            if family == "threshold":
                found = choose(x, y, (x.size, y.size), PESSIMISM, factor(statistic, x, y))
            else:
                found = _cells(x, y, choose, PESSIMISM)
            if found is not None and (found[0] > best[0] + CLEARLY * found[1] or found[0] > 0 >= best[0]):
                best = found[0], Event(statistic, found[2])
            elif family == "cell":
                found = _cells(x, y, choose, HELD_OUT_PESSIMISM)
                if found is not None and found[0] > 2 * max(best[0], 0.0):
                    best = found[0], Event(statistic, found[2])
    return best[1]


def _thresholds(
    x: Floats,
    y: Floats,
    runs: int,
    pessimism: float,
    counting: int,
    confidence: float,
    forgiven: float,
    log_ratio: float,
) -> Rated | None:
    """Choose both thresholds together by the bound that they promise.

    The accuracy of the best of many rules is too good to be true, and the rarer a rule guesses the more so: each is
    rated after `pessimism` standard errors. The rule is then widened to the largest region around it that is no worse
    within half a standard error of the difference: guessing more costs nothing there, and the bound tightens
    with every guess.

    A log-likelihood ratio s implies accuracy expit(abs(s)), which hardly varies: it is believed if all guesses by the
    sign of the score are right as often, and wherever the runs agree within `pessimism` standard errors. `log_ratio` is
    that of a score of 1, or 0.
    """
    values = _grid(np.concatenate([x, y]))
    if values.size == 0:
        return None
    low, high = np.append(-np.inf, values), np.append(values, np.inf)
    (x_below, x_above), (y_below, y_above) = _beyond(x, values), _beyond(y, values)

    believed = log_ratio > 0 and is_log_ratio(log_ratio * x, log_ratio * y, pessimism)
    lower, upper = np.nonzero(np.less.outer(low, high))  # of each rule
    guesses = (x_below + y_below)[lower] + (x_above + y_above)[upper]
    lower, upper, guesses = lower[guesses > 0], upper[guesses > 0], guesses[guesses > 0]

    def promised(accuracy: Floats, guesses: Floats) -> Floats:
        lost = np.minimum(forgiven * runs / guesses, 1.0) if forgiven else 0.0
        return _promised(accuracy, guesses * (counting / runs), confidence, lost)

    best: Rated | None = None
    for above, correct in (("y", x_below[lower] + y_above[upper]), ("x", y_below[lower] + x_above[upper])):
        accuracy = correct / guesses
        cautious = _wilson(accuracy, guesses, pessimism)
        if believed and above == "y":
            highest = 1 - _wilson(1 - accuracy, guesses, pessimism)
            stated = stated_accuracy(*(log_ratio * each for each in (x, y, low, high)))[lower, upper]
            accuracy = np.clip(stated, cautious, highest)
            rating = promised(accuracy, guesses)
        else:  # the limit is dear: none that promise less at face value than another when rated low can be the best
            hopeful = promised(accuracy, guesses) >= promised(cautious, guesses).max()
            rating = np.full(accuracy.shape, -np.inf)
            guessed = guesses[hopeful]
            rating[hopeful] = promised(_limit(accuracy[hopeful], guessed, pessimism), guessed)
        chosen = int(np.argmax(rating))
        if best is not None and rating[chosen] <= best[0]:
            continue
        around = np.flatnonzero((lower >= lower[chosen]) & (upper <= upper[chosen]))
        error = 0.0 if believed else WIDENED * _standard_error_of_widening(correct, guesses, chosen, around)
        lucky = np.minimum(accuracy[around] + error, 1.0)
        worth = float(promised(accuracy[chosen], guesses[chosen]))
        no_worse = around[(promised(lucky, guesses[around]) >= worth) | (around == chosen)]
        widest = no_worse[np.argmax(guesses[no_worse])]
        sure = (correct[chosen] + 0.5) / (guesses[chosen] + 1)
        noise = 1 / math.sqrt(guesses[chosen] * sure * (1 - sure))
        rule = ThresholdRule(float(low[lower[widest]]), float(high[upper[widest]]), above)  # type: ignore[arg-type]
        best = float(rating[chosen]), noise, rule
    return best


def _standard_error_of_widening(
    correct: NDArray[Any], guesses: NDArray[Any], chosen: int, around: NDArray[np.intp]
) -> Floats:
    """Return the standard error of how the rate of right guesses changes from the chosen rule to each one around it."""
    accuracy = (correct[chosen] + 0.5) / (guesses[chosen] + 1)
    wider = guesses[around]
    added = np.maximum(wider - guesses[chosen], 1)
    fresh = np.clip((correct[around] - correct[chosen] + 0.5) / (added + 1), 0.0, 1.0)
    variance = (added / wider) ** 2 * (fresh * (1 - fresh) / added + accuracy * (1 - accuracy) / guesses[chosen])
    return np.asarray(np.sqrt(variance))


def _regions(
    x: Floats, y: Floats, runs: tuple[int, int], pessimism: float, counting: int, confidence: float
) -> Rated | None:
    """Choose one threshold, the side of it and the database that it speaks for, by the shift that they promise."""
    values = _grid(np.concatenate([x, y]))
    if values.size == 0:
        return None
    z = float(special.ndtri(1 - (1 - confidence) / 2))
    fewest = np.full(values.size, float(min(runs)))
    best: Rated | None = None
    (x_below, x_above), (y_below, y_above) = _beyond(x, values), _beyond(y, values)
    rates_x, rates_y = (
        {"above": above[:-1] / total, "below": below[1:] / total}
        for total, below, above in ((runs[0], x_below, x_above), (runs[1], y_below, y_above))
    )
    for likely, rare, above, upward in (
        (rates_y["above"], rates_x["above"], "y", True),
        (rates_x["above"], rates_y["above"], "x", True),
        (rates_x["below"], rates_y["below"], "y", False),
        (rates_y["below"], rates_x["below"], "x", False),
    ):
        p = _wilson(_limit(likely, fewest, pessimism), counting / 2, z)
        q = 1 - _wilson(_limit(1 - rare, fewest, pessimism), counting / 2, z)
        rating = special.ndtri(p) - special.ndtri(q)
        chosen = int(np.argmax(rating))
        if best is None or rating[chosen] > best[0]:
            low, high = (-math.inf, float(values[chosen])) if upward else (float(values[chosen]), math.inf)
            error = math.sqrt(2 / min(runs)) / float(stats.norm.pdf(special.ndtri(rare[chosen])) + 1e-3)
            best = float(rating[chosen]), error, ThresholdRule(low, high, above)  # type: ignore[arg-type]
    return best


def _cells(x: Floats, y: Floats, choose: Choose, pessimism: float) -> tuple[float, float, CellRule] | None:
    """Choose sets of single values: half of the runs say which way each leans, the other half how far to trust it."""
    half_x, half_y = x.size // 2, y.size // 2
    values, seen = np.unique(np.concatenate([x[:half_x], y[:half_y]]), return_counts=True)
    if values.size > VALUES:
        values = values[seen > 1]  # a continuous score may still have atoms
    if min(half_x, half_y) == 0 or not 1 <= values.size <= VALUES:
        return None

    def known(scores: Floats) -> NDArray[np.intp]:
        place = np.minimum(np.searchsorted(values, scores), values.size - 1)
        return np.asarray(place[values[place] == scores])

    counts_x = np.bincount(known(x[:half_x]), minlength=values.size) + 0.5
    counts_y = np.bincount(known(y[:half_y]), minlength=values.size) + 0.5
    ratio = np.log(counts_y / counts_x) - math.log(half_y / half_x)
    lean = np.sign(ratio) * np.maximum(np.abs(ratio) - np.sqrt(1 / counts_x + 1 / counts_y), 0.0)

    held_x, held_y = x[half_x:], y[half_y:]
    found = choose(lean[known(held_x)], lean[known(held_y)], (held_x.size, held_y.size), pessimism, 0.0)
    if found is None:
        return None
    guess = found[2].guess(lean)
    return found[0], found[1], CellRule(values[guess > 0], values[guess < 0])


def _likelihood_ratios(
    rule: WeightRule, x: Floats, y: Floats, counts_x: NDArray[np.intp], counts_y: NDArray[np.intp]
) -> Iterator[Floats]:
    """Yield estimates of the log-likelihood ratio of `y` over `x` in each bin, the simplest first."""
    total = np.concatenate([x, y])
    bounded = np.clip(np.clip(total, *np.quantile(total, [0.0005, 0.9995], method="nearest")), -INFINITE, INFINITE)
    sums = np.bincount(rule.bins(total), bounded, rule.weights.size)
    center = sums / np.maximum(counts_x + counts_y, 1)
    yield center  # a score may be a log-likelihood ratio by itself
    mean_x, mean_y = (np.average(center, weights=counts) for counts in (counts_x, counts_y))
    variance = np.average((center - mean_x) ** 2, weights=counts_x) + np.average(
        (center - mean_y) ** 2, weights=counts_y
    )
    if variance > 0:  # as if of two normal laws
        yield (center - (mean_x + mean_y) / 2) * (mean_y - mean_x) / (variance / 2)
    for bins in BINS:
        fraction = np.cumsum(counts_x + counts_y) - (counts_x + counts_y) / 2
        coarse = np.minimum((fraction * (bins / total.size)).astype(np.intp), bins - 1)
        grouped_x, grouped_y = (np.bincount(coarse, counts, bins) + 0.5 for counts in (counts_x, counts_y))
        yield (np.log(grouped_y / grouped_x) - math.log(y.size / x.size))[coarse]


def _edges(scores: Floats) -> Floats:
    """Return what separates scores: between single values where there are few, else between quantiles."""
    values = _grid(scores)
    return values[:-1] / 2 + values[1:] / 2


def _grid(scores: Floats) -> Floats:
    """Return all distinct scores, or a grid of quantiles that is finer in both tails, where losses hide."""
    values = np.unique(scores)
    if values.size <= GRID:
        return values
    tail = np.geomspace(2 / scores.size, 2 / GRID, GRID // 8)
    levels = np.concatenate([tail, np.linspace(0, 1, GRID - 2 * tail.size), 1 - tail])
    return np.unique(np.quantile(scores, np.sort(levels), method="nearest"))


def _beyond(scores: Floats, values: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return how many scores are at most none and each of the values, and at least each of them and none."""
    ordered = np.sort(scores)
    return (
        np.append(0, np.searchsorted(ordered, values, "right")),
        np.append(ordered.size - np.searchsorted(ordered, values, "left"), 0),
    )


def _promised(accuracy: Floats, guesses: Floats, confidence: float, forgiven: Floats | float) -> Floats:
    """Return the log-odds that the bound would show for this accuracy: the normal stand-in for its exact limit.

    Below 0 they show no loss, yet still tell the better of two weak rules.
    """
    rate = _wilson(accuracy, guesses, float(special.ndtri(confidence)))
    if np.any(forgiven):
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(forgiven < 1, (rate - forgiven) / (1 - forgiven), 0.0)
    return np.asarray(special.logit(np.clip(rate, 1e-15, 1 - 1e-15)))


def _wilson(rate: Floats, runs: Floats | float, z: float) -> Floats:
    """Lower limit of a probability, `z` standard errors down (Wilson 1927)."""
    spread = z * np.sqrt(rate * (1 - rate) / runs + z**2 / (4 * runs**2))
    return np.maximum((rate + z**2 / (2 * runs) - spread) / (1 + z**2 / runs), 0.0)  # rounding may fall below 0


def _limit(rate: Floats, runs: Floats, z: float) -> Floats:
    """Lower limit of a probability by the likelihood ratio (Wilks 1938): where ``runs * KL(rate, limit) = z**2 / 2``.

    It is Wilson's limit in the middle and does justice to rules that are always right, which Wilson's drags down.
    """
    distance = z**2 / (2 * np.asarray(runs, float))
    entropy = special.entr(rate) + special.entr(1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Below the limit, from where Newton's steps on the convex divergence never leave that side.
        limit = np.maximum(rate - np.sqrt(distance / 2), np.exp(-(distance + entropy) / rate))
        limit = np.where(rate > 0, np.maximum(limit, 1e-300), 0.0)
        for _ in range(8):
            excess = special.rel_entr(rate, limit) + special.rel_entr(1 - rate, 1 - limit) - distance
            limit = np.where(limit > 0, limit + excess * limit * (1 - limit) / (rate - limit), 0.0)
            limit = np.where(np.isfinite(limit), np.minimum(limit, rate), rate)
    return np.asarray(limit)
