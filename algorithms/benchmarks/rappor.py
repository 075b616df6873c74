"""RAPPOR: one user's value, hashed into a Bloom filter whose bits are then reported at random.

Neighbors are any two values of one user; the user declares the pair. Values are whole numbers; their hash is MD5 of
the decimal digits, one byte of the digest for each hash function, as in the published client. [Erlingsson, Pihur and
Korolova, "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response", 2014.]
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.benchmarks.benchmark import QueryMechanism, check_answers
from audit.arguments import whole_number
from audit.claims import PureDP

__all__ = ["RAPPOR", "OneTimeRAPPOR"]


@dataclass(frozen=True)
class OneTimeRAPPOR(QueryMechanism):
    """One-time RAPPOR: the permanent response alone, every bit of the filter replaced by a coin with probability `f`.

    **Claim.** Pure DP with ``2 * hashes * log((2 - f) / f)``, reached by two values that share no bit.
    **Sensitivity.** A value sets at most `hashes` bits, so two values differ in at most twice as many.
    **Source.** Erlingsson, Pihur and Korolova, 2014, steps 1 and 2 of section 2, theorem 1.
    """

    f: float = 0.95  # probability with which a bit becomes a fair coin
    hashes: int = 4  # hash functions, 1 to 16
    bits: int = 20  # number of bits of the filter

    def __post_init__(self) -> None:
        for name, least, most in (("hashes", 1, 16), ("bits", 1, 2**16)):
            number = getattr(self, name)
            if whole_number(name, number, least=least) > most:
                raise ValueError(f"{name} must be at most {most}, got {number}")
        if not 0 < self.f < 1:
            raise ValueError(f"f must be between 0 and 1, got {self.f}")

    @property
    def rates(self) -> tuple[float, float]:
        """Probability that a bit is reported as 1, if the filter has 0 and if it has 1."""
        return self.f / 2, 1 - self.f / 2

    @property
    def claim(self) -> PureDP:
        """Promise of the algorithm: two values differ by at most one added and one removed bit per hash function."""
        zero, one = self.rates
        return PureDP(self.hashes * math.log(one * (1 - zero) / (zero * (1 - one))))

    def bloom(self, value: Any) -> NDArray[np.bool_]:
        """Return the filter of a value, one whole number: True at bits set by a hash function, shape (bits,)."""
        answers = check_answers(value)
        if answers.size != 1 or answers[0] != np.floor(answers[0]):
            raise ValueError(f"value must be one whole number, got {answers.tolist()}")
        digest = hashlib.md5(str(int(answers[0])).encode(), usedforsecurity=False).digest()
        pointed = np.zeros(self.bits, bool)
        pointed[[byte % self.bits for byte in digest[: self.hashes]]] = True
        return pointed

    def _run(self, answers: NDArray[np.float64], runs: int, rng: np.random.Generator) -> NDArray[np.int8]:
        return (rng.random((runs, self.bits)) < answers).astype(np.int8)  # every run has a new user

    def _log_law(self, outputs: NDArray[Any], answers: NDArray[np.float64]) -> NDArray[np.float64]:
        log_p = (outputs == 1) @ np.log(answers) + (outputs == 0) @ np.log1p(-answers)
        return np.where(((outputs == 0) | (outputs == 1)).all(axis=1), log_p, -np.inf)

    def _answers(self, queries: ArrayLike) -> NDArray[np.float64]:
        zero, one = self.rates
        return np.where(self.bloom(queries), one, zero)


@dataclass(frozen=True)
class RAPPOR(OneTimeRAPPOR):
    """RAPPOR, one report of it: the permanent response, then a 1 with probability `q` where it is 1, `p` where it is 0.

    **Claim.** Pure DP with ``hashes * log(b (1 - a) / (a (1 - b)))`` for one report, where `a` and `b` are the `rates`;
    reached by two values that share no bit. **Source.** Erlingsson, Pihur and Korolova, 2014, section 2 and theorem 2.
    """

    f: float = 0.75
    p: float = 0.45  # how often a permanent 0 is reported as 1
    q: float = 0.55  # how often a permanent 1 is reported as 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.p < self.q <= 1:
            raise ValueError(f"p and q must have 0 <= p < q <= 1, got {self.p} and {self.q}")

    @property
    def rates(self) -> tuple[float, float]:
        """Probability that a bit is reported as 1, if the filter has 0 and if it has 1."""
        shared = self.f * (self.p + self.q) / 2
        return shared + (1 - self.f) * self.p, shared + (1 - self.f) * self.q
