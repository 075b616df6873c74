"""Known bug of the pilot's methods: Gaussian noise whose scale is too small for the promise.

The pilot's other bug is ``OnsTopDown(..., perturb_zeros=False)``: it has less bias, and keeps no promise.
"""

from __future__ import annotations

from algorithms.noise import Gaussian
from algorithms.ons.independent import IndependentNoise
from algorithms.ons.laws import CountNoise, classical_scale

__all__ = ["ClassicalGaussian"]


class _ClassicalNoise(CountNoise):
    @property
    def noise(self) -> Gaussian:
        return Gaussian(classical_scale(self.epsilon, self.delta))


class ClassicalGaussian(IndependentNoise):
    """Tables with Gaussian noise of the textbook's scale, at any epsilon, as it is inferred from the pilot's Table 2.

    **Claim.** Approximate DP with `epsilon` and `delta` when one person is added or removed. **Bug.** The theorem that
    gives the scale holds for an epsilon below 1. For larger ones, the noise is too small. **True loss.** At epsilon 10
    the delta of one table is 0.213, not the promised 0.05. Rounding to whole numbers happens to keep the promise at
    epsilon 10, but not at 7, where the delta is still 0.065. **Source.** Balle and Wang, "Improving the Gaussian
    Mechanism for Differential Privacy", 2018, section 2.3. The pilot prints neither scale nor delta, and its noise is
    rounded: at its five epsilons the true delta is 0.0001 to 0.0243.
    """

    @property
    def noises(self) -> tuple[CountNoise, ...]:
        """Noise on the counts of each table."""
        parts = map(float, self.shares)
        return tuple(_ClassicalNoise(self.law, self.epsilon * p, self.delta * p, self.rounded) for p in parts)
