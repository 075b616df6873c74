"""The benchmark mechanisms of the auditing literature, with the inputs on which it tests them and their true losses.

All promise a pure epsilon of 0.1, but for RAPPOR, whose promise follows from its probabilities, and two sparse vectors
side by side, which promise 0.2. Neighbors answer every query differently by at most 1, or answer one query differently,
or are two values of one user: what it is, the benchmark's note says. No list of people stands behind such inputs, so a
pair is taken on one's word: ``NeighborPair.declared(benchmark.x, benchmark.y, "add_remove")``.

References
----------
.. [1] Ding, Wang, Wang, Zhang and Kifer, "Detecting Violations of Differential Privacy", 2018: the patterns of inputs.
.. [2] Bichsel, Steffen, Bogunovic and Vechev, "DP-Sniper: Black-Box Discovery of Differential Privacy Violations using
   Classifiers", 2021: this list of mechanisms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.benchmarks.noisy_answers import (
    Laplace,
    LaplaceParallel,
    NoisyHist1,
    NoisyHist2,
    PrefixSum,
    TruncatedGeometric,
)
from algorithms.benchmarks.noisy_max import ReportNoisyMax1, ReportNoisyMax2, ReportNoisyMax3, ReportNoisyMax4
from algorithms.benchmarks.numeric_vector import SVT3, NumericalSVT, SVT34Parallel
from algorithms.benchmarks.rappor import RAPPOR, OneTimeRAPPOR
from algorithms.benchmarks.sparse_vector import SVT1, SVT2, SVT4, SVT5, SVT6

__all__ = [
    "RAPPOR",
    "SVT1",
    "SVT2",
    "SVT3",
    "SVT4",
    "SVT5",
    "SVT6",
    "Benchmark",
    "Laplace",
    "LaplaceParallel",
    "NoisyHist1",
    "NoisyHist2",
    "NumericalSVT",
    "OneTimeRAPPOR",
    "PrefixSum",
    "ReportNoisyMax1",
    "ReportNoisyMax2",
    "ReportNoisyMax3",
    "ReportNoisyMax4",
    "SVT34Parallel",
    "TruncatedGeometric",
    "benchmarks",
]

EPSILON = 0.1


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A mechanism, two neighboring databases, and what an auditor should find.

    Attributes
    ----------
    name : str
        As in the literature.
    mechanism : object
        Callable, with a `.claim`.
    x, y : ndarray of int, shape (queries,)
        Answers on the two databases: of the inputs of the literature, those with the largest loss.
    loss : float
        Largest privacy loss in nats between these two databases, in either order; infinite where there is no bound.
    sound : bool
        Whether the claim holds for them.
    note : str
        Which kind of neighbors they are, and what is special.
    """

    name: str
    mechanism: Any
    x: NDArray[np.int64]
    y: NDArray[np.int64]
    loss: float
    sound: bool
    note: str


def benchmarks() -> dict[str, Benchmark]:
    """Return the benchmark mechanisms by name, each with the pair of databases on which it is tested.

    Returns
    -------
    dict
        A `Benchmark` for each name, in the order in which the literature lists them.

    Notes
    -----
    Losses are those of these pairs, from the exact law. A mechanism may lose more on others: SVT4 comes to 0.175 with
    many queries, SVT1 and SVT2 to 0.1.

    Examples
    --------
    >>> known = benchmarks()["ReportNoisyMax3"]
    >>> known.x.tolist(), known.y.tolist(), round(known.loss, 6), known.sound
    ([1, 1, 1, 1, 1], [2, 2, 2, 2, 2], 0.25, False)
    """
    five, ten = [1] * 5, [1] * 10
    one_below, all_above = [0, 2, 2, 2, 2], [2] * 5
    half, rising = [2] * 5 + [0] * 5, [2] * 10
    cell = "one cell changes by 1"
    every = "every answer changes by 1"
    last_and_low = np.array([[0] * 9 + [1], [0] * 9 + [-1e4]])  # all below but the last, whose answer is far below
    codes = [0] * 5 + [1, 1] + [-1] * 3
    answered = np.array([codes, [0] * 5 + [1, 1] + [0] * 3])  # what rose is below, what fell is above
    rows = [
        _known(Laplace(EPSILON), [1], [0], True, "one answer changes by 1", at=[1]),
        _known(TruncatedGeometric(EPSILON), [1], [0], False, "one person more"),
        _known(NoisyHist1(EPSILON), five, [2, 1, 1, 1, 1], True, cell, at=five),
        _known(NoisyHist2(EPSILON), five, [2, 1, 1, 1, 1], False, cell, at=five),
        _known(ReportNoisyMax1(EPSILON), five, one_below, True, every),
        _known(ReportNoisyMax2(EPSILON), five, one_below, True, every),
        _known(ReportNoisyMax3(EPSILON), five, all_above, False, f"{every}; grows with the queries", at=-1e4),
        _known(ReportNoisyMax4(EPSILON), five, all_above, False, f"{every}; outputs below 2 on one side", at=1.5),
        _known(SVT1(EPSILON, threshold=0.5), ten, half, True, every),
        _known(SVT2(EPSILON), ten, half, True, every),
        _known(SVT3(EPSILON), ten, rising, False, f"{every}; grows with the queries", at=last_and_low),
        _known(SVT4(EPSILON), ten, half, False, f"{every}; 0.175 with many queries"),
        _known(SVT5(EPSILON), ten, half, False, f"{every}; an order of answers that one side has not"),
        _known(SVT6(EPSILON), ten, half, False, f"{every}; grows with the queries"),
        _known(RAPPOR(), [1], [0], True, "two values that differ in 6 bits; 8 would lose 0.4"),
        _known(OneTimeRAPPOR(), [1], [0], True, "two values that differ in 6 bits; 8 would lose 0.8"),
        _known(LaplaceParallel(EPSILON), [1], [0], True, "one answer changes by 1", at=[1] * 20),
        _known(
            SVT34Parallel(EPSILON),
            ten,
            half,
            False,
            f"{every}; grows with the queries",
            at=np.array([*answered, codes]),
        ),
        _known(PrefixSum(EPSILON), ten, rising, False, f"{every}; 0.1 holds where one does", at=np.zeros(10)),
        _known(NumericalSVT(EPSILON, positives=2), ten, half, True, every, at=answered),
    ]
    return {row.name: row for row in rows}


def _known(
    mechanism: Any, x: list[int], y: list[int], sound: bool, note: str, *, at: ArrayLike | None = None
) -> Benchmark:
    """Look up the largest loss in the exact law, or where that is continuous, at an output that has it."""
    data = np.array(x), np.array(y)
    for answers in data:
        answers.flags.writeable = False
    name = type(mechanism).__name__
    first = Benchmark(name, mechanism, *data, loss=0.0, sound=sound, note=note)
    if at is None:
        law = mechanism.exact_loss(first)
        loss = max(law.maximum, law.reverse().maximum)
    else:
        on_x, on_y = (mechanism.log_likelihood(np.array([at]), answers)[0] for answers in data)
        loss = abs(float(on_x - on_y))
    return replace(first, loss=loss)
