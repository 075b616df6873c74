"""The smallest loss that a method and its counts would have called a violation, most of the time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import optimize, special, stats

from audit.bounds.game import approx_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.rectangle import rectangle
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import ApproxDP
from audit.methods.ceilings import CLIPS, check_plan

__all__ = [
    "detectable_loss",
    "divergence_detectable",
    "divergence_event_detectable",
    "game_detectable",
    "rectangle_detectable",
    "region_detectable",
]

BINS = 64  # into which the likelihood ratio of normal laws is cut


def game_detectable(
    epsilon: float,
    guesses: int,
    *,
    confidence: float,
    distance: int = 1,
    power: float = 0.8,
    delta: float = 0.0,
    runs: int | None = None,
) -> float:
    """Return the smallest true loss that a guessing game would call a violation with the stated power.

    Parameters
    ----------
    epsilon : float
        Promised loss for one step in nats.
    guesses : int
        Runs in which the rule names a database.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.
    power : float
        Probability of the verdict, in (0, 1).
    delta : float
        Probability that one step forgives, in [0, 1); what is found is the epsilon at this delta.
    runs : int, optional
        Runs with those without a guess. Default: `guesses`.

    Returns
    -------
    float
        Loss for one step in nats that the event itself carries; infinite if no loss would be seen.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> round(game_detectable(1.0, 100_000, confidence=0.95), 3)
    1.018
    """
    check_plan(confidence, distance, guesses, power=power, epsilon=epsilon)
    promised = float(special.expit(epsilon * distance))
    # The fewest right guesses that are too many for the promise: P[Binomial >= needed] <= 1 - confidence.
    if delta > 0:
        whole = guesses if runs is None else runs

        def seen(correct: int) -> bool:
            shown = approx_game_lower(correct, guesses, whole, delta=delta, confidence=confidence, distance=distance)
            return shown > epsilon

        return detectable_loss(seen, guesses, whole, distance=distance, delta=delta, power=power)
    needed = int(stats.binom.isf(1 - confidence, guesses, promised)) + 1 if guesses > 0 else 1
    if needed > guesses:
        return math.inf
    rate = float(special.betaincinv(needed, guesses - needed + 1, power))
    return max(0.0, float(special.logit(rate))) / distance


def detectable_loss(
    seen: Callable[[int], bool],
    guesses: int,
    runs: int,
    *,
    distance: int = 1,
    delta: float = 0.0,
    power: float = 0.8,
) -> float:
    """Return the smallest true loss that is called a violation with the stated power, by any bound on a guessing game.

    Parameters
    ----------
    seen : callable
        Whether a number of right guesses is called a violation; if one is, more are.
    guesses, runs : int
        Guesses made, and runs with those without a guess.
    distance : int
        Steps between the two databases.
    delta : float
        Probability that one step forgives, in [0, 1); what is found is the epsilon at this delta.
    power : float
        Probability of the verdict, in (0, 1).

    Returns
    -------
    float
        Loss for one step in nats that the event itself carries; infinite if none would be seen.
    """
    low, high = -1, guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    if high > guesses or guesses == 0:
        return math.inf
    rate = float(special.betaincinv(max(high, 1), guesses - max(high, 1) + 1, power))

    def surplus(epsilon: float) -> float:
        """How much oftener guesses are right at this loss, when all that is forgiven falls on those that are made."""
        pair = ApproxDP(epsilon, delta).group(distance)
        chance = float(special.expit(pair.epsilon))
        return chance + min(1.0, pair.delta * runs / guesses) * (1 - chance) - rate

    if surplus(0.0) >= 0:
        return 0.0
    top = 50.0 / distance
    return float(optimize.brentq(surplus, 0.0, top)) if surplus(top) > 0 else math.inf


def rectangle_detectable(
    epsilon: float,
    runs_x: int,
    runs_y: int,
    *,
    confidence: float,
    distance: int = 1,
    power: float = 0.8,
    share: float = 1.0,
    delta: float = 0.0,
) -> float:
    """Return the smallest true loss that two Clopper-Pearson limits would call a violation with the stated power.

    Parameters
    ----------
    epsilon : float
        Promised loss for one step in nats.
    runs_x, runs_y : int
        Runs on either database; every pair of counts is enumerated, so a few hundred at most.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.
    power : float
        Probability of the verdict, in (0, 1).
    share : float
        How often the event is seen: the sum of its probabilities on the two databases, 0 to 2. That of randomized
        response is 1.
    delta : float
        Probability that one step forgives, in [0, 1); what is found is the epsilon at this delta.

    Returns
    -------
    float
        Loss for one step in nats that the event itself carries; infinite if none would be seen.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> 1.0 < rectangle_detectable(1.0, 40, 40, confidence=0.95) < 2.6
    True
    """
    check_plan(confidence, distance, runs_x, runs_y, power=power, epsilon=epsilon)
    x, y = np.arange(runs_x + 1), np.arange(runs_y + 1)
    if not 0 <= share <= 2:
        raise ValueError(f"share must be in [0, 2], got {share}")
    low, high = rectangle(y[:, None], runs_y, x[None, :], runs_x, confidence=confidence)
    promised = ApproxDP(epsilon, delta).group(distance)
    seen = low > high * math.exp(min(promised.epsilon, 700.0)) + promised.delta

    def missing(loss: float) -> float:
        pair = ApproxDP(loss, delta).group(distance)
        rare = max(0.0, share - pair.delta) * float(special.expit(-pair.epsilon))
        likely = share - rare
        if likely > 1:
            likely, rare = 1.0, max(0.0, 1 - pair.delta) * math.exp(-pair.epsilon)
        chance = np.outer(stats.binom.pmf(y, runs_y, likely), stats.binom.pmf(x, runs_x, rare))
        return power - float(chance[seen].sum())

    top = 40.0 / distance
    if missing(top) > 0:
        return math.inf
    if missing(0.0) <= 0:
        return 0.0
    return float(optimize.brentq(missing, 0.0, top))


def region_detectable(
    mu: float,
    seen: int,
    runs_other: int,
    runs_likely: int,
    *,
    confidence: float,
    distance: int = 1,
    power: float = 0.8,
) -> float:
    """Return the smallest shift of normal laws that a region would call a violation with the stated power.

    Parameters
    ----------
    mu : float
        Promised for one step.
    seen, runs_other : int
        How often the region was met on the database where it is rare, and the runs there.
    runs_likely : int
        Runs on the other database.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.
    power : float
        Probability of the verdict, in (0, 1).

    Returns
    -------
    float
        The mu of one step; infinite if none would be seen.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> round(region_detectable(1.0, 5000, 10_000, 10_000, confidence=0.95), 2)
    1.07
    """
    check_plan(confidence, distance, seen, runs_other, runs_likely, power=power, mu=mu)

    def shown(met: int) -> bool:
        return float(gaussian_lower(met, runs_likely, seen, runs_other, confidence=confidence)) > mu * distance

    return _detectable_shift(shown, seen, runs_other, runs_likely, power) / distance


def divergence_detectable(
    rho: float, runs_x: int, runs_y: int, *, confidence: float, distance: int = 1, power: float = 0.8
) -> float:
    """Return the smallest rho of two normal laws that a likelihood ratio would call a violation.

    Parameters
    ----------
    rho : float
        Promised for one step.
    runs_x, runs_y : int
        Runs on either database.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.
    power : float
        Probability of the verdict, in (0, 1), by a normal approximation.

    Returns
    -------
    float
        The rho of one step; infinite if none below the ceiling would be seen.

    Raises
    ------
    ValueError
        If a number is out of its range.
    """
    check_plan(confidence, distance, runs_x, runs_y, power=power, rho=rho)
    if min(runs_x, runs_y) < 2:
        return math.inf
    z = float(special.ndtri(power))

    def surplus(log_rho: float) -> float:
        shift = distance * math.sqrt(2 * math.exp(log_rho))
        best = max(_shown(shift, clip, runs_x, runs_y, confidence, z) for clip in CLIPS)
        return best / distance**2 - rho

    low, high = math.log(rho), math.log(rho) + 0.1
    while surplus(high) <= 0:
        low, high = high, high + 0.5
        if high > math.log(rho) + 12:
            return math.inf
    return math.exp(float(optimize.brentq(surplus, low, high, xtol=1e-4))) if surplus(low) < 0 else math.exp(low)


def divergence_event_detectable(
    rho: float,
    seen: int,
    runs_other: int,
    runs_likely: int,
    *,
    confidence: float,
    distance: int = 1,
    power: float = 0.8,
) -> float:
    """Return the smallest rho of two normal laws that one region would call a violation with the stated power.

    Parameters
    ----------
    rho : float
        Promised for one step.
    seen, runs_other : int
        How often the region was met on the database where it is rare, and the runs there.
    runs_likely : int
        Runs on the other database.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.
    power : float
        Probability of the verdict, in (0, 1).

    Returns
    -------
    float
        The rho of one step; infinite if none would be seen.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> round(divergence_event_detectable(0.5, 5000, 10_000, 10_000, confidence=0.95), 2)
    0.87
    """
    check_plan(confidence, distance, seen, runs_other, runs_likely, power=power, rho=rho)

    def shown(met: int) -> bool:
        return renyi_event_lower(met, runs_likely, seen, runs_other, confidence=confidence) > rho * distance**2

    return (_detectable_shift(shown, seen, runs_other, runs_likely, power) / distance) ** 2 / 2


def _detectable_shift(
    shown: Callable[[int], bool], seen: int, runs_other: int, runs_likely: int, power: float
) -> float:
    """Return the shift of normal laws at which a region is met often enough with the stated power.

    The rate at which it is met where it is rare is taken from what was seen; how far either rate may stray, on the
    scale of normal quantiles, adds up as variances do.
    """
    if seen in (0, runs_other):
        return math.inf
    low, high = 0, runs_likely + 1  # the fewest runs with the region that are too many for the promise
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    if high > runs_likely:
        return math.inf
    half, rate = special.ndtri(special.betaincinv(high, runs_likely - high + 1, [0.5, power]))
    rare = float(special.ndtri(seen / runs_other))
    deviation = math.sqrt(2 * math.pi * seen * (1 - seen / runs_other)) / runs_other * math.exp(rare**2 / 2)
    z = float(special.ndtri(power))
    return max(0.0, float(half) - rare + math.copysign(math.hypot(rate - half, z * deviation), z))


def _shown(shift: float, clip: float, runs_x: int, runs_y: int, confidence: float, z: float) -> float:
    """Bound on the divergence of two normal laws, `z` standard errors below what their expected counts show."""
    edges = np.linspace(-clip, clip, BINS - 1)
    values = np.concatenate([[-clip], (edges[:-1] + edges[1:]) / 2, [clip]])
    laws = [
        np.diff(special.ndtr((edges - mean) / shift), prepend=0.0, append=1.0)
        for mean in (shift**2 / 2, -(shift**2) / 2)
    ]
    counts = [np.rint(law * runs).astype(np.int64) for law, runs in zip(laws, (runs_y, runs_x), strict=True)]
    shown = renyi_variational_lower(values, *counts, order=1.0, confidence=confidence)
    means = [float(values @ laws[0]), float(np.exp(values) @ laws[1])]
    errors = [
        math.sqrt(max(0.0, float(values**2 @ laws[0]) - means[0] ** 2) / runs_y),
        math.sqrt(max(0.0, float(np.exp(2 * values) @ laws[1]) - means[1] ** 2) / runs_x) / means[1],
    ]
    return shown - z * math.hypot(*errors)
