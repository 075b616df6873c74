"""The direct estimate of the privacy loss from repeated runs on two databases: never a bound."""

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
    """Estimate the privacy loss of an area's count from outputs on two databases [1]_: log-ratios of event rates.

    The largest of many ratios is biased upwards; `measure_loss` chooses on separate runs.

    Parameters
    ----------
    outputs_x, outputs_y : array_like of float, shape (runs,)
        Released counts of the area on each database.
    exact : float
        The area's exact count on the first database: an error is output minus `exact`, on both.
    at : array_like of float, shape (m,)
        The errors ``k`` of the events, in people.
    event : {"at_least", "equal"}
        ``{error >= k}``, or ``{error = k}`` with errors rounded to whole people (halves up).
    distance : int
        By how many people the databases differ; the loss is divided by it.
    confidence : float
        Of each event's interval by itself: both probabilities lie in their Clopper-Pearson intervals.

    Returns
    -------
    LossEstimate
        `loss` is ``log(P_x / P_y) / distance``, in nats, NaN where no run of one database met the event.

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
    people, k = whole_number("distance", distance, least=1), _places(at, event)
    check_confidence(real_number("confidence", confidence))
    center = float(real_numbers("exact", real_number("exact", exact), ndim=(0,)))
    sides = {"x": outputs_x, "y": outputs_y}
    errors = [real_numbers(f"outputs_{side}", outputs, ndim=(1,)) - center for side, outputs in sides.items()]
    return _ratios(errors, k, event, people, float(confidence))


def _places(at: ArrayLike, event: str) -> Floats:
    if event not in ("at_least", "equal"):
        raise ValueError(f'event must be "at_least" or "equal", got {event!r}')
    k: Floats = real_numbers("at", at, ndim=(1,))
    if event == "equal" and (k != np.rint(k)).any():
        raise ValueError(f'at must be whole numbers for event "equal", got {k[k != np.rint(k)][0]}')
    return k


def _ratios(errors: list[Floats], k: Floats, event: str, people: int, level: float) -> LossEstimate:
    runs_x, runs_y = (side.size for side in errors)
    counts_x, counts_y = (_counts(side, k, event) for side in errors)
    loss = log_ratio(counts_x / runs_x, counts_y / runs_y) / people
    if (unseen := np.isnan(loss)).all():
        raise ValueError(f"no event was seen on both databases, got counts {counts_x.tolist()} and {counts_y.tolist()}")
    (low_x, high_x), (low_y, high_y) = _interval(counts_x, runs_x, level), _interval(counts_y, runs_y, level)
    low = np.where(unseen, np.nan, log_ratio(low_x, high_y) / people)
    high = np.where(unseen, np.nan, log_ratio(high_x, low_y) / people)
    best = int(np.nanargmax(np.abs(loss)))
    counts = {"counts_x": counts_x.tolist(), "counts_y": counts_y.tolist()}
    return LossEstimate(
        method="direct",
        at=k,
        loss=loss,
        low=low,
        high=high,
        value=float(abs(loss[best])),
        # Of the absolute log-ratio; the interval of the log-ratio may contain both signs.
        interval=(float(max(0.0, low[best], -high[best])), float(max(high[best], -low[best]))),
        confidence=level,
        assumptions=(
            "uncorrected: the same runs choose the event and report its loss, which biases the largest |loss| upwards; "
            "its interval is that of an event fixed beforehand",
            "runs are independent, within and between the two databases",
            "one cell of one area: an event over several cells, areas or levels may lose more",
            f"distance {people}: all in whom the databases differ have an equal share in the loss",
        ),
        size=runs_x + runs_y,
        areas=1,
        settings={"event": event, "distance": people, "runs_x": runs_x, "runs_y": runs_y, **counts},
        statistic="largest |loss|",
    )


def _counts(errors: Floats, k: Floats, event: str) -> NDArray[np.intp]:
    if event == "at_least":
        return errors.size - np.searchsorted(np.sort(errors), k)
    rounded = np.sort(whole_people(errors))
    return np.searchsorted(rounded, k, side="right") - np.searchsorted(rounded, k)


def _interval(counts: NDArray[np.intp], runs: int, level: float) -> tuple[Floats, Floats]:
    """Return two-sided intervals, each with half of the error probability of `level`, as a ratio needs two."""
    each = 1 - (1 - level) / 4
    return (clopper_pearson_lower(counts, runs, confidence=each), clopper_pearson_upper(counts, runs, confidence=each))
