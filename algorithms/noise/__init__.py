"""Noise laws: two-tailed geometric, Laplace, Gaussian and discrete Gaussian, each with its sampler and its exact law.

All four have ``sample(size, rng)``, ``cdf(x)``, ``sf(x)`` and ``variance``, and ``logpmf(k)`` or ``logpdf(x)``; they
are symmetric about 0. The functions are vectorized, take scalars too, and keep their relative precision far out: use
``cdf`` in the left tail and ``sf`` in the right one.

``sample`` returns int64 for the integer laws and float64 for the others, in the shape `size` (an integer or a tuple).
It follows the law exactly up to float64 arithmetic, and works in chunks that stay in the processor's cache. Two
shortcuts are not taken, since they draw from other laws: rounding a Laplace draw to get the two-tailed geometric, and
rounding a normal draw to get the discrete Gaussian.

`rng` is a numpy Generator, or ``"secure"``: exact draws of the integer laws on operating-system entropy, for a real
release. That needs OpenDP and is about a thousand times slower. The continuous laws refuse it, since their
floating-point output itself leaks (Mironov, "On Significance of the Least Significant Bits for Differential Privacy",
2012).

A mechanism draws through `add_noise`, which sees the exact values beside the noise: `watched` hands both to whoever
wants to compare them between two databases.
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
