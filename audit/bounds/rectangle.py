"""Lower bounds on epsilon and delta from the probabilities of one event, with fixed numbers of runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import fraction
from audit.bounds.limits import check_confidence, clopper_pearson_lower, clopper_pearson_upper

__all__ = ["delta_lower", "rectangle", "two_sample_lower"]

Floats = NDArray[np.float64]


def rectangle(
    events_y: ArrayLike, runs_y: ArrayLike, events_x: ArrayLike, runs_x: ArrayLike, *, confidence: float
) -> tuple[Floats, Floats]:
    """Bound one probability from below and another from above, so that both bounds hold together.

    Guarantee: P(either bound fails) <= 1 - confidence, shared equally by the two (Clopper and Pearson, 1934, and a
    union bound). A measure that grows with the first probability and falls with the second is bounded by its value at
    this corner: several such measures cost no more confidence than one.

    >>> low, high = rectangle(600, 1000, 400, 1000, confidence=0.95)
    >>> round(float(low), 3), round(float(high), 3)
    (0.569, 0.431)
    """
    check_confidence(confidence)
    each = 1 - (1 - confidence) / 2
    return (
        clopper_pearson_lower(events_y, runs_y, confidence=each),
        clopper_pearson_upper(events_x, runs_x, confidence=each),
    )


def two_sample_lower(
    events_y: ArrayLike,
    runs_y: ArrayLike,
    events_x: ArrayLike,
    runs_x: ArrayLike,
    *,
    confidence: float,
    delta: float = 0.0,
) -> Floats:
    """Lower bound on the loss of one event from fixed numbers of runs: ``log((low_y - delta) / high_x)``, 0 at least.

    `events_y` of `runs_y` met the event on the database under which it is likelier, `events_x` of `runs_x` on the
    other. The event and the order of the databases must have been chosen without looking at these runs. Divide by the
    distance of a group pair only if `delta` is 0.

    Guarantee: P(bound > true loss) <= 1 - confidence for every mechanism (Clopper and Pearson, 1934, and a union bound
    over two probabilities); it needs about 2.8 times the runs of the game.

    References
    ----------
    .. [1] Ding, Wang, Wang, Zhang and Kifer, "Detecting Violations of Differential Privacy", 2018 (the event's ratio).

    Examples
    --------
    >>> round(float(two_sample_lower(600, 1000, 400, 1000, confidence=0.95)), 6)
    0.277277
    """
    fraction("delta", delta, zero=True)
    low, high = rectangle(events_y, runs_y, events_x, runs_x, confidence=confidence)
    ratio = np.maximum(low - delta, 0.0) / high  # the upper bound of a probability is never 0
    return np.asarray(np.log(np.maximum(ratio, 1.0)))


def delta_lower(
    epsilon: ArrayLike, events_y: int, runs_y: int, events_x: int, runs_x: int, *, confidence: float
) -> Floats:
    """Lower bounds on delta at every `epsilon`, 0 or more, at once: ``low_y - exp(epsilon) high_x``, 0 at least.

    Guarantee: P(any bound of the curve > true delta) <= 1 - confidence: one rectangle serves every epsilon (Barthe and
    Olmedo, 2013, hockey-stick divergence; Clopper and Pearson, 1934).
    """
    levels = np.asarray(epsilon, float)
    if not np.all(levels >= 0):
        raise ValueError(f"epsilon must be 0 or more, got {levels[~(levels >= 0)].flat[0]}")
    low, high = rectangle(events_y, runs_y, events_x, runs_x, confidence=confidence)
    with np.errstate(over="ignore"):  # at infinity the bound is 0
        return np.asarray(np.maximum(0.0, low - np.exp(levels) * high))
