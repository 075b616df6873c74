"""Noise laws: two-tailed geometric, Laplace, Gaussian and discrete Gaussian, each with its sampler and its exact law.

All four laws are symmetric about 0. They have ``sample(size, rng)``, ``cdf(x)``, ``sf(x)``, ``variance``, and
``logpmf(k)`` or ``logpdf(x)``, for arrays and scalars. These keep their relative precision far out in the tails if you
use ``cdf`` in the left tail and ``sf`` in the right tail.

``sample`` returns int64 for the integer laws and float64 for the others, in the shape `size`. It follows the law
exactly up to float64 arithmetic. It does not round: a rounded Laplace draw is not two-tailed geometric, and a rounded
normal draw is not discrete Gaussian.

`rng` is a numpy Generator, or ``"secure"`` for a real release: exact draws of the integer laws, from the operating
system's entropy. These need OpenDP and are about a thousand times slower. The continuous laws refuse ``"secure"``,
because their floating-point output reveals exact values (Mironov, "On Significance of the Least Significant Bits for
Differential Privacy", 2012).
"""

from __future__ import annotations

from algorithms.noise.discrete_gaussian import DiscreteGaussian
from algorithms.noise.drawing import Law, Rng, Watcher, add_noise, watched
from algorithms.noise.gaussian import Gaussian
from algorithms.noise.geometric import TwoTailedGeometric
from algorithms.noise.laplace import Laplace
from algorithms.noise.secure import Draws, counted

__all__ = [
    "DiscreteGaussian",
    "Draws",
    "Gaussian",
    "Laplace",
    "Law",
    "Rng",
    "TwoTailedGeometric",
    "Watcher",
    "add_noise",
    "counted",
    "watched",
]
