"""Whether runs are independent: compared between calls, along their sequence and at every lag.

Each comparison here refuses independent runs with probability below `DEPENDENT`. An audit makes a few dozen, which
together refuse a sound mechanism, or sound outputs, with probability below 1e-9.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.special import gammaln

from audit.events import cell
from audit.sampling.blocks import CALLS

__all__ = ["DEPENDENT", "UNSTEADY", "check_calls", "check_file", "check_order", "order_of"]

DEPENDENT = 1e-11  # probability below which independent runs are not believed to be independent, each time
ENTRIES = 8  # of an output that are looked at
PARTS = 8  # of a call
GROUPS = (4, CALLS, CALLS * PARTS)  # of successive runs that are compared, or as many as there are parts of calls
CUTS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])  # quantiles between kinds of scores
HEAD = 64  # rows of a file that most often show that they are in no order
EXCESS = np.array([[1.5], [5], [50]])  # times chance's that counts of groups may vary, among others
FAULT = "outputs must be independent and in the order in which they were made"
UNSTEADY = (
    "runs must be independent: later ones differ from the first, as if the mechanism counted them or spent a budget: "
    "make it anew in each"
)


def check_calls(name: str, sides: Sequence[NDArray[Any]], calls: Sequence[NDArray[np.intp]] | None) -> None:
    """Refuse a mechanism whose runs depend on each other, by what each gave.

    `sides` are scores, or guesses as int8, of successive runs on either database, and `calls` the sizes of the calls
    that made them; None where runs are in random order, which tells nothing.
    """
    if calls is None:
        return
    sides = [_kinds(side) for side in sides]
    if fault := _uneven(sides, calls):
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
    """Return "rises", "falls" or "repeats" if one column of a file does so from row to row, which chance does not.

    Independent rows come in each of their orders as likely: of n! there are as many as differ, and of these two in
    which no row goes the other way, and d! in which all rows of each of d values follow each other. "numbers" is a
    column that has each of n whole numbers in a row once, in any order: under any law its chance is n! / n^n at most.
    """
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


def check_file(outputs: Sequence[NDArray[Any]]) -> None:
    """Refuse outputs that depend on each other, in the order in which they were given on either database."""
    if outputs[0].dtype.kind == "O":
        codes = [np.array([zlib.crc32(text.encode()) for text in side], np.float64) for side in outputs]
        return check_order("the output", codes)
    flat = [side.reshape(len(side), -1) for side in outputs]
    for entry in np.unique(np.linspace(0, flat[0].shape[1] - 1, ENTRIES).astype(np.intp)):
        name = cell(*map(int, np.unravel_index(entry, outputs[0].shape[1:]))).name
        for side in flat:
            if side.shape[1] > 1 and (order := order_of(side[:, entry])):
                raise ValueError(f"{FAULT}: {name} {order} from row to row: leave it out if it numbers the runs")
        check_order(name, [side[:, entry].astype(np.float64) for side in flat])


def check_order(name: str, sides: Sequence[NDArray[Any]]) -> None:
    """Refuse outputs that depend on each other, by scores or guesses in the order in which they were given."""
    fault = f"{FAULT}: {name}"
    sides = [_kinds(side) for side in sides]
    for side in sides:
        if lag := _lag(side, padded=True):
            raise ValueError(f"{fault} of a row {_correlates(*lag)}")
    if _uneven(sides, [np.diff(np.arange(CALLS + 1) * len(side) // CALLS) for side in sides]):
        raise ValueError(f"{fault} changes from the first rows to the last")


def _correlates(correlation: float, lag: int) -> str:
    return f"correlates by {correlation:.2g} with that {lag} later"


def _kinds(scores: NDArray[Any]) -> NDArray[np.intp]:
    """Return of which kind each run is, from 0 up, in the order of scores; each guess is one."""
    if scores.dtype.kind == "i":
        return scores.astype(np.intp) + 1
    cuts = np.unique(np.sort(scores)[(CUTS * len(scores)).astype(np.intp)]) if len(scores) else scores
    return np.searchsorted(cuts, scores)


def _uneven(sides: Sequence[NDArray[Any]], calls: Sequence[NDArray[np.intp]]) -> int:
    """Return 0 if runs are alike, else over which stretches they are not: 1 for long ones, 2 for calls, 3 for parts.

    Runs are counted by kind of score in each of some groups of successive runs. Given the totals, the counts of
    independent runs are hypergeometric whatever their law is. So the ratio of any other probability of them to that one
    has mean 1, and is 1 / p or more with probability p at most (Markov). That holds for rare kinds as for others.
    """
    counted = [_counts(kinds, sizes) for kinds, sizes in zip(sides, calls, strict=True)]
    parts = max(side.shape[1] for side in counted)
    table = np.concatenate([np.pad(side, ((0, 0), (0, parts - side.shape[1]), (0, 0))) for side in counted], axis=2)
    excesses = [_excess(table, groups) for groups in GROUPS] if parts else [0.0]
    if np.logaddexp.reduce(excesses) - math.log(len(excesses)) <= -math.log(DEPENDENT):
        return 0
    return next(place for place, evidence in enumerate(excesses, 1) if evidence > max(excesses) / 2)


def _counts(kinds: NDArray[np.intp], calls: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many runs of each part of a call are of each kind, and of it or a later one: shape (2, parts, kinds).

    Those of the last kind are what the others leave, and are left out.
    """
    most = int(kinds.max(initial=0)) + 1
    ends = np.cumsum(calls)
    starts = ((ends - calls)[:, None] + calls[:, None] * np.arange(PARTS) // PARTS).ravel()
    numbers = np.repeat(np.arange(len(starts)) * most, np.diff(starts, append=len(kinds))) + kinds
    table = np.bincount(numbers, minlength=len(starts) * most).reshape(len(starts), most)
    return np.stack([table[:, :-1], np.cumsum(table[:, ::-1], axis=1)[:, :0:-1]])


def _excess(table: NDArray[np.intp], groups: int) -> float:
    """Return how much likelier counts are, in groups of successive parts, under laws that vary between groups, in nats.

    Each kind of run is counted among those that are of no kind before. The other laws are Polya's urns, each as likely;
    all together are as likely as the even law itself, so that kinds that are even cost little.
    """
    parts = table.shape[1]
    hits, runs = np.add.reduceat(table, np.unique(parts * np.arange(groups) // groups), axis=1)
    size = runs.sum(axis=0)
    hits = np.where(2 * hits.sum(axis=0) > size, runs - hits, hits)
    total = hits.sum(axis=0)
    balls = np.maximum(total - EXCESS, 1) / (EXCESS - 1)  # shape (laws, kinds)
    shares = np.maximum(balls[:, None] * (runs / np.maximum(size, 1)), 1e-300)  # none of a group without runs
    urns = (gammaln(shares + hits) - gammaln(shares)).sum(axis=1) + gammaln(balls) - gammaln(balls + total)
    # Binomial coefficients of the hypergeometric law, less the factorials that the urns have too.
    even = (gammaln(runs + 1) - gammaln(runs - hits + 1)).sum(axis=0) - gammaln(size + 1) + gammaln(size - total + 1)
    evidence = np.logaddexp.reduce(urns - even) - math.log(len(EXCESS))
    return float((np.logaddexp(0.0, np.where(total > EXCESS[0], evidence, -math.inf)) - math.log(2)).sum())


def _lag(kinds: NDArray[np.intp], *, padded: bool = False) -> tuple[float, int] | None:
    """Return the correlation of successive runs at a lag, and the lag, if one is larger than independent runs have.

    Products of what independent runs are, less its mean, are differences of a martingale: Freedman's inequality (1975)
    bounds how often their sum is as large, also where a few rare values make it so, and the number of lags is allowed
    for. Unless the sequence is `padded`, its end goes on with its beginning: half of the time, and less to see only at
    lags of most of its length.
    """
    runs = len(kinds)
    if runs < 2 or (kinds == kinds[0]).all():
        return None
    values = (kinds - np.mean(kinds)).astype(np.float32)  # of which fewer bits do
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
