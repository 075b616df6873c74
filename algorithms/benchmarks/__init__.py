"""The benchmark mechanisms of the auditing literature, with their true losses; they are not systems in use.

All promise pure DP with an epsilon of 0.1, with two exceptions: RAPPOR's promise follows from its probabilities, and
the two sparse vector mechanisms side by side promise 0.2. The note of each benchmark says how its neighbors differ. The
inputs are answers to queries, not lists of people, so the user declares the pair of neighbors.

References
----------
.. [1] Ding, Wang, Wang, Zhang and Kifer, "Detecting Violations of Differential Privacy", 2018: the patterns of inputs.
.. [2] Bichsel, Steffen, Bogunovic and Vechev, "DP-Sniper: Black-Box Discovery of Differential Privacy Violations using
   Classifiers", 2021: this list of mechanisms.
.. [3] Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data Analysis", 2006; Dwork and
   Roth, "The Algorithmic Foundations of Differential Privacy", 2014; Wang, Ding, Wang, Kifer and Zhang, "Proving
   Differential Privacy with Shadow Execution", 2019: where some of them come from.
"""

from __future__ import annotations

import numpy as np

from algorithms.benchmarks import noisy_answers
from algorithms.benchmarks.benchmark import Benchmark
from algorithms.benchmarks.noisy_max import ReportNoisyMax1, ReportNoisyMax2, ReportNoisyMax3, ReportNoisyMax4
from algorithms.benchmarks.numeric_vector import SVT3, NumericalSVT, SVT34Parallel
from algorithms.benchmarks.rappor import RAPPOR, OneTimeRAPPOR
from algorithms.benchmarks.sparse_vector import SVT1, SVT2, SVT4, SVT5, SVT6

__all__ = ["Benchmark", "benchmarks"]

EPSILON = 0.1  # promised by all mechanisms except RAPPOR
# Answers on neighboring databases, and descriptions of how the answers differ.
CELLS, MORE = [1] * 5, [2, 1, 1, 1, 1]
BELOW, ABOVE = [0, 2, 2, 2, 2], [2] * 5
TEN, HALF, HIGH = [1] * 10, [2] * 5 + [0] * 5, [2] * 10
ONE, EVERY, GROWS = "one answer changes by 1", "every answer changes by 1", "grows with the queries"
# Outputs with the largest loss.
CODES = [0] * 5 + [1, 1] + [-1] * 3  # the 5 answers that are larger on y are below, 2 that are smaller are above
ANSWERED = [CODES, [0] * 5 + [1, 1] + [0] * 3]
STOPPED, ABOVE_ROSE, ABOVE_FELL = [0] * 5 + [1] + [-1] * 4, [1] * 5 + [0] * 5, [0] * 5 + [1] * 5
FILTER = RAPPOR().bloom(1)
LAST_AND_LOW = [[0] * 9 + [1], [0] * 9 + [-1e4]]  # only the last query is above; its released answer is very small
ZEROS = np.zeros(10)

_KNOWN = (
    Benchmark(noisy_answers.Laplace(EPSILON), [1], [0], True, ONE, at=[1]),
    Benchmark(noisy_answers.TruncatedGeometric(EPSILON), [1], [0], False, "one person more", at=[1]),
    Benchmark(noisy_answers.NoisyHist1(EPSILON), CELLS, MORE, True, "one cell changes by 1", at=CELLS),
    Benchmark(noisy_answers.NoisyHist2(EPSILON), CELLS, MORE, False, "one cell changes by 1", at=CELLS),
    Benchmark(ReportNoisyMax1(EPSILON), CELLS, BELOW, True, EVERY, at=0),
    Benchmark(ReportNoisyMax2(EPSILON), CELLS, BELOW, True, EVERY, at=0),
    Benchmark(ReportNoisyMax3(EPSILON), CELLS, ABOVE, False, f"{EVERY}; {GROWS}", at=-1e4),
    Benchmark(ReportNoisyMax4(EPSILON), CELLS, ABOVE, False, f"{EVERY}; outputs below 2 on one side", at=1.5),
    Benchmark(SVT1(EPSILON, threshold=0.5), TEN, HALF, True, EVERY, at=STOPPED),
    Benchmark(SVT2(EPSILON), TEN, HALF, True, EVERY, at=STOPPED),
    Benchmark(SVT3(EPSILON), TEN, HIGH, False, f"{EVERY}; {GROWS}", at=LAST_AND_LOW),
    Benchmark(SVT4(EPSILON), TEN, HALF, False, f"{EVERY}; 0.175 with many queries", at=STOPPED),
    Benchmark(SVT5(EPSILON), TEN, HALF, False, f"{EVERY}; an order of answers that one side has not", at=ABOVE_ROSE),
    Benchmark(SVT6(EPSILON), TEN, HALF, False, f"{EVERY}; {GROWS}", at=ABOVE_FELL),
    Benchmark(RAPPOR(), [1], [0], True, "two values that differ in 6 bits; 8 would lose 0.4", at=FILTER),
    Benchmark(OneTimeRAPPOR(), [1], [0], True, "two values that differ in 6 bits; 8 would lose 0.8", at=FILTER),
    Benchmark(noisy_answers.LaplaceParallel(EPSILON), [1], [0], True, ONE, at=[1] * 20),
    Benchmark(SVT34Parallel(EPSILON), TEN, HALF, False, f"{EVERY}; {GROWS}", at=[*ANSWERED, CODES]),
    Benchmark(noisy_answers.PrefixSum(EPSILON), TEN, HIGH, False, f"{EVERY}; 0.1 holds where one does", at=ZEROS),
    Benchmark(NumericalSVT(EPSILON, positives=2), TEN, HALF, True, EVERY, at=ANSWERED),
)


def benchmarks() -> dict[str, Benchmark]:
    """Return a `Benchmark` for each name, with the databases on which it is tested; others may have a larger loss."""
    return {known.name: known for known in _KNOWN}
