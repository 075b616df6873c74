"""Integer noise for a real release: exact samplers on operating-system entropy, through OpenDP.

The samplers of :mod:`algorithms.noise` are fast and seeded, which an audit needs and a release must not have: whoever
learns the seed can subtract the noise. The draws here come from OpenDP's exact-arithmetic samplers, fed by OpenSSL's
generator, which the operating system seeds. There is no fallback: without OpenDP these functions fail.

References
----------
.. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, algorithms 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.extras import needing

__all__ = ["discrete_gaussian", "two_tailed_geometric"]

Fill = Callable[[NDArray[np.int64]], None]


def two_tailed_geometric(epsilon: float) -> Fill:
    """Return ``fill(out)``, which overwrites a flat int64 array with two-tailed geometric draws.

    OpenDP is given a float64 just above ``1 / epsilon``, so that rounding never spends more.
    """
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return _filler(dp.m.make_laplace(*space, scale=math.nextafter(1 / epsilon, math.inf)))


def discrete_gaussian(scale: float) -> Fill:
    """Return ``fill(out)``, which overwrites a flat int64 array with discrete Gaussian draws of parameter sigma."""
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return _filler(dp.m.make_gaussian(*space, scale=scale))


def _opendp() -> Any:
    with needing("release", "secure noise"):
        import opendp.prelude as dp  # not at the top: a large, optional dependency
    dp.enable_features("contrib")  # OpenDP asks its callers to acknowledge samplers that were not externally vetted
    return dp


def _filler(measurement: Any) -> Fill:
    def fill(out: NDArray[np.int64]) -> None:
        out[:] = measurement([0] * out.size)

    return fill
