"""The sparse vector technique, which reports the answers above a threshold: six published variants, four of them wrong.

SVT1 to SVT6 are algorithms 1 to 6 of Lyu, Su and Li, "Understanding the Sparse Vector Technique for Differential
Privacy", 2017, whose figure 2 compares the six. Every answer changes by at most 1 between neighbors. The output has one
code a query: 1 above the threshold, 0 below, -1 not reached because the run had stopped. `SVT3` is in `numeric_vector`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.benchmarks.benchmark import Floats, PureQueryMechanism, check_pair, unique_rows
from algorithms.noise import Laplace
from algorithms.noise.counts import Pair
from algorithms.noise.quadrature import Panels, laplace_log_cdf
from audit.arguments import whole_number

__all__ = ["ABOVE", "BELOW", "SVT1", "SVT2", "SVT4", "SVT5", "SVT6", "UNREACHED", "SparseVector"]

ABOVE, BELOW, UNREACHED = 1, 0, -1
Codes = NDArray[np.int8]


@dataclass(frozen=True)
class SparseVector(PureQueryMechanism):
    """Common base of the six variants; its defaults are those of `SVT6`."""

    threshold: float = 1.0  # threshold of the answers, in their units

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold}")

    def _scales(self) -> tuple[float, float]:
        """Scales of the Laplace noise of the threshold, and of every answer."""
        return 2 / self.epsilon, 2 / self.epsilon

    def _run(self, answers: Floats, runs: int, rng: np.random.Generator) -> NDArray[Any]:
        return self._compared(answers, runs, rng)[0]

    def _log_law(self, outputs: NDArray[np.generic], answers: Floats) -> Floats:
        rows, which = unique_rows(outputs)
        legal = self._legal(rows)
        total = np.full(len(rows), -np.inf)
        total[legal] = self._log_probability(rows[legal], answers)
        return total[which]

    def _limit(self, queries: int) -> int:
        """Return the number of answers above the threshold after which a run stops."""
        return queries

    def _noisy(self, answers: Floats, runs: int, rng: np.random.Generator) -> Floats:
        noisy = Laplace(self._scales()[1]).sample((runs, answers.size), rng)
        noisy += answers
        return noisy

    def _above(self, noisy: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
        return noisy >= Laplace(self._scales()[0]).sample((len(noisy), 1), rng) + self.threshold

    def _compared(self, answers: Floats, runs: int, rng: np.random.Generator) -> tuple[Codes, Floats]:
        """Codes, and the noisy answers that were compared, shape (runs, queries) each."""
        noisy = self._noisy(answers, runs, rng)
        above = self._above(noisy, rng)
        codes = above.astype(np.int8)
        codes[_earlier(above) >= self._limit(answers.size)] = UNREACHED
        return codes, noisy

    def _legal(self, codes: NDArray[np.generic]) -> NDArray[np.bool_]:
        unreached = _earlier(codes == ABOVE) >= self._limit(codes.shape[1])
        known = (codes == ABOVE) | (codes == BELOW) | (codes == UNREACHED)
        return np.asarray((known & ((codes == UNREACHED) == unreached)).all(axis=1))

    def _log_probability(self, codes: NDArray[np.generic], answers: Floats) -> Floats:
        """Log probability of possible rows of codes: one integral for each draw of the threshold's noise."""
        level, noise = self._scales()
        gaps = answers - self.threshold
        panels = Panels(np.append(gaps, 0.0), level, 1 / level + answers.size / noise)
        distance = panels.points - gaps[:, None]
        log_below, log_above = laplace_log_cdf(distance, noise), laplace_log_cdf(-distance, noise)
        log_level = Laplace(level).logpdf(panels.points)
        draws = self._draws(codes)
        total = np.zeros(len(codes))
        for draw in range(int(draws.max(initial=0)) + 1):
            below, above = ((draws == draw) & (codes == code) for code in (BELOW, ABOVE))
            total += panels.log_integrals(log_level, (below, log_below), (above, log_above))
        return total

    def _draws(self, codes: NDArray[np.generic]) -> NDArray[np.int64]:
        """Index of the draw of the threshold's noise with which each query is compared."""
        return np.zeros(codes.shape, np.int64)


