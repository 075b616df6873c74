"""What noise lets out of the values that it is added to: the loss of a change, from the law of the noise.

The instrument finds this module by entry point, for `audit.replay`: `watched` shows it the draws, `losses_of_change`
what they cost.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.flaxman import geometric_loss
from algorithms.flaxman.gaussian import losses_of_shifts
from algorithms.noise import DiscreteGaussian, Gaussian, Laplace, Law, TwoTailedGeometric, watched
from algorithms.noise.laplace import laplace_loss
from algorithms.ons.laws import CountNoise
from audit.exact import LossDistribution

__all__ = ["gaussian_loss", "losses_of_change", "tabulated_exactly", "watched"]

REACH, ORDERS, STEPS = 37.0, 8, 2**15  # of normal noise: standard deviations and Renyi orders in its table, its steps
COUNTED = 2**53  # whole changes below it are exact
LARGEST = 1e100  # change in standard deviations: beyond it the databases have nothing in common
DISJOINT = LossDistribution(np.empty(0), np.empty(0), 1.0, 1.0)  # no output is possible on both databases


def losses_of_change(law: Law, change: NDArray[Any]) -> list[LossDistribution] | None:
    """Return the losses of values that differ, each with noise of its own: independent, to be composed.

    Parameters
    ----------
    law : Law
        Of the noise.
    change : ndarray
        By how much each value differs between the databases.

    Returns
    -------
    list of LossDistribution or None
        One for each value that differs, or for several together. None where the law is not known here, or its table
        would be too large.

    Notes
    -----
    Guarantee: `LossDistribution.maximum` is exact. So is all else where `tabulated_exactly` says so, but for noise on
    the real line: there it is an upper bound on a fine grid. That noise is taken for what the law says, its
    floating-point numbers for real ones. Values that differ by a fraction have nothing in common after noise that is
    whole.

    Examples
    --------
    >>> [law] = losses_of_change(TwoTailedGeometric(0.5), np.array([0, 3, 0]))
    >>> law.maximum
    1.5
    """
    shifts = np.abs(np.asarray(change, np.float64).ravel())
    shifts = shifts[shifts != 0]
    if not shifts.size:
        return []
    if not np.isfinite(shifts).all():
        return [DISJOINT]
    match law:
        case Gaussian():
            return [gaussian_loss(float(np.linalg.norm(shifts)) / law.scale)]
        case Laplace():
            return _laplace(law, shifts)
        case CountNoise() if not law.rounded and law.law == "gaussian":
            return [gaussian_loss(float(np.linalg.norm(shifts)) / law.scale)]
        case TwoTailedGeometric() | DiscreteGaussian() | InverseCdf() | CountNoise():
            if (shifts != np.rint(shifts)).any():
                return None if isinstance(law, CountNoise) else [DISJOINT]
            if shifts.max() >= COUNTED:
                return None
            return _whole(law, [int(shift) for shift in shifts])
    return None


def tabulated_exactly(law: Law) -> bool:
    """Tell whether all of a loss that is given here is exact, not its maximum alone.

    Parameters
    ----------
    law : Law
        Of the noise.

    Returns
    -------
    bool
        False for Laplace noise on the real line.
    """
    return not (isinstance(law, Laplace) or (isinstance(law, CountNoise) and law.law == "laplace" and not law.rounded))


@functools.lru_cache(maxsize=16)
def gaussian_loss(mu: float) -> LossDistribution:
    """Return the loss of values with normal noise that differ by so many standard deviations, in L2.

    Parameters
    ----------
    mu : float
        0 or more.

    Returns
    -------
    LossDistribution
        On a grid of 32,768 steps over 37 standard deviations and 8 changes to either side: an upper bound on
        `delta_at`, `epsilon_at` and `renyi` in both orders. Renyi divergences up to order 8 are too large by a few
        millionths.

    Notes
    -----
    The loss is normal with mean ``mu**2 / 2`` and standard deviation `mu`. What lies between two points of the grid is
    split between them so that both databases keep their mass, as in `algorithms.noise.laplace`.

    References
    ----------
    .. [1] Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, lemma 3.
    .. [2] Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the Dots: Tighter Discrete Approximations of
       Privacy Loss Distributions", 2022, for the split.

    Examples
    --------
    >>> law = gaussian_loss(1.0)
    >>> round(law.delta_at(1.0), 6), round(law.renyi(2), 4)  # of the exact profile, and the order times mu**2 / 2
    (0.126937, 1.0)
    """
    if not 0 < mu <= LARGEST:
        return LossDistribution(np.zeros(1), np.zeros(1)) if mu == 0 else DISJOINT
    ends = mu * (mu / 2 + np.linspace(-REACH - (ORDERS + 1) * mu, REACH + ORDERS * mu, STEPS + 1))
    p, q = (_log_between(ends / mu + sign * mu / 2) for sign in (-1, 1))
    # The split keeps the mass of either database if its upper part is expm1(-over) / expm1(-step), with this `over`.
    step = np.diff(ends)
    over = np.clip(p - q - ends[:-1], 0.0, step)
    with np.errstate(divide="ignore"):
        whole = p - np.log(-np.expm1(-step))
        upper, lower = whole + np.log(-np.expm1(-over)), whole - over + np.log(-np.expm1(over - step))
    log_p = np.logaddexp(np.append(lower, -np.inf), np.append(-np.inf, upper))
    kept = np.isfinite(log_p)
    return LossDistribution(ends[kept], log_p[kept], supremum=math.inf, infimum=-math.inf)


def _log_between(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of the normal probability between neighboring points, to all digits in either tail."""
    left = z[1:] < 0
    far, near = np.where(left, z[:-1], -z[1:]), np.where(left, z[1:], -z[:-1])
    above = log_ndtr(near)
    between: NDArray[np.float64] = above + np.log(-np.expm1(log_ndtr(far) - above))
    return between


def _laplace(law: Laplace, shifts: NDArray[np.float64]) -> list[LossDistribution] | None:
    """Whole changes share a grid; others have one each."""
    if (shifts == np.rint(shifts)).all() and (found := laplace_loss(1 / law.scale, [int(d) for d in shifts])):
        return [found]
    losses = [laplace_loss(float(shift) / law.scale, [1]) for shift in shifts]
    return [loss for loss in losses if loss is not None]


def _whole(
    law: TwoTailedGeometric | DiscreteGaussian | InverseCdf | CountNoise, shifts: list[int]
) -> list[LossDistribution] | None:
    if isinstance(law, DiscreteGaussian):
        return losses_of_shifts(law, shifts)
    if isinstance(law, InverseCdf):
        return [law.exact_loss(shift) for shift in shifts] if law.tabulated else None
    loss = geometric_loss(law.epsilon, shifts) if isinstance(law, TwoTailedGeometric) else law.exact_loss(shifts)
    return None if loss is None else [loss]
