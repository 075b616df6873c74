"""Which event to look for: the statistics and rules that are searched, and the choice among them on selection runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from audit.events import CellRule, Event, Statistic, ThresholdRule, agreement, cell
from audit.neighbors import NeighborPair

__all__ = ["Attack", "Moments", "changed_cells", "moved_cells", "other_moved_cells", "select_event"]

Floats = NDArray[np.float64]
Family = Literal["threshold", "cell"]

GRID = 256  # thresholds tried on either side
VALUES = 4096  # distinct scores up to which each single value may be an event
PESSIMISM = 5.0  # standard errors taken off a rule's accuracy on the runs that chose it
INFINITE = 1e100  # what stands for infinity in a mean, so that its square is finite
MOST_CELLS = 8  # coordinates of an output that are searched, singly and jointly


@dataclass(frozen=True, eq=False)
class Attack:
    """What is searched for the event that shows the largest loss.

    Attributes
    ----------
    statistics : tuple of Statistic, optional
        What may be looked at. Default: the entries of the output that the pair changes, singly and jointly; where an
        output is not shaped like the data, those that move most from `x` to `y`.
    families : tuple of {"threshold", "cell"}
        Kinds of rules on each: scores beyond thresholds, and sets of single values: of scores with few values, or of
        those that repeat.
    """

    statistics: tuple[Statistic, ...] | None = None
    families: tuple[Family, ...] = ("threshold", "cell")

    def __post_init__(self) -> None:
        if not self.families or not set(self.families) <= {"threshold", "cell"}:
            raise ValueError(f'families must be of "threshold" and "cell", got {self.families}')
        if self.statistics is not None and not self.statistics:
            raise ValueError("an attack needs at least one statistic, got none")

    @classmethod
    def named(cls, name: str) -> Attack:
        """Return the attack of a name: ``"auto"`` for everything, ``"threshold"`` or ``"cell"`` for one family.

        Raises
        ------
        ValueError
            If the name is not one of them.
        """
        if name not in ("auto", "threshold", "cell"):
            raise ValueError(f'attack must be "auto", "threshold", "cell" or an Attack, got {name!r}')
        return cls() if name == "auto" else cls(families=(name,))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of every entry of the outputs on one database, each of shape (cells,)."""

    runs: int
    mean: Floats
    sd: Floats

    @classmethod
    def of(cls, blocks: Iterable[Floats]) -> Moments:
        """Add up blocks of what `reduce` kept, as they come: each is as large as an output."""
        runs, total, squares = functools.reduce(np.add, blocks)
        mean = total / runs
        return cls(int(runs[0]), mean, np.sqrt(np.maximum(squares / runs - mean**2, 0.0)))

    @staticmethod
    def reducer(center: Floats) -> Callable[[NDArray[Any]], Floats]:
        """Return what keeps the runs, sums and sums of squares about `center` of a block, shape (3, cells)."""

        def reduce(outputs: NDArray[Any]) -> Floats:
            flat = outputs.reshape(len(outputs), -1) - center
            np.clip(flat, -INFINITE, INFINITE, out=flat)
            return np.array([np.full(flat.shape[1], float(len(flat))), flat.sum(axis=0), np.square(flat).sum(axis=0)])

        return reduce


def changed_cells(pair: NeighborPair, shape: tuple[int, ...]) -> tuple[Statistic, ...] | None:
    """Return statistics of the entries that a pair changes.

    Parameters
    ----------
    pair : NeighborPair
        The two databases.
    shape : tuple of int
        Of one output.

    Returns
    -------
    tuple of Statistic or None
        Each entry, the most changed first, and several jointly; None where outputs are not shaped like the counts.
    """
    if math.prod(shape) == 1:
        return (cell(*(0,) * len(shape)),)
    if not all(
        isinstance(data, np.ndarray)
        and data.shape == shape
        and data.dtype.kind in "iuf"
        and bool(np.isfinite(data).all())
        for data in (pair.x, pair.y)
    ):
        return None
    change = pair.y.astype(float) - pair.x
    largest = np.argsort(-np.abs(change), axis=None, kind="stable")[:MOST_CELLS]
    where = [tuple(map(int, index)) for index in zip(*np.unravel_index(largest, shape), strict=True) if change[index]]
    if not where:
        return None
    middles = [float(pair.x[index]) + change[index] / 2 for index in where]
    return _single_and_joint(where, middles, [float(np.sign(change[index])) for index in where])


