"""Two-tailed geometric noise by inversion of its distribution function, and its actual law in floating point.

A uniform of 53 bits has 2**53 values, so the noise has at most as many. Its law is a table of whole numbers, which this
module computes. The noise is bounded: close to the bound, magnitudes are missing; farther from it, some are too likely.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.noise.counts import integer_losses
from audit.arguments import whole_number
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["InverseCdf"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CHUNK = 1 << 15  # draws at a time
LARGEST_TABLE = 1 << 20  # most magnitudes of a law that is tabulated
UNSURE = 8  # uniforms on each side of a threshold that are tried one by one: rounded logarithms are not quite monotone


@dataclass(frozen=True)
class InverseCdf:
    r"""Two-tailed geometric noise of `epsilon` nats a person, by inversion at uniforms of 2 to 53 bits.

    With :math:`q = e^{-\varepsilon}`, :math:`P(K \le -m) = q^m/(1+q)` for :math:`m \ge 1`. A uniform j of the lower
    half is the tail probability :math:`t = (j + 1/2)/2^b < 1/2`. Its noise is -m for the largest m with
    :math:`t \le q^m/(1+q)`, :math:`m = \lfloor(-\ln t - \ln(1+q))/\varepsilon\rfloor`; the upper half mirrors it. Clark
    and Dajani, 2019 (see `BottomUp`), invert in this way; floating-point Laplace noise has the same flaw (Mironov, "On
    Significance of the Least Significant Bits for Differential Privacy", 2012).
    """

    epsilon: float
    bits: int = 53

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", TwoTailedGeometric(self.epsilon).epsilon)
        if whole_number("bits", self.bits, least=2) > 53:
            raise ValueError(f"bits must be at most 53, got {self.bits}")

    @property
    def half(self) -> int:
        """Number of uniforms on either side."""
        return 1 << (self.bits - 1)

    @property
    def reach(self) -> int:
        """Largest possible magnitude: that of the uniform next to 0."""
        return int(self.magnitude(np.zeros(1, np.int64))[0])

    def magnitude(self, uniform: Integers) -> Floats:
        """Return the magnitude of the noise at each uniform of the lower half, numbered from 0 at the far end."""
        tail = (uniform + 0.5) * 2.0**-self.bits  # exact: 53 binary digits
        magnitude: Floats = np.floor((-np.log(tail) - math.log1p(math.exp(-self.epsilon))) / self.epsilon)
        return magnitude

    def invert(self, uniform: Integers) -> Integers:
        """Return the noise at each uniform, numbered from 0 to 2**bits - 1."""
        lower = uniform < self.half
        magnitude = self.magnitude(np.where(lower, uniform, 2 * self.half - 1 - uniform)).astype(np.int64)
        return np.where(lower, -magnitude, magnitude)

    def sample(self, size: int | tuple[int, ...], rng: Rng) -> Integers:
        """Draw independent values; ``"secure"`` takes uniforms from the operating system, as the authors did."""
        if not isinstance(rng, np.random.Generator) and not (isinstance(rng, str) and rng == "secure"):
            raise TypeError(f'rng must be a numpy Generator or "secure", got {rng!r}')
        out = np.empty(size, np.int64)
        flat = out.reshape(-1)
        for start in range(0, flat.size, CHUNK):
            part = flat[start : start + CHUNK]
            if isinstance(rng, np.random.Generator):
                uniform = rng.integers(0, 2 * self.half, part.size)
            else:
                words = np.frombuffer(os.urandom(8 * part.size), np.uint64)
                uniform = (words >> np.uint64(64 - self.bits)).astype(np.int64)
            part[:] = self.invert(uniform)
        return out

    @property
    def tabulated(self) -> bool:
        """Whether the law is tabulated: only if the noise has at most about two million values."""
        return self.reach < LARGEST_TABLE

    @cached_property
    def counts(self) -> Integers:
        """Number of uniforms of either half that give each magnitude, shape (reach + 1,), on this machine.

        Bisection finds the first uniform of each magnitude. The 16 uniforms around every threshold are tried one by
        one, because rounding errors of the logarithm can put two neighbors in the wrong order.
        """
        if not self.tabulated:
            raise ValueError(f"the law must have at most {LARGEST_TABLE:,} magnitudes, got {self.reach + 1:,}")
        magnitudes = np.arange(1, self.reach + 1)
        low, high = np.zeros(magnitudes.size, np.int64), np.full(magnitudes.size, self.half)
        while (low < high).any():  # the first uniform with a smaller magnitude is from low to high
            middle = (low + high) // 2
            larger = (self.magnitude(middle) >= magnitudes) & (low < high)
            low, high = np.where(larger, middle + 1, low), np.where(larger, high, middle)
        at_least = np.maximum(low - UNSURE, 0)
        first = at_least.copy()
        for step in range(2 * UNSURE):
            tried = first + step
            at_least += (tried < self.half) & (self.magnitude(np.minimum(tried, self.half - 1)) >= magnitudes)
        return -np.diff(np.concatenate([[self.half], at_least, [0]]))

    def logpmf(self, k: ArrayLike) -> Floats:
        """Return the log probability of `k` in floating point; minus infinity if no uniform gives `k`."""
        values = np.asarray(k, dtype=np.float64)
        size = np.abs(values)
        possible = (values == np.floor(values)) & (size <= self.reach)
        place = np.where(possible, size, 0).astype(np.int64)
        with np.errstate(divide="ignore"):
            mass = np.log(self.counts[place] * np.where(place == 0, 2, 1) * 2.0**-self.bits)
        log_p: Floats = np.where(np.isnan(values), np.nan, np.where(possible, mass, -np.inf))[()]
        return log_p

    def losses_of(self, shifts: Floats) -> list[LossDistribution] | None:
        """Return the losses of values that differ by `shifts`; see `algorithms.noise.losses`."""
        tables = cache(self.exact_loss)
        return integer_losses(shifts, lambda whole: [tables(shift) for shift in whole] if self.tabulated else None)

    def exact_loss(self, shift: int) -> LossDistribution:
        """Return the loss of a count that is `shift` people larger on y: infinite where only one can occur."""
        noise = np.arange(-self.reach + min(shift, 0), self.reach + max(shift, 0) + 1)
        return loss_from_logs(self.logpmf(noise), self.logpmf(noise - shift))
