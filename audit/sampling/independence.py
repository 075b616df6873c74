"""Tests of the independence of runs: between calls, along their sequence and at every lag.

Each test rejects independent runs with probability below `DEPENDENT`, and the few dozen tests of an audit together
below 1e-9. Lags are tested among the first 262,144 runs on either database, all else among all runs. Weaker dependence
still inflates the variance of counts: `Spread` measures it, and bounds allow for it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.special import betaln, gammaln

from audit.events import cell
from audit.sampling.calls import CALLS, COUNTING

__all__ = ["CLEAR", "DEPENDENT", "UNSTEADY", "Spread", "check_calls", "check_file", "check_order", "order_of"]

DEPENDENT = 1e-11  # significance level of each test of independence
ENTRIES = 8  # entries of an output that are tested
PARTS = 8  # parts of a call that are compared; fewer if there are many calls
STRETCHES = 4  # long stretches of successive runs that are compared, besides calls and their parts
CUTS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])  # quantiles that divide scores into kinds
LAGGED = 2**18  # first runs on either database that are tested at every lag: more would only take longer
HEAD = 64  # first rows of a file, which mostly suffice to show that it is in no order
EXCESS = (1.3, 3, 20)  # ratios of the variance of group counts to that by chance, under the alternatives
CLOSEST = 0.9  # largest correlation of the runs of a group under the alternatives
CLEAR = 1.0  # standard errors of excess variance of counts from which bounds allow for it
FAULT = "outputs must be independent and in the order in which they were made"
UNSTEADY = (
    "runs must be independent: later ones differ from the first, as if the mechanism counted them or spent a budget: "
    "make it anew in each"
)


@dataclass(frozen=True)
class Spread:
    """Variance of a sum over the runs, estimated between calls and within; estimates of several sets of runs add up."""

    between: float = 0.0  # from the differences of calls
    within: float = 0.0  # from the differences of runs
    chance: float = 0.0  # variance of `between`

    @classmethod
    def of(
        cls,
        sides: Sequence[NDArray[np.float64]],
        calls: Sequence[NDArray[np.intp]],
        shares: Sequence[float] = (1.0, 1.0),
    ) -> Spread:
        """Return the spread of points of successive runs on either database, made in calls of these sizes."""
        # If only random `shares` of the runs count, the dependence within a call is reduced to that share.
        spread = cls()
        for points, sizes, share in zip(sides, calls, shares, strict=True):
            runs, number = len(points), len(sizes)
            if number > 1:
                apart = points - points.mean()
                squares = np.add.reduceat(apart, np.cumsum(sizes) - sizes) ** 2 / sizes * (runs / (number - 1))
                within = float(np.sum(apart**2)) * runs / (runs - 1)
                between = share * float(squares.sum()) + (1 - share) * within
                chance = share**4 * float(np.sum((squares - squares.mean()) ** 2))
                spread += cls(share * between, share * within, chance)
        return spread

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.between + other.between, self.within + other.within, self.chance + other.chance)

    @property
    def excess(self) -> float:
        """Excess of the variance between calls over that of independent runs, in standard errors."""
        return (self.between - self.within) / math.sqrt(self.chance) if self.chance else 0.0

    def inflation(self, clear: float = CLEAR) -> float:
        """Return the ratio of the variance of counts to that of independent runs; 1 if the excess is not clear."""
        return self.between / self.within if self.excess > clear else 1.0


def check_calls(
    name: str, sides: Sequence[NDArray[Any]], calls: Sequence[NDArray[np.intp]], error: float = DEPENDENT
) -> None:
    """Refuse a mechanism whose runs depend on each other, by scores or int8 guesses, given the sizes of `calls`."""
    sides = [_kinds(side) for side in sides]
    if fault := _uneven(sides, calls, error):
        raise ValueError(
            (
                UNSTEADY,
                "runs must be independent: randomness seems to be drawn once a call instead of once a run: "
                f"{name} differs more between calls than within them",
                f"runs must be independent: {name} is more alike in runs that follow each other than in others",
            )[fault - 1]
        )
    for side in sides:
        if lag := _lag(side):
            raise ValueError(f"runs must be independent: {name} of a run {_correlates(*lag)}")


def order_of(values: NDArray[Any]) -> str:
    """Return "rises", "falls", "repeats" or "numbers" if a column of a file is in an order beyond chance."""
    # All distinct orders of independent rows have the same probability. Two of them are monotonic; with d different
    # values, equal rows are adjacent in d! of them. "numbers" is a column with each of n successive integers once, in
    # any order: its probability is at most n! / n^n under any law.
    number = len(values)
    if values.dtype.kind in "iuf" and gammaln(number + 1) - number * math.log(max(number, 1)) < math.log(DEPENDENT):
        ordered = np.sort(values)
        if np.isfinite(ordered).all() and (np.diff(ordered) == 1).all() and ordered[0] % 1 == 0:
            return "rises" if (np.diff(values) == 1).all() else "numbers"
    for part in (values[:HEAD], values):
        _, kinds, rows = np.unique(part, return_inverse=True, return_counts=True)
        steps = np.diff(kinds)
        one_way = bool((steps >= 0).all() or (steps <= 0).all())
        if np.count_nonzero(steps) >= rows.size or not (one_way or rows.max() > 1):
            return ""
    alike = math.log(2) if one_way else gammaln(rows.size + 1)
    if alike + gammaln(rows + 1).sum() - gammaln(kinds.size + 1) >= math.log(DEPENDENT):
        return ""
    return "repeats" if 2 * rows.size <= kinds.size else "rises" if kinds[0] < kinds[-1] else "falls"


def check_file(outputs: Sequence[NDArray[Any]], named: Callable[[str], str] = str) -> None:
    """Refuse outputs that depend on each other in the given order; `named` gives the names of entries."""
    if outputs[0].dtype.kind == "O":
        codes = [np.array([zlib.crc32(text.encode()) for text in side], np.float64) for side in outputs]
        return check_order("the output", codes)
    flat = [side.reshape(len(side), -1) for side in outputs]
    for entry in np.unique(np.linspace(0, flat[0].shape[1] - 1, ENTRIES).astype(np.intp)):
        name = named(cell(*map(int, np.unravel_index(entry, outputs[0].shape[1:]))).name)
        for side in flat:
            if side.shape[1] > 1 and (order := order_of(side[:, entry])):
                raise ValueError(f"{FAULT}: {name} {order} from row to row: leave it out if it numbers the runs")
        check_order(name, [side[:, entry].astype(np.float64) for side in flat])


def check_order(name: str, sides: Sequence[NDArray[Any]]) -> None:
    """Refuse outputs that depend on each other, by scores or guesses in the given order."""
    fault = f"{FAULT}: {name}"
    sides = [_kinds(side) for side in sides]
    for side in sides:
        if lag := _lag(side, padded=True):
            raise ValueError(f"{fault} of a row {_correlates(*lag)}")
    if where := _uneven(sides, [np.diff(np.arange(COUNTING + 1) * len(side) // COUNTING) for side in sides]):
        alike = "is more alike in rows that follow each other than in others"
        raise ValueError(f"{fault} {'changes from the first rows to the last' if where == 1 else alike}")


def _correlates(correlation: float, lag: int) -> str:
    return f"correlates by {correlation:.2g} with that {lag} later"


def _kinds(scores: NDArray[Any]) -> NDArray[np.intp]:
    if scores.dtype.kind == "i":
        return scores.astype(np.intp) + 1
    cuts = np.unique(np.sort(scores)[(CUTS * len(scores)).astype(np.intp)]) if len(scores) else scores
    return np.searchsorted(cuts, scores)


def _uneven(sides: Sequence[NDArray[Any]], calls: Sequence[NDArray[np.intp]], error: float = DEPENDENT) -> int:
    """Return 0 if groups of runs are alike, else the groups that differ: 1 for long ones, 2 for calls, 3 for parts."""
    # Runs are counted by kind of score in groups of successive runs. Given the totals, the counts of independent runs
    # are hypergeometric whatever their law is. So the likelihood ratio of any alternative to that law has mean 1, and
    # is 1 / p or more with probability p at most (Markov). That holds for rare kinds, too.
    if not (number := max(map(len, calls))):
        return 0
    each = max(1, min(PARTS, COUNTING // number))
    counted = [_counts(kinds, sizes, each) for kinds, sizes in zip(sides, calls, strict=True)]
    parts = number * each
    table = np.concatenate([np.pad(side, ((0, 0), (0, parts - side.shape[1]), (0, 0))) for side in counted], axis=2)
    groups = sorted({min(STRETCHES, number), min(CALLS, number), number, parts})
    excesses = [_excess(table, each) for each in groups]
    if np.logaddexp.reduce(excesses) - math.log(len(excesses)) <= -math.log(error):
        return 0
    largest = next(each for each, evidence in zip(groups, excesses, strict=True) if evidence > max(excesses) / 2)
    return 3 if largest > number else 2 if largest == number else 1


def _counts(kinds: NDArray[np.intp], calls: NDArray[np.intp], each: int) -> NDArray[np.intp]:
    """Return, by parts of calls, the number of runs of each kind but the last, and of this kind or later ones."""
    most = int(kinds.max(initial=0)) + 1
    ends = np.cumsum(calls)
    starts = ((ends - calls)[:, None] + calls[:, None] * np.arange(each) // each).ravel()
    numbers = np.repeat(np.arange(len(starts)) * most, np.diff(starts, append=len(kinds))) + kinds
    table = np.bincount(numbers, minlength=len(starts) * most).reshape(len(starts), most)
    return np.stack([table[:, :-1], np.cumsum(table[:, ::-1], axis=1)[:, :0:-1]])


def _excess(table: NDArray[np.intp], groups: int) -> float:
    """Return the log-likelihood ratio of counts for laws that vary between groups of successive parts, in nats."""
    # Each kind of run is counted among runs of no earlier kind. The alternatives are beta-binomial, group after group,
    # around the share that the totals leave for later groups. Their mixture weighs as much as the null hypothesis.
    parts = table.shape[1]
    hits, runs = np.add.reduceat(table, np.unique(parts * np.arange(groups) // groups), axis=1)
    size, total = runs.sum(axis=0), hits.sum(axis=0)
    left, due = (np.cumsum(counted[::-1], axis=0)[::-1] for counted in (runs, hits))
    share = (due + 0.5) / (left + 1)
    # Binomial coefficients of the groups cancel.
    even = gammaln(total + 1) + gammaln(size - total + 1) - gammaln(size + 1)
    laws = []
    for excess in EXCESS:
        alike = np.minimum((excess - 1) / np.maximum(size / len(runs) - 1, 1e-9), CLOSEST)  # correlation in a group
        of_hits, of_others = (1 / alike - 1) * share, (1 / alike - 1) * (1 - share)
        laws.append((betaln(of_hits + hits, of_others + runs - hits) - betaln(of_hits, of_others)).sum(axis=0) - even)
    evidence = np.logaddexp.reduce(laws) - math.log(len(laws))
    varies = np.minimum(total, size - total) > 1
    return float((np.logaddexp(0.0, np.where(varies, evidence, -math.inf)) - math.log(2)).sum())


def _lag(kinds: NDArray[np.intp], *, padded: bool = False) -> tuple[float, int] | None:
    """Return the largest correlation of the first runs at a lag, and the lag, if chance does not explain it."""
    # Products of independent centered runs are martingale differences: Freedman's inequality (1975) bounds the
    # probability of so large a sum, even if a few rare values cause it, and a union bound is over the lags. Unless
    # `padded`, the sequence is circular: that halves the time, and has less power only at lags of most of its length.
    kinds = kinds[:LAGGED]
    runs = len(kinds)
    if runs < 2 or (kinds == kinds[0]).all():
        return None
    values = (kinds - np.mean(kinds)).astype(np.float32)  # fewer bits suffice
    spread = float(np.mean(values**2))
    length = fft.next_fast_len(2 * runs if padded else runs, real=True)
    spectrum = fft.rfft(values, length)
    sums = fft.irfft(spectrum.real**2 + spectrum.imag**2, length)[1 : min(runs, length // 2 + 1)] / spread
    pairs = np.arange(runs - 1, runs - 1 - len(sums), -1) if padded else np.full(1, runs)
    exponents = sums**2 / (2 * pairs + (2 / 3 * float(np.abs(values).max()) ** 2 / spread) * np.abs(sums))
    worst = int(np.argmax(exponents))
    if 2 * len(sums) * math.exp(-exponents[worst]) >= DEPENDENT:
        return None
    return float(sums[worst] / pairs[worst if padded else 0]), worst + 1