def moved_cells(shape: tuple[int, ...], center: Floats, x: Moments, y: Moments) -> tuple[Statistic, ...]:
    """Return statistics of the entries whose mean moves most from `x` to `y`, in standard errors.

    Parameters
    ----------
    shape : tuple of int
        Of one output.
    center : ndarray of float, shape (cells,)
        What the moments are about.
    x, y : Moments
        Of the outputs on either database.

    Returns
    -------
    tuple of Statistic
        Each of those entries, and several jointly.
    """
    shift, scale, best, moved = _movers(x, y)
    clear = best[moved > PESSIMISM]
    if clear.size == 0:
        clear = best[:3]
    where = [tuple(map(int, np.unravel_index(index, shape))) for index in clear]
    middles = [float(center[index] + (x.mean[index] + y.mean[index]) / 2) for index in clear]
    signs = [float(np.sign(shift[index]) or 1.0) / float(scale[index] or 1.0) for index in clear]
    return _single_and_joint(where, middles, signs)


def other_moved_cells(
    shape: tuple[int, ...], x: Moments, y: Moments, known: Sequence[Statistic]
) -> tuple[Statistic, ...]:
    """Return statistics of single entries whose mean clearly moves from `x` to `y` and that are not known to.

    Parameters
    ----------
    shape : tuple of int
        Of one output.
    x, y : Moments
        Of the outputs on either database.
    known : sequence of Statistic
        What is looked at anyway.

    Returns
    -------
    tuple of Statistic
        None of `known` among them; empty where nothing else moves.
    """
    _, _, best, moved = _movers(x, y, MOST_CELLS + len(known))
    found = [cell(*map(int, np.unravel_index(index, shape))) for index in best[moved > PESSIMISM]]
    names = {statistic.name for statistic in known}
    return tuple(statistic for statistic in found if statistic.name not in names)[:MOST_CELLS]