@dataclass(frozen=True)
class SVT1(SparseVector):
    """Sparse vector, correct: stops after a number of answers above the threshold, and noise grows with this number.

    **Claim.** Pure DP with `epsilon`, which is approached with many queries.
    **Source.** Lyu, Su and Li, 2017, algorithm 1 and theorem 2.
    """

    positives: int = 1  # answers above the threshold after which a run stops

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("positives", self.positives, least=1)

    def _scales(self) -> tuple[float, float]:
        return 2 / self.epsilon, 4 * self.positives / self.epsilon

    def _limit(self, queries: int) -> int:
        return self.positives


class SVT2(SVT1):
    """Sparse vector, correct: as `SVT1`, but the noise of the threshold is drawn anew after every answer above it.

    **Claim.** Pure DP with `epsilon`. If one answer above the threshold is allowed, it is `SVT1`.
    **Source.** Lyu, Su and Li, 2017, algorithm 2, after Dwork and Roth, 2014.
    """

    def _scales(self) -> tuple[float, float]:
        return 2 * self.positives / self.epsilon, 4 * self.positives / self.epsilon

    def _above(self, noisy: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
        levels = Laplace(self._scales()[0]).sample((len(noisy), min(self.positives, noisy.shape[1])), rng)
        levels += self.threshold
        above, used = np.empty(noisy.shape, bool), np.zeros(len(noisy), np.int64)
        for query in range(noisy.shape[1]):
            # A run that has used all draws has stopped: later codes are discarded, so any level will do.
            current = levels[np.arange(len(noisy)), np.minimum(used, levels.shape[1] - 1)]
            above[:, query] = noisy[:, query] >= current
            used += above[:, query]
        return above

    def _draws(self, codes: NDArray[np.generic]) -> NDArray[np.int64]:
        return _earlier(codes == ABOVE)


class SVT4(SVT1):
    """Sparse vector with too little noise on the answers: it does not grow with the number of answers above.

    **Bug.** The threshold has a quarter of the budget and the answers have the rest, but the noise ignores the
    answers' sensitivity and number: with many queries the loss tends to ``(1 + 6 positives) / 4`` times `epsilon`.
    **Source.** Lyu, Su and Li, 2017, algorithm 4, after Lee and Clifton, 2014.
    """

    def _scales(self) -> tuple[float, float]:
        return 4 / self.epsilon, 4 / (3 * self.epsilon)


class SVT5(SparseVector):
    """Sparse vector without noise on the answers: only the threshold is noisy.

    **Bug.** The output reveals the order of the answers. If neighbors order two differently, the loss is infinite.
    **Source.** Lyu, Su and Li, 2017, algorithm 5, after Stoddard, Chen and Machanavajjhala, 2014.
    """

    def _noisy(self, answers: Floats, runs: int, rng: np.random.Generator) -> Floats:
        return np.broadcast_to(answers, (runs, answers.size))

    def support_masses(self, pair: Pair) -> tuple[float, float]:
        """Return the probability on `x` of outputs that are impossible on `y`, and the reverse."""
        x, y = check_pair(pair)
        return self._alone(x, y), self._alone(y, x)

    def _alone(self, here: Floats, other: Floats) -> float:
        codes = (here >= np.append(np.unique(here), np.inf)[:, None]).astype(np.int8)  # all possible outputs
        impossible = np.isneginf(self.log_likelihood(codes, other))
        return float(np.exp(self.log_likelihood(codes, here))[impossible].sum())

    def _log_probability(self, codes: NDArray[np.generic], answers: Floats) -> Floats:
        gaps = answers - self.threshold
        low = np.where(codes == BELOW, gaps, -np.inf).max(axis=1)  # lower limit of the threshold's noise
        high = np.where(codes == ABOVE, gaps, np.inf).min(axis=1)
        noise = Laplace(self._scales()[0])
        mass = np.where(low > 0, noise.sf(low) - noise.sf(high), noise.cdf(high) - noise.cdf(low))
        with np.errstate(divide="ignore"):
            return np.log(np.where(low < high, mass, 0.0))


class SVT6(SparseVector):
    """Sparse vector without a stop: noise of half the budget on the threshold, of half the budget on every answer.

    **Claim.** Pure DP with `epsilon`, however many answers are above the threshold.
    **Bug.** Nothing limits the answers above: the loss grows with their number, up to ``epsilon / 2`` a query.
    **Source.** Lyu, Su and Li, 2017, algorithm 6, after Chen, Xiao, Zhang and Xu, 2015.
    """


def _earlier(above: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.asarray(np.cumsum(above, axis=1) - above)
