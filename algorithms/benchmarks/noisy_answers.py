"""Mechanisms that add independent noise to every answer, alone or composed, and the truncated geometric mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms import noise
from algorithms.benchmarks.benchmark import Floats, PureQueryMechanism, check_answers
from audit.arguments import whole_number

__all__ = ["Laplace", "LaplaceParallel", "NoisyHist1", "NoisyHist2", "PrefixSum", "TruncatedGeometric"]


class Laplace(PureQueryMechanism):
    """Laplace mechanism: noise of scale ``1 / epsilon`` on every answer.

    **Claim.** Pure DP with `epsilon` when one answer changes by at most 1, and all others stay.
    **Source.** Dwork, McSherry, Nissim and Smith, 2006, proposition 1.
    """

    entrywise: ClassVar[bool] = True
    blocks: ClassVar[bool] = False

    def _noise(self) -> noise.Laplace:
        return noise.Laplace(1 / self.epsilon)

    def _run(self, answers: Floats, runs: int, rng: np.random.Generator) -> Floats:
        released = self._noise().sample((runs, answers.size), rng)
        released += answers
        return released

    def _log_law(self, outputs: Floats, answers: Floats) -> Floats:
        return np.asarray(self._noise().logpdf(outputs - answers).sum(axis=1))


class NoisyHist1(Laplace):
    """Noisy histogram, correct: Laplace noise of scale ``1 / epsilon`` on every cell.

    **Source.** Ding et al., 2018, algorithm 9.
    """


class NoisyHist2(Laplace):
    """Noisy histogram with the scale upside down: Laplace noise of scale `epsilon` on every cell.

    **Bug.** The loss is ``1 / epsilon``: 10 where 0.1 is promised. **Source.** Ding et al., 2018, algorithm 10.
    """

    def _noise(self) -> noise.Laplace:
        return noise.Laplace(self.epsilon)


@dataclass(frozen=True)
class LaplaceParallel(Laplace):
    """Many Laplace mechanisms on the same answers, each with a part of the budget; all outputs are released.

    **Claim.** That of `Laplace`. The loss is `epsilon` only if every part's output is beyond the answer, on the side
    away from the other database: with probability about 2^-20 for 20 parts. **Source.** Bichsel et al., 2021.
    """

    entrywise: ClassVar[bool] = False

    parts: int = 20  # releases that share the budget

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("parts", self.parts, least=1)

    def _noise(self) -> noise.Laplace:
        return noise.Laplace(self.parts / self.epsilon)

    def _answers(self, queries: ArrayLike) -> Floats:
        return np.tile(check_answers(queries), self.parts)  # part after part


class PrefixSum(Laplace):
    """Running sums of noisy answers: the first, the first two, and so on, with noise of scale ``1 / epsilon`` each.

    **Claim.** That of `Laplace`. The noisy answers can be computed from differences of the sums, so if all `n` answers
    change, the loss is ``n * epsilon``. **Source.** Wang, Ding, Wang, Kifer and Zhang, 2019, section 6.
    """

    entrywise: ClassVar[bool] = False

    def _run(self, answers: Floats, runs: int, rng: np.random.Generator) -> Floats:
        noisy = super()._run(answers, runs, rng)
        return np.cumsum(noisy, axis=1, out=noisy)

    def _log_law(self, outputs: Floats, answers: Floats) -> Floats:
        return super()._log_law(np.diff(outputs, axis=1, prepend=0.0), answers)


@dataclass(frozen=True)
class TruncatedGeometric(PureQueryMechanism):
    """Geometric noise cut off at 0 and at the number of people, by whole-number arithmetic alone; wrong logarithm.

    **Bug.** With ``k = ceil(log2(2 / epsilon))`` the loss ``log(1 + 2**-k)`` is at most ``epsilon / 2``. Here, as in
    DP-Sniper's benchmark, the logarithm is natural: the loss is 0.1178, not the promised 0.1; with the right k, 0.0308.
    **Source.** Balcer and Vadhan, "Differential Privacy on Finite Computers", 2018, algorithm 4.8 and theorem 4.7.
    Bichsel et al., 2021.
    """

    blocks: ClassVar[bool] = False

    people: int = 5  # the largest count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon > 1:
            raise ValueError(f"epsilon must be at most 1, got {self.epsilon}")
        whole_number("people", self.people, least=1)
        if self._power_and_total[1] >= 2**63:
            raise ValueError(f"people must be few enough for probabilities in 63 bits, got {self.people}")

    @property
    def _power_and_total(self) -> tuple[int, int]:
        power = 1 << math.ceil(math.log(2 / self.epsilon))
        return power, (2 * power + 1) * (power + 1) ** (int(self.people) - 1)

    def _run(self, answers: Floats, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        released = rng.integers(1, self._power_and_total[1], (runs, answers.size), endpoint=True)
        for query, count in enumerate(answers):
            released[:, query] = np.searchsorted(self._scaled_cdf(int(count)), released[:, query])
        return released

    def _log_law(self, outputs: NDArray[np.generic], answers: Floats) -> Floats:
        possible = np.asarray(np.isin(outputs, np.arange(self.people + 1)).all(axis=1))
        index = np.where(possible[:, None], outputs, 0).astype(np.int64)
        log_p = np.zeros(len(index))
        for query, count in enumerate(answers):
            log_pmf = np.log(np.diff(self._scaled_cdf(int(count)), prepend=0)) - math.log(self._power_and_total[1])
            log_p += log_pmf[index[:, query]]
        return np.where(possible, log_p, -np.inf)

    def _answers(self, queries: ArrayLike) -> Floats:
        counts = check_answers(queries)
        wrong = counts[(counts < 0) | (counts > self.people) | (counts != np.floor(counts))]
        if wrong.size:
            raise ValueError(f"counts must be whole numbers from 0 to {self.people}, got {wrong[0]}")
        return counts

    def _scaled_cdf(self, count: int) -> NDArray[np.int64]:
        """Distribution function of the released count times the total, in whole numbers, shape (people + 1,)."""
        people, (power, total) = int(self.people), self._power_and_total
        below = [power ** (count - z) * (power + 1) ** (people - count + z) for z in range(count)]
        above = [
            total - power ** (z - count + 1) * (power + 1) ** (people - 1 - z + count) for z in range(count, people)
        ]
        return np.array([*below, *above, total])
