"""Sparse vector mechanisms that also release noisy answers, and two sparse vector mechanisms side by side.

The output of a run has two rows: the codes of `sparse_vector` (1 above the threshold, 0 below, -1 not reached), and the
noisy answers of the queries above it. A missing answer is written as 0; the code distinguishes it from an answer of 0.
Every answer changes by at most 1 between neighbors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from algorithms.benchmarks.benchmark import Floats, PureQueryMechanism, unique_rows
from algorithms.benchmarks.sparse_vector import ABOVE, BELOW, SVT1, SVT4
from algorithms.noise import Laplace
from algorithms.noise.quadrature import Panels, gauss, laplace_log_cdf
from audit.claims import PureDP

__all__ = ["SVT3", "NumericalSVT", "SVT34Parallel"]

BLOCK = 2**18  # answers whose likelihood is computed at a time


class NumericalSVT(SVT1):
    """Numerical sparse vector, correct: releases an answer above the threshold with fresh noise.

    **Claim.** Pure DP with `epsilon`, a third of it for each of the three noises.
    **Source.** Wang, Ding, Wang, Kifer and Zhang, 2019, section 6; Dwork and Roth, 2014, section 3.6.
    """

    def _scales(self) -> tuple[float, float]:
        return 3 / self.epsilon, 6 * self.positives / self.epsilon

    def _release_noise(self) -> Laplace:
        return Laplace(3 * self.positives / self.epsilon)

    def _shape(self, queries: int) -> tuple[int, ...]:
        return 2, queries

    def _run(self, answers: Floats, runs: int, rng: np.random.Generator) -> Floats:
        codes, compared = self._compared(answers, runs, rng)
        return np.stack([codes, np.where(codes == ABOVE, self._published(answers, compared, rng), 0.0)], axis=1)

    def _log_law(self, outputs: NDArray[np.generic], answers: Floats) -> Floats:
        released = outputs.astype(np.float64)
        codes, published = released[:, 0], released[:, 1]
        density = np.full(len(released), -np.inf)
        legal = self._legal(codes) & ((codes == ABOVE) | (published == 0)).all(axis=1)
        codes, published = codes[legal].astype(np.int8), published[legal]
        log_noise = np.where(codes == ABOVE, self._release_noise().logpdf(published - answers), 0.0)
        density[legal] = log_noise.sum(axis=1) + self._log_codes(codes, published, answers)
        return density

    def _published(self, answers: Floats, compared: Floats, rng: np.random.Generator) -> Floats:
        return answers + self._release_noise().sample(compared.shape, rng)

    def _log_codes(self, codes: NDArray[np.int8], published: Floats, answers: Floats) -> Floats:
        return super()._log_law(codes, answers)


class SVT3(NumericalSVT):
    """Sparse vector that releases the very noisy answer that it has compared with the threshold.

    **Bug.** A released answer `v` reveals that the noisy threshold was at most `v`, so the threshold's noise no longer
    protects the answers below. A query adds up to ``epsilon / (2 positives)`` to the loss, as much if all rise by 1.
    **Source.** Lyu, Su and Li, 2017, algorithm 3, after Roth's lecture notes, 2011.
    """

    def _scales(self) -> tuple[float, float]:
        return 2 / self.epsilon, 2 * self.positives / self.epsilon

    def _release_noise(self) -> Laplace:
        return Laplace(self._scales()[1])

    def _published(self, answers: Floats, compared: Floats, rng: np.random.Generator) -> Floats:
        return compared

    def _log_codes(self, codes: NDArray[np.int8], published: Floats, answers: Floats) -> Floats:
        density = np.empty(len(codes))
        # The largest possible noise of the threshold, given the released answers.
        highest = np.where(codes == ABOVE, published, np.inf).min(axis=1) - self.threshold
        rows, which = unique_rows(codes == BELOW)
        for row, below in enumerate(rows):
            runs = np.flatnonzero(which == row)
            density[runs] = self._log_below(answers[below.astype(bool)], highest[runs])
        return density

    def _log_below(self, answers: Floats, highest: Floats) -> Floats:
        """Log probability of threshold noise up to `highest` with all these noisy answers below the noisy threshold."""
        level, noise = self._scales()
        gaps = answers - self.threshold
        rise = 1 / level + answers.size / noise  # slope of the log integrand below all kinks
        panels = Panels(np.append(gaps, 0.0), level, rise)
        edges = panels.edges

        def log_integrand(points: Floats) -> Floats:
            total = Laplace(level).logpdf(points)
            for gap in gaps:
                total += laplace_log_cdf(points - gap, noise)
            return total

        pieces = logsumexp((log_integrand(panels.points) + panels.log_weights).reshape(edges.size - 1, -1), axis=1)
        start = log_integrand(edges[:1]) - math.log(rise)
        upto = np.logaddexp.accumulate(np.append(start, pieces))
        density = np.empty(highest.size)
        for rows in (slice(start, start + BLOCK) for start in range(0, highest.size, BLOCK)):
            high = np.minimum(highest[rows], edges[-1])
            last = np.searchsorted(edges, high, side="right") - 1
            inside = last >= 0
            points, log_weights = gauss(edges[np.maximum(last, 0)], np.where(inside, high, edges[0]))
            rest = logsumexp(log_integrand(points) + log_weights, axis=1)
            density[rows] = np.where(inside, np.logaddexp(upto[last], rest), log_integrand(high) - math.log(rise))
        return density


@dataclass(frozen=True)
class SVT34Parallel(PureQueryMechanism):
    """`SVT3` and `SVT4` on the same queries, independently: both outputs are released.

    **Claim.** Pure DP with twice `epsilon`, as each promises `epsilon`. **Bug.** The bugs of both; their losses add up.
    **Source.** Bichsel et al., 2021.
    """

    threshold: float = 1.0  # threshold of the answers, in their units
    positives: int = 2  # answers above it after which each of the two stops

    def __post_init__(self) -> None:
        _ = self.numeric, self.codes  # refuse bad parameters

    @property
    def numeric(self) -> SVT3:
        """The mechanism that also releases answers."""
        return SVT3(self.epsilon, self.threshold, self.positives)

    @property
    def codes(self) -> SVT4:
        """The mechanism that releases codes only."""
        return SVT4(self.epsilon, self.threshold, self.positives)

    @property
    def claim(self) -> PureDP:
        """Joint promise of the two mechanisms."""
        return PureDP(2 * self.epsilon)

    def _shape(self, queries: int) -> tuple[int, ...]:
        return 3, queries

    def _run(self, answers: Floats, runs: int, rng: np.random.Generator) -> Floats:
        numeric, codes = self.numeric._run(answers, runs, rng), self.codes._run(answers, runs, rng)
        return np.concatenate([numeric, codes[:, None]], axis=1)

    def _log_law(self, outputs: NDArray[np.generic], answers: Floats) -> Floats:
        return self.numeric._log_law(outputs[:, :2], answers) + self.codes._log_law(outputs[:, 2], answers)
