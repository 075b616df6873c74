"""A lower bound on mu of Gaussian differential privacy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.bounds.rectangle import rectangle

__all__ = ["gaussian_lower"]

Floats = NDArray[np.float64]


def gaussian_lower(
    events_y: ArrayLike, runs_y: ArrayLike, events_x: ArrayLike, runs_x: ArrayLike, *, confidence: float
) -> Floats:
    """Lower bound on mu of Gaussian DP from one event and fixed numbers of runs, counted as for `two_sample_lower`.

    It is ``quantile(low_y) - quantile(high_x)`` of the normal law, and 0 where that is below 0, in standard deviations
    of a unit Gaussian. It refutes mu-GDP and nothing else. Its square over 2 is no bound on rho: the discrete Gaussian
    keeps its zCDP promise, although its events differ more than those of the continuous one of the same rho.

    Notes
    -----
    Guarantee: P(bound > true mu) <= 1 - confidence for every mechanism, mu being the smallest for which it is mu-GDP.

    References
    ----------
    .. [1] Dong, Roth and Su, "Gaussian Differential Privacy", 2022, definition 2.6 and theorem 2.14 (groups).
    .. [2] Nasr, Hayes, Steinke, Balle, Tramer, Jagielski, Carlini and Terzis, "Tight Auditing of Differentially Private
       Machine Learning", 2023.

    Examples
    --------
    >>> round(float(gaussian_lower(692, 1000, 309, 1000, confidence=0.95)), 6)
    0.834981
    """
    low, high = rectangle(events_y, runs_y, events_x, runs_x, confidence=confidence)
    return np.asarray(np.maximum(0.0, special.ndtri(low) - special.ndtri(high)))
