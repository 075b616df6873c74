"""Privacy profiles: which delta a promise leaves at an epsilon, and back."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

__all__ = ["gaussian_log_delta", "invert", "zcdp_log_delta"]


def zcdp_log_delta(rho: float, epsilon: float) -> float:
    """Return the log of the smallest delta that the Renyi divergences of zero-concentrated privacy give.

    Parameters
    ----------
    rho : float
        Positive and finite.
    epsilon : float
        Privacy loss in nats, 0 or more and finite.

    Returns
    -------
    float
        The minimum over orders ``a > 1`` of ``(a - 1) (a rho - epsilon) + (a - 1) log(a - 1) - a log(a)``, which is
        convex in the order; minus infinity below -10000.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, corollary 13.

    Examples
    --------
    >>> round(math.exp(zcdp_log_delta(0.5, 2.0)), 6)
    0.054293
    """
    from scipy import optimize  # slow to import, and claims are on every way in

    def slope(log_above: float) -> float:
        """Return the derivative at the order ``1 + exp(log_above)``: it rises with the order."""
        return rho * (2 * math.exp(log_above) + 1) - epsilon - float(np.logaddexp(0.0, -log_above))

    if epsilon - rho > 200 * math.sqrt(rho):  # delta is at most exp(-(epsilon - rho)**2 / (4 rho))
        return -math.inf
    # The slope is positive at `high`, and negative at ``-(3 rho + 1)`` unless the order there is 1 to all digits.
    low, high = max(-(3 * rho + 1), -745.0), math.log(epsilon / rho + 2 / math.sqrt(rho))
    if slope(low) >= 0:
        return 0.0
    best = optimize.brentq(slope, low, high, xtol=1e-13, rtol=1e-13)
    above = math.exp(best)
    return float(above * ((above + 1) * rho - epsilon - np.logaddexp(0.0, -best)) - math.log1p(above))


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """Return the log of the delta of two normal laws that are `mu` standard deviations apart.

    Parameters
    ----------
    mu : float
        Positive and finite.
    epsilon : float
        Privacy loss in nats, 0 or more and finite.

    Returns
    -------
    float
        Log of ``Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu)``, without cancellation of
        powers in the tails.

    References
    ----------
    .. [1] Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, theorem 8; Dong, Roth and
       Su, "Gaussian Differential Privacy", 2022, corollary 2.13.

    Examples
    --------
    >>> round(math.exp(gaussian_log_delta(1.0, 1.0)), 6)
    0.126937
    """
    from scipy import special  # slow to import, and claims are on every way in

    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    # exp(epsilon) times the density at `far` is the density at `near`: what differs are the Mills ratios.
    if mu < 1e-5:  # by so little that their slope in the middle tells it better: right to a share of mu**2 / 12
        middle = epsilon / mu
        ratios = mu * (math.sqrt(2 / math.pi) - middle * float(special.erfcx(middle / math.sqrt(2))))
    elif near >= 0:
        ratios = float(special.erfcx(near / math.sqrt(2)) - special.erfcx(far / math.sqrt(2)))
    else:
        log_p, log_q = special.log_ndtr(-near), math.log(special.erfcx(far / math.sqrt(2)) / 2) - near * near / 2
        return float(log_p + math.log(-math.expm1(log_q - log_p)))
    return math.log(ratios) - math.log(2) - near * near / 2 if ratios > 0 else -math.inf


def invert(log_delta: Callable[[float], float], delta: float) -> float:
    """Return the smallest epsilon at which a falling profile is down to `delta`.

    Parameters
    ----------
    log_delta : callable
        Takes an epsilon of 0 or more, returns the log of its delta.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        In nats, 0 or more; infinite if it is beyond the largest float.
    """
    from scipy import optimize  # slow to import, and claims are on every way in

    target = math.log(delta)
    if log_delta(0.0) <= target:
        return 0.0
    high = 1.0
    while log_delta(high) > target:
        high *= 2
        if high == math.inf:
            return math.inf
    while log_delta(high / 2) <= target:
        high /= 2

    def excess(epsilon: float) -> float:
        return log_delta(epsilon) - target

    return float(optimize.brentq(excess, high / 2, high, xtol=1e-300, rtol=1e-14, maxiter=1000))
