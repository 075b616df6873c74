"""Report noisy max: two correct mechanisms release the query with the largest noisy answer, two wrong ones the answer.

Every answer changes by at most 1 between neighbors, and gets noise of scale ``2 / epsilon``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from algorithms.benchmarks.benchmark import Floats, PureQueryMechanism, check_pair
from algorithms.noise import Laplace
from algorithms.noise.counts import Pair
from algorithms.noise.quadrature import Panels, laplace_log_cdf

__all__ = ["ReportNoisyMax1", "ReportNoisyMax2", "ReportNoisyMax3", "ReportNoisyMax4"]


class _NoisyMax(PureQueryMechanism):
    exponential: ClassVar[bool] = False  # whether noise is exponential (the magnitude of Laplace noise)
    pick: ClassVar[Literal["argmax", "max"]] = "argmax"  # release the index or the value of the largest noisy answer

    def _shape(self, queries: int) -> tuple[int, ...]:
        return ()

    def _run(self, answers: Floats, runs: int, rng: np.random.Generator) -> NDArray[Any]:
        noise = self._noise().sample((runs, answers.size), rng)
        released: NDArray[Any] = getattr(answers + (np.abs(noise) if self.exponential else noise), self.pick)(axis=1)
        return released

    def _noise(self) -> Laplace:
        return Laplace(2 / self.epsilon)


class ReportNoisyMax1(_NoisyMax):
    """Report noisy max with Laplace noise, correct: releases the index.

    **Claim.** Pure DP with `epsilon`, which is approached with many queries.
    **Source.** Ding et al., 2018, algorithm 5; Dwork and Roth, 2014, claim 3.9.
    """

    def _log_law(self, outputs: NDArray[Any], answers: Floats) -> Floats:
        known = np.isin(outputs, np.arange(answers.size))
        index = np.where(known, outputs, 0).astype(np.int64)
        return np.where(known, self._log_probabilities(answers)[index], -np.inf)

    def _log_probabilities(self, answers: Floats) -> Floats:
        scale = self._noise().scale
        panels = Panels(answers, scale, answers.size / scale)
        noise = panels.points - answers[:, None]
        largest = np.eye(answers.size)
        nothing = np.zeros(panels.points.size)
        others = (1 - largest, laplace_log_cdf(noise, scale))
        return panels.log_integrals(nothing, (largest, self._noise().logpdf(noise)), others)


class ReportNoisyMax2(ReportNoisyMax1):
    """Report noisy max with exponential noise, correct: releases the index.

    **Claim.** Pure DP with `epsilon`, reached where one answer falls by 1 and all others rise by 1.
    **Source.** Ding et al., 2018, algorithm 6; Dwork and Roth, 2014, section 3.3.
    """

    exponential: ClassVar[bool] = True

    def _log_probabilities(self, answers: Floats) -> Floats:
        # With u = exp(-(v - highest) / scale) for the largest noisy answer v, the density of index i is a polynomial
        # in u on (0, 1), so Gauss-Legendre quadrature with half as many points as queries is exact.
        log_share = (answers - answers.max()) / self._noise().scale
        points, weights = np.polynomial.legendre.leggauss(answers.size // 2 + 1)
        log_cdf = np.log1p(-np.exp(log_share)[:, None] * (1 + points) / 2)
        return np.asarray(log_share + logsumexp(log_cdf.sum(axis=0) - log_cdf + np.log(weights / 2), axis=1))


class ReportNoisyMax3(_NoisyMax):
    """Noisy max that releases the largest noisy answer in place of its index; Laplace noise.

    **Bug.** For an output far below all answers, all noises must be far below 0: if all answers rise by 1, the loss
    comes to ``epsilon / 2`` per query. **Source.** Ding et al., 2018, algorithm 7.
    """

    pick: ClassVar[Literal["argmax", "max"]] = "max"

    def _log_law(self, outputs: NDArray[Any], answers: Floats) -> Floats:
        log_pdf, log_cdf = self._laws(outputs - answers[:, None])
        with np.errstate(invalid="ignore"):  # -inf minus -inf, where the output is impossible
            others = log_cdf.sum(axis=0) - log_cdf
        possible = np.isfinite(log_cdf).all(axis=0)
        return np.where(possible, logsumexp(log_pdf + np.where(possible, others, 0.0), axis=0), -np.inf)

    def _laws(self, noise: Floats) -> tuple[Floats, Floats]:
        """Log density and log distribution function of the noise."""
        return self._noise().logpdf(noise), laplace_log_cdf(noise, self._noise().scale)


class ReportNoisyMax4(ReportNoisyMax3):
    """Noisy max that releases the largest noisy answer in place of its index; exponential noise.

    **Bug.** No output is below the largest answer: if that answer changes, the loss is infinite.
    **Source.** Ding et al., 2018, algorithm 8.
    """

    exponential: ClassVar[bool] = True

    def support_masses(self, pair: Pair) -> tuple[float, float]:
        """Return the probability on `x` of outputs that are impossible on `y`, and the reverse."""
        x, y = check_pair(pair)
        below_y, below_x = (np.exp(self._laws(one.max() - other)[1].sum()) for one, other in ((y, x), (x, y)))
        return float(below_y), float(below_x)

    def _laws(self, noise: Floats) -> tuple[Floats, Floats]:
        scale = self._noise().scale
        with np.errstate(divide="ignore"):
            log_cdf = np.log(-np.expm1(-np.maximum(noise, 0.0) / scale))
        return np.where(noise >= 0, -noise / scale - np.log(scale), -np.inf), log_cdf
