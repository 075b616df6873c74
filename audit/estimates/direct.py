"""What repeated runs on two databases suggest: the direct estimate of the privacy loss, never a bound."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import real_number, real_numbers, whole_number
from audit.bounds.limits import check_confidence, clopper_pearson_lower, clopper_pearson_upper
from audit.estimates.curves import log_ratio, whole_people
from audit.results import LossEstimate

__all__ = ["direct_loss"]

Floats = NDArray[np.float64]


def direct_loss(
    outputs_x: ArrayLike,
    outputs_y: ArrayLike,
    exact: float,
    *,
    at: ArrayLike = range(-8, 9),
    event: Literal["at_least", "equal"] = "at_least",
    distance: int = 1,
    confidence: float = 0.95,
) -> LossEstimate:
    """Estimate the privacy loss of an area's count from outputs on two databases: log-ratios of event rates.

    The largest of many ratios is too high; `measure_loss` chooses on separate runs.

    Parameters
    ----------
    outputs_x, outputs_y : array_like of float, shape (runs,)
        Released counts of the area on each database, one for each run; the numbers of runs may differ.
    exact : float
        The area's exact count on the first database: an error is output minus `exact`, on both.
    at : array_like of float, shape (m,)
        The errors ``k`` of the events, in people.
    event : {"at_least", "equal"}
        ``{error >= k}``, or ``{error = k}`` with errors rounded to whole people (halves up).
    distance : int
        By how many people the databases differ, at least 1; the loss is divided by it.
    confidence : float
        Two-sided, of each event's interval by itself, in (0, 1).

    Returns
    -------
    LossEstimate
        `loss` is ``log(P_x / P_y) / distance``, in nats for one person, or NaN if no run on one of the databases met
        the event. `value` is the largest ``|loss|``, and `interval` belongs to the same event. `settings` has the
        counts.

    Raises
    ------
    ValueError
        If no event happened on both databases, among others.

    Notes
    -----
    Guarantee: none for `value`, which is biased upwards. For an event fixed before the runs, an interval covers the
    event's true log-ratio with at least `confidence`: both probabilities lie in their Clopper-Pearson intervals, each
    of confidence ``(1 + confidence) / 2``.

    References
    ----------
    .. [1] Flaxman, "Empirical quantification of privacy loss with examples relevant to the 2020 US Census", 2019,
       section 2.3, "direct estimate".

    Examples
    --------
    >>> estimate = direct_loss([7, 8, 8, 9], [6, 7, 7, 8], 8, at=[0])
    >>> round(estimate.value, 4), estimate.settings["counts_x"], estimate.settings["counts_y"]
    (1.0986, [3], [1])
    """
    if event not in ("at_least", "equal"):
        raise ValueError(f'event must be "at_least" or "equal", got {event!r}')
    people = whole_number("distance", distance, least=1)
    level = real_number("confidence", confidence)
    check_confidence(level)
    k = real_numbers("at", at, ndim=(1,))
    if event == "equal" and (k != np.rint(k)).any():
        raise ValueError(f'at must be whole numbers for event "equal", got {k[k != np.rint(k)][0]}')
    center = float(real_numbers("exact", real_number("exact", exact), ndim=(0,)))
    error_x = real_numbers("outputs_x", outputs_x, ndim=(1,)) - center
    error_y = real_numbers("outputs_y", outputs_y, ndim=(1,)) - center
    counts_x, counts_y = _counts(error_x, k, event), _counts(error_y, k, event)

    loss = log_ratio(counts_x / error_x.size, counts_y / error_y.size) / people
    if np.isnan(loss).all():
        raise ValueError(f"no event was seen on both databases, got counts {counts_x.tolist()} and {counts_y.tolist()}")
    low_x, high_x = _interval(counts_x, error_x.size, level)
    low_y, high_y = _interval(counts_y, error_y.size, level)
    unseen = np.isnan(loss)
    low = np.where(unseen, np.nan, log_ratio(low_x, high_y) / people)
    high = np.where(unseen, np.nan, log_ratio(high_x, low_y) / people)
    best = int(np.nanargmax(np.abs(loss)))
    return LossEstimate(
        method="direct",
        at=k,
        loss=loss,
        low=low,
        high=high,
        value=float(abs(loss[best])),
        # Of the size of the log-ratio, whose own interval may hold both signs.
        interval=(float(max(0.0, low[best], -high[best])), float(max(high[best], -low[best]))),
        confidence=level,
        assumptions=(
            "uncorrected: the same runs choose the event and report its loss, which biases the largest |loss| upwards; "
            "its interval is that of an event fixed beforehand",
            "runs are independent, within and between the two databases",
            "one cell of one area: an event over several cells, areas or levels may lose more",
            f"distance {people}: all in whom the databases differ have an equal share in the loss",
        ),
        size=error_x.size + error_y.size,
        areas=1,
        settings={
            "event": event,
            "distance": people,
            "runs_x": error_x.size,
            "runs_y": error_y.size,
            "counts_x": counts_x.tolist(),
            "counts_y": counts_y.tolist(),
        },
        statistic="largest |loss|",
    )


def _counts(errors: Floats, k: Floats, event: str) -> NDArray[np.intp]:
    if event == "at_least":
        return errors.size - np.searchsorted(np.sort(errors), k)
    rounded = np.sort(whole_people(errors))
    return np.searchsorted(rounded, k, side="right") - np.searchsorted(rounded, k)


def _interval(counts: NDArray[np.intp], runs: int, level: float) -> tuple[Floats, Floats]:
    """Return two-sided intervals with half of the error that `level` leaves, since a ratio takes two."""
    each = 1 - (1 - level) / 4
    return (clopper_pearson_lower(counts, runs, confidence=each), clopper_pearson_upper(counts, runs, confidence=each))
