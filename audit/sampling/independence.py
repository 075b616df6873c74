"""Whether runs are independent: compared between calls, along their sequence and at every lag.

Each comparison here refuses independent runs with probability below `DEPENDENT`. An audit makes a few dozen, which
together refuse a sound mechanism, or sound outputs, with probability below 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special, stats
from scipy.special import gammaln

__all__ = ["DEPENDENT", "UNSTEADY", "check_calls", "check_file"]

DEPENDENT = 1e-11  # probability below which independent runs are not believed to be independent, each time
GROUPS = (4, 32, 256)  # of successive calls that are compared, or as many as there are
CUTS = np.array([0.05, 0.25, 0.75, 0.95])  # quantiles between kinds of scores that are counted in each call
EXCESS = np.array([[1.2], [2], [5], [30], [300]])  # variances of counts between calls that are looked for, in those of chance
UNSTEADY = (
    "runs must be independent: later ones differ from the first, as if the mechanism counted them or spent a budget: "
    "make it anew in each"
)

Floats = NDArray[np.float64]


def check_calls(name: str, sides: Sequence[NDArray[Any]], calls: Sequence[NDArray[np.intp]] | None) -> None:
    """Refuse a mechanism whose runs depend on each other, by what each gave.

    `sides` are scores, or guesses as int8, of successive runs on either database, and `calls` the sizes of the calls
    that made them; None where runs are in random order, which tells nothing.
    """
    if calls is None:
        return
    sides = [_ranks(side) for side in sides]
    evidence, drift = _unevenness(sides, calls)
    if evidence > -math.log(DEPENDENT):
        raise ValueError(
            UNSTEADY
            if drift
            else "runs must be independent: randomness seems to be drawn once a call instead of once a run: "
            f"{name} differ more between calls than within them"
        )
    for side in sides:
        if lag := _lag(side):
            raise ValueError(f"runs must be independent: {name} of a run correlate by {lag[0]:.2g} with that {lag[1]} later")


def check_file(name: str, sides: Sequence[NDArray[Any]]) -> None:
    """Refuse outputs that depend on each other, by scores or guesses in the order in which they were given."""
    order = "outputs must be independent and in the order in which they were made: "
    sides = [_ranks(side) for side in sides]
    for side in sides:
        if lag := _lag(side, padded=True):
            raise ValueError(f"{order}{name} of a row correlate by {lag[0]:.2g} with that {lag[1]} later")
    if _unevenness(sides, [np.ones(len(side), np.intp) for side in sides])[0] > -math.log(DEPENDENT):
        raise ValueError(f"{order}{name} change along the file")


def _ranks(scores: NDArray[Any]) -> NDArray[Any]:
    """Return the ranks of scores, between 0 and 1; guesses stay as they are."""
    return scores if scores.dtype.kind == "i" else (stats.rankdata(scores) - 0.5) / max(1, len(scores))


def _unevenness(sides: Sequence[NDArray[Any]], calls: Sequence[NDArray[np.intp]]) -> tuple[float, bool]:
    """Return how much likelier an uneven law makes these runs than an even one, in nats, and whether they drift.

    Runs are counted by kind of score in each of some groups of successive calls. Given the totals, the counts of
    independent runs are hypergeometric whatever their law is. So the ratio of any other probability of them to that one
    has mean 1, and is 1 / p or more with probability p at most (Markov). That holds for rare kinds as for others.
    """
    tables = [_counts(ranks, sizes) for ranks, sizes in zip(sides, calls, strict=True)]
    most = max(map(len, tables))
    found = [sum(_excess(table, groups) for table in tables) for groups in sorted({min(most, n) for n in GROUPS})]
    return float(special.logsumexp(found)) - math.log(len(found)), found[0] > found[-1] / 2


def _counts(ranks: NDArray[Any], calls: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many runs of each call are of each kind, shape (calls, kinds)."""
    kinds = ranks.astype(np.intp) + 1 if ranks.dtype.kind == "i" else np.searchsorted(CUTS, ranks)
    most = 3 if ranks.dtype.kind == "i" else len(CUTS) + 1
    numbers = np.repeat(np.arange(len(calls)) * most, calls) + kinds
    return np.bincount(numbers, minlength=len(calls) * most).reshape(len(calls), most)


def _excess(table: NDArray[np.intp], groups: int) -> float:
    """Return how much likelier counts are, in groups of successive calls, under laws that vary between groups, in nats.

    Each kind of run is counted among those that are of no kind before. The other laws are Polya's urns, each as likely;
    all together are as likely as the even law itself, so that kinds that are even cost little.
    """
    if len(table) < 2 or groups < 2:
        return 0.0
    table = np.add.reduceat(table, np.unique(len(table) * np.arange(groups) // groups), axis=0)
    hits, runs = table[:, :-1], np.cumsum(table[:, ::-1], axis=1)[:, :0:-1]
    size = runs.sum(axis=0)
    hits = np.where(2 * hits.sum(axis=0) > size, runs - hits, hits)
    total = hits.sum(axis=0)
    balls = np.maximum(total - EXCESS, 1) / (EXCESS - 1)  # shape (laws, kinds)
    shares = np.maximum(balls[:, None] * (runs / np.maximum(size, 1)), 1e-300)  # none of a group without runs
    urns = (gammaln(shares + hits) - gammaln(shares)).sum(axis=1) + gammaln(balls) - gammaln(balls + total)
    # Binomial coefficients of the hypergeometric law, less the factorials that the urns have too.
    even = (gammaln(runs + 1) - gammaln(runs - hits + 1)).sum(axis=0) - gammaln(size + 1) + gammaln(size - total + 1)
    found = special.logsumexp(urns - even, axis=0) - math.log(len(EXCESS))
    return float((np.logaddexp(0.0, np.where(total > EXCESS[0], found, -math.inf)) - math.log(2)).sum())


def _lag(ranks: NDArray[Any], *, padded: bool = False) -> tuple[float, int] | None:
    """Return the correlation of successive runs at a lag, and the lag, if one is larger than independent runs have.

    Products of ranks of independent runs, or of guesses, are differences of a martingale: Freedman's inequality (1975)
    bounds how often their sum is as large, also where a few rare values make it so, and the number of lags is allowed
    for. Unless the sequence is `padded`, its end goes on with its beginning: half of the time, and less to see only at
    lags of most of its length.
    """
    runs = len(ranks)
    if runs < 2 or (ranks == ranks[0]).all():
        return None
    values = (ranks - np.mean(ranks)).astype(np.float32)  # of which fewer bits do
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
