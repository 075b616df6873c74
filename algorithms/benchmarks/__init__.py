"""The benchmark mechanisms of the auditing literature, with their true losses; systems that are in use live elsewhere.

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

from algorithms.benchmarks import noisy_answers, noisy_max, numeric_vector, rappor, sparse_vector
from algorithms.benchmarks.benchmark import Benchmark

__all__ = ["Benchmark", "benchmarks"]

ORDER = (
    *("Laplace", "TruncatedGeometric", "NoisyHist1", "NoisyHist2"),
    *("ReportNoisyMax1", "ReportNoisyMax2", "ReportNoisyMax3", "ReportNoisyMax4"),
    *("SVT1", "SVT2", "SVT3", "SVT4", "SVT5", "SVT6"),
    *("RAPPOR", "OneTimeRAPPOR", "LaplaceParallel", "SVT34Parallel", "PrefixSum", "NumericalSVT"),
)  # of the literature


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
    modules = (noisy_answers, noisy_max, numeric_vector, rappor, sparse_vector)
    known = {one.name: one for module in modules for one in module.KNOWN}
    return {name: known[name] for name in ORDER}