def _movers(x: Moments, y: Moments, most: int = MOST_CELLS) -> tuple[Floats, Floats, NDArray[np.intp], Floats]:
    """Return the shift and scale of every entry, which of them move most, and those by how many standard errors."""
    shift = y.mean - x.mean
    scale = np.sqrt((x.sd**2 + y.sd**2) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(shift == 0, 0.0, np.abs(shift) / (scale * math.sqrt(1 / x.runs + 1 / y.runs)))
    best = np.argsort(-moved, kind="stable")[:most]
    return shift, scale, best, moved[best]


def _single_and_joint(where: list[tuple[int, ...]], middles: list[float], signs: list[float]) -> tuple[Statistic, ...]:
    joint = [agreement(where[:n], middles[:n], signs[:n]) for n in range(2, len(where) + 1)]
    return (*(cell(*index) for index in where), *joint)


def select_event(
    statistics: Sequence[Statistic],
    scores_x: Floats,
    scores_y: Floats,
    *,
    families: Sequence[Family],
    counting: int,
    confidence: float,
) -> Event:
    """Return the event that promises the largest lower bound on fresh runs.

    Parameters
    ----------
    statistics : sequence of Statistic, length k
        What may be looked at.
    scores_x, scores_y : ndarray of float, shape (runs, k)
        Their scores on selection runs of either database.
    families : sequence of {"threshold", "cell"}
        Kinds of rules.
    counting : int
        Runs on which the event will be counted.
    confidence : float
        Of the bound to come, in (0, 1).

    Returns
    -------
    Event
        Of the first statistic and family among equals.
    """
    best = (-math.inf, Event(statistics[0], ThresholdRule(-math.inf, math.inf)))
    for column, statistic in enumerate(statistics):
        x, y = scores_x[:, column], scores_y[:, column]
        if np.all(x == x[0]) and np.all(y == x[0]):  # one score tells nothing
            continue
        for family in families:
            found = (
                _thresholds(x, y, counting, confidence) if family == "threshold" else _cells(x, y, counting, confidence)
            )
            if found is not None and found[0] > best[0] + 1e-12:
                best = found[0], Event(statistic, found[1])
    return best[1]


def _thresholds(x: Floats, y: Floats, counting: int, confidence: float) -> tuple[float, ThresholdRule] | None:
    """Choose both thresholds together by the bound that they promise.

    The accuracy of the best of many rules is too good to be true, and the rarer a rule guesses the more so: each is
    rated after `PESSIMISM` standard errors. The rule is then widened to the largest region around it that is no worse
    within one standard error of the difference: guessing more costs nothing there, and the bound tightens with every
    guess.
    """
    values = np.unique(np.concatenate([x, y]))
    if values.size == 0:
        return None
    if values.size > GRID:
        values = np.unique(np.quantile(np.concatenate([x, y]), np.linspace(0, 1, GRID), method="nearest"))
    low, high = np.append(-np.inf, values), np.append(values, np.inf)
    sorted_x, sorted_y = np.sort(x), np.sort(y)
    x_below, y_below = (np.append(0, np.searchsorted(s, values, "right")) for s in (sorted_x, sorted_y))
    x_above, y_above = (np.append(s.size - np.searchsorted(s, values, "left"), 0) for s in (sorted_x, sorted_y))

    guesses = np.add.outer(x_below + y_below, x_above + y_above)
    allowed = np.less.outer(low, high) & (guesses > 0)
    scale = counting / (x.size + y.size)
    best: tuple[float, ThresholdRule] | None = None
    for above, correct in (("y", np.add.outer(x_below, y_above)), ("x", np.add.outer(y_below, x_above))):
        safe = np.maximum(guesses, 1)
        accuracy = np.where(allowed, correct / safe, 0.5)
        pessimistic = _wilson(accuracy, safe, PESSIMISM)
        rating = np.where(allowed, _promised(pessimistic, safe * scale, confidence), -np.inf)
        chosen = np.unravel_index(np.argmax(rating), rating.shape)
        if best is not None and rating[chosen] <= best[0]:
            continue
        value = float(rating[chosen])
        promised = float(_promised(accuracy[chosen], safe[chosen] * scale, confidence))
        lucky = np.minimum(accuracy + _standard_error_of_widening(correct, guesses, chosen), 1.0)
        wider = allowed & (_promised(lucky, safe * scale, confidence) >= promised)
        wider[: chosen[0]] = wider[:, chosen[1] + 1 :] = False
        i, j = np.unravel_index(np.argmax(np.where(wider, guesses, -1)), guesses.shape)
        best = value, ThresholdRule(float(low[i]), float(high[j]), above)  # type: ignore[arg-type]
    return best


def _standard_error_of_widening(correct: NDArray[Any], guesses: NDArray[Any], chosen: tuple[Any, ...]) -> Floats:
    """Return the standard error of how the rate of right guesses changes from the chosen rule to each wider one."""
    accuracy = (correct[chosen] + 0.5) / (guesses[chosen] + 1)
    added = np.maximum(guesses - guesses[chosen], 1)
    fresh = np.clip((correct - correct[chosen] + 0.5) / (added + 1), 0.0, 1.0)
    variance = (added / np.maximum(guesses, 1)) ** 2 * (
        fresh * (1 - fresh) / added + accuracy * (1 - accuracy) / guesses[chosen]
    )
    return np.asarray(np.sqrt(variance))


def _cells(x: Floats, y: Floats, counting: int, confidence: float) -> tuple[float, CellRule] | None:
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

    leans_x, leans_y = lean[known(x[half_x:])], lean[known(y[half_y:])]
    share = (leans_x.size + leans_y.size) / (x.size - half_x + y.size - half_y)
    found = _thresholds(leans_x, leans_y, counting * share, confidence)
    if found is None:
        return None
    guess = found[1].guess(lean)
    return found[0], CellRule(values[guess > 0], values[guess < 0])


def _promised(accuracy: Floats, guesses: Floats, confidence: float) -> Floats:
    """Return the log-odds that the bound would show for this accuracy: the normal stand-in for its exact limit.

    Below 0 they show no loss, yet still tell the better of two weak rules.
    """
    rate = _wilson(accuracy, guesses, float(stats.norm.ppf(confidence)))
    return np.asarray(special.logit(np.clip(rate, 1e-15, 1 - 1e-15)))


def _wilson(rate: Floats, runs: Floats, z: float) -> Floats:
    """Lower limit of a probability, `z` standard errors down (Wilson 1927)."""
    spread = z * np.sqrt(rate * (1 - rate) / runs + z**2 / (4 * runs**2))
    return np.asarray((rate + z**2 / (2 * runs) - spread) / (1 + z**2 / runs))
