"""How likely so many right guesses are in one run with many secret bits, if a promise is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from audit.arguments import fraction
from audit.bounds.limits import checked_counts

__all__ = ["one_run_p_value"]

FEW = 64  # terms that are looked at one by one


def one_run_p_value(
    correct: int, guesses: int, epsilon: float, *, delta: float = 0.0, canaries: int | None = None
) -> float:
    """Probability of as many right guesses in one run with many secret bits, at most, under (epsilon, delta)-DP.

    It is for one run whose bits were all guessed from the same output. Repeated runs each carry their own delta, and
    this formula would all but ignore it.

    Parameters
    ----------
    correct, guesses : int
        Right guesses, and guesses made; with a delta, as many as were fixed before the run.
    epsilon : float
        Promised loss in nats, 0 or more.
    delta : float
        Promised delta, in [0, 1).
    canaries : int, optional
        Secret bits, those abstained from included; at least `guesses`, which is the default.

    Returns
    -------
    float
        A p-value, at most 1.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Notes
    -----
    Guarantee: under any (epsilon, delta)-DP algorithm, P(p-value <= a) <= a.
    Units: epsilon in nats.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", 2023, theorem 5.2.

    Examples
    --------
    >>> one_run_p_value(800, 1000, 1.0, delta=1e-5) > one_run_p_value(800, 1000, 1.0)
    True
    """
    checked_counts(correct, guesses)
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be 0 or more, got {epsilon}")
    fraction("delta", delta, zero=True)
    bits = guesses if canaries is None else canaries
    if bits < guesses:
        raise ValueError(f"canaries must be at least the guesses, {guesses}, got {bits}")
    rate = float(special.expit(epsilon))
    tail = float(stats.binom.sf(correct - 1, guesses, rate))
    if delta == 0 or correct == 0:
        return tail
    return min(1.0, tail + 2 * bits * delta * _largest_mean(correct, guesses, rate, tail))


def _largest_mean(correct: int, guesses: int, rate: float, tail: float) -> float:
    """Return the largest mean probability of the last few numbers below `correct`, however few.

    Binomial probabilities rise up to their mode and fall, and so do these means: while the next one is above the mean.
    """

    def mean(few: NDArray[Any] | int) -> Any:
        return (stats.binom.sf(correct - 1 - few, guesses, rate) - tail) / few

    low, high = 1, correct
    while high - low > FEW:
        middle = (low + high) // 2
        if stats.binom.pmf(correct - 1 - middle, guesses, rate) >= mean(middle):
            low = middle + 1
        else:
            high = middle
    return float(mean(np.arange(low, high + 1)).max())
