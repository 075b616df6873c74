"""What the errors of one release suggest: estimates of the privacy loss from residuals, never bounds."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array
from scipy.stats import t as student

from audit.arguments import positive_number, real_number, real_numbers, whole_number
from audit.bounds.limits import check_confidence
from audit.results import LossEstimate
from audit.sampling.streams import Seed, seed_sequence

__all__ = ["log_ratio", "residual_loss", "whole_people"]

Floats = NDArray[np.float64]

_CELLS = 1 << 20  # numbers held at a time while values are turned into totals: 8 MB
_LARGEST_WINDOW = 50_000  # people on each side
_SMALLEST_KERNEL = 0.01  # people: below it every residual is a spike of its own

_ASSUMPTIONS = (
    "translation equivariance: one person more in an area shifts its released count by one and leaves the law of its "
    "error alone",
    "exchangeable areas: the errors of all areas follow one law",
    "one cell of one area: an event over several cells, areas or levels may lose more",
)


@dataclass(frozen=True)
class _Curve:
    """A log-ratio of totals over residuals, so that a resample costs only a matrix product."""

    at: Floats
    width: int  # totals
    features: Callable[[Floats], Floats]  # values (n,) -> what each adds to the totals (n, width)
    loss: Callable[[Floats], Floats]  # totals (k, width) -> losses (k, m)
    settings: dict[str, Any]
    assumption: str


def residual_loss(
    residuals: ArrayLike,
    *,
    method: Literal["lag_tail", "histogram", "kde"] = "lag_tail",
    lag: float | None = None,
    at: ArrayLike | None = None,
    bandwidth: float | None = None,
    bandwidth_unit: Literal["sd", "people"] | None = None,
    percentile: float | None = None,
    multiplier: float | None = None,
    blocks: ArrayLike | None = None,
    resamples: int = 200,
    confidence: float = 0.95,
    rng: Seed = None,
) -> LossEstimate:
    """Estimate the privacy loss from the errors of all areas, without running the mechanism again.

    If one more person only shifts the error of an area, the loss can be read off the shape of the errors' law, and the
    errors of all areas show that shape. This is an estimate that rests on its `assumptions`: a bound needs more runs,
    or areas as canaries.

    * ``"lag_tail"`` (`lag`, `at`): ``log(T(k) / T(k + lag)) / lag`` with ``T(k)`` residuals at or above ``k`` or at or
      below ``-k``. Flat for a geometric law, rising for an average of several.
    * ``"histogram"`` (`percentile`, `multiplier`): ``log(p(k) / p(k + 1))`` for ``|k| <= K``, with the frequencies of
      residuals rounded to whole people (halves up); no smoothing.
    * ``"kde"`` (`bandwidth`, `bandwidth_unit`, `percentile`, `multiplier`): ``log(p(x) / p(x + 1))`` with a Gaussian
      kernel density at the middles of bins one person wide that start at ``-K``. The defaults are those of [1]_.

    Parameters
    ----------
    residuals : array_like of float, shape (areas,) or (runs, areas)
        Released minus exact counts, in people; at least 10 of them.
    method : {"lag_tail", "histogram", "kde"}
        Which estimator. Settings of another one are an error.
    lag : float, optional
        People between the two tails, at least 1. By default 1.4826 times the median absolute deviation (the MAD-sd) or
        1; rounded up where all residuals are whole numbers.
    at : array_like of float, shape (m,), optional
        Where the tails start, in people, 0 or more. By default 0, 0.5, 1, 1.5 and 2 MAD-sd, rounded up likewise.
    bandwidth : float, optional
        Width of the kernel in units of `bandwidth_unit`, by default 0.15.
    bandwidth_unit : {"sd", "people"}, optional
        ``"sd"`` (default): a factor on the residuals' standard deviation, as in scipy. ``"people"``: the standard
        deviation of the kernel itself, as in scikit-learn.
    percentile, multiplier : float, optional
        The window is ``K = multiplier * max(|P(100 - percentile)|, |P(percentile)|)``, by default with 95 and 2, as in
        the notebook behind the figure of [1]_; the example in its text is 1.5 times the 95th percentile.
    blocks : array_like, shape (areas,), optional
        A label for each area, such as the area above it, for residuals that depend on each other within a block.
    resamples : int
        Bootstrap resamples behind the intervals, at least 20.
    confidence : float
        Two-sided, of each interval by itself, in (0, 1).
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        Randomness of the resampling; losses do not depend on it.

    Returns
    -------
    LossEstimate
        `value` is the median of ``|loss|`` over the curve. Losses and intervals are NaN where a count is 0.

    Raises
    ------
    ValueError
        If the residuals are too few, not finite or all equal, a setting is out of range or foreign to the method, or no
        event of the curve has residuals on both sides of its ratio.
    TypeError
        If something that should be a number is not.

    Notes
    -----
    Guarantee: none, this is an estimate. Intervals are ``loss +- t * se``: a standard error from the Bayesian bootstrap
    [2]_ over whole runs, over blocks or else over single areas, and the Student quantile for that many units. They
    cover noise, not failed assumptions or the bias of smoothing; lag, kernel and window stay fixed.

    Units: nats for one person.

    A residual of 0 counts in both tails of ``k = 0``: a person shifts ``{r >= k}`` and ``{r <= -k}``, not their union.
    The ratio is then exact for a two-tailed geometric law from 0 on.

    References
    ----------
    .. [1] Flaxman, "Empirical quantification of privacy loss with examples relevant to the 2020 US Census", 2019,
       section 2.3, "less-obvious estimate".
    .. [2] Rubin, "The Bayesian Bootstrap", Annals of Statistics 9(1), 1981, section 2.

    Examples
    --------
    >>> rng = np.random.default_rng(7)
    >>> noise = rng.geometric(-np.expm1(-0.1), 9_261) - rng.geometric(-np.expm1(-0.1), 9_261)
    >>> estimate = residual_loss(noise, rng=7)
    >>> round(estimate.value, 2), estimate.settings["lag"]
    (0.1, 11.0)
    """
    errors = _errors(residuals)
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    options = {"lag": lag, "at": at, "bandwidth": bandwidth, "bandwidth_unit": bandwidth_unit}
    options |= {"percentile": percentile, "multiplier": multiplier}
    given = {name: value for name, value in options.items() if value is not None}
    if foreign := given.keys() - inspect.signature(_METHODS[method]).parameters.keys():
        raise ValueError(f"method {method!r} has no setting {', '.join(sorted(foreign))}")
    repeats = whole_number("resamples", resamples, least=20)
    level = real_number("confidence", confidence)
    check_confidence(level)
    curve = _METHODS[method](np.sort(errors, axis=None), **given)
    units, resampled, dependence = _units(errors, blocks)
    totals = _totals(errors, units, curve, repeats, np.random.default_rng(seed_sequence(rng)))

    losses = curve.loss(totals)
    if np.isnan(losses[0]).all():
        raise ValueError(f"no event of the curve has residuals on both sides of its ratio, got {curve.settings}")
    medians = np.nanmedian(np.abs(losses), axis=1)
    n_units = errors.size if units is None else int(units.max()) + 1
    # The weights' spread is n / (n + 1) of the units' own, which is (n - 1) / n of what they are a sample from.
    factor = float(student.ppf((1 + level) / 2, n_units - 1)) * math.sqrt((n_units + 1) / (n_units - 1))
    half = factor * losses[1:].std(axis=0, ddof=1)
    value, margin = float(medians[0]), factor * float(medians[1:].std(ddof=1))
    return LossEstimate(
        method=method,
        at=curve.at,
        loss=losses[0],
        low=losses[0] - half,
        high=losses[0] + half,
        value=value,
        interval=(max(0.0, value - margin), value + margin),
        confidence=level,
        assumptions=(*_ASSUMPTIONS, curve.assumption, dependence),
        size=len(errors),
        areas=errors.shape[1],
        settings=curve.settings | {"resamples": repeats, "resampled": resampled, "units": n_units},
    )


def _lag_tail(pooled: Floats, *, lag: float | None = None, at: ArrayLike | None = None) -> _Curve:
    """Compare each tail with the tail of `lag` people further out."""
    whole = bool((pooled == np.rint(pooled)).all())
    # Less than one person is nobody's privacy, so that is the shortest step.
    scale = max(1.0, 1.4826 * float(np.median(np.abs(pooled - np.median(pooled)))))
    steps = np.arange(5) * (scale / 2)
    default = np.unique(np.ceil(steps) if whole else steps)
    starts: Floats = default.astype(float) if at is None else real_numbers("at", at, ndim=(1,))
    if starts.min() < 0:
        raise ValueError(f"at must be 0 or more, got {starts.min()}")
    people = (math.ceil(scale) if whole else scale) if lag is None else positive_number("lag", lag)
    if people < 1:
        raise ValueError(f"lag must be at least one person, got {people}")
    thresholds: Floats = np.concatenate([starts, starts + people])

    def features(values: Floats) -> Floats:
        column = values[:, None]
        return (column >= thresholds).astype(float) + (column <= -thresholds)

    def loss(totals: Floats) -> Floats:
        return log_ratio(totals[:, : starts.size], totals[:, starts.size :]) / people

    return _Curve(
        at=starts,
        width=thresholds.size,
        features=features,
        loss=loss,
        settings={"lag": float(people)},
        assumption=f"groups: {people:.4g} people more shift an error by as much, and share the loss evenly",
    )


def _histogram(pooled: Floats, *, percentile: float = 95.0, multiplier: float = 2.0) -> _Curve:
    """Compare the frequencies of neighboring whole numbers."""
    window = _window(pooled, percentile, multiplier)
    k = np.arange(-math.floor(window), math.floor(window) + 2, dtype=float)

    def features(values: Floats) -> Floats:
        return np.asarray(whole_people(values)[:, None] == k, dtype=float)

    def loss(totals: Floats) -> Floats:
        return log_ratio(totals[:, :-1], totals[:, 1:])

    return _Curve(
        at=k[:-1],
        width=k.size,
        features=features,
        loss=loss,
        settings={"percentile": float(percentile), "multiplier": float(multiplier), "window": window},
        assumption="no smoothing: where counts are small, their scatter alone makes |loss| large",
    )


def _kde(
    pooled: Floats,
    *,
    bandwidth: float = 0.15,
    bandwidth_unit: str = "sd",
    percentile: float = 95.0,
    multiplier: float = 2.0,
) -> _Curve:
    """Compare a Gaussian kernel density at points one person apart."""
    if bandwidth_unit not in ("sd", "people"):
        raise ValueError(f'bandwidth_unit must be "sd" or "people", got {bandwidth_unit!r}')
    factor = positive_number("bandwidth", bandwidth)
    kernel = factor * float(pooled.std(ddof=1)) if bandwidth_unit == "sd" else factor
    if not _SMALLEST_KERNEL <= kernel < math.inf:
        raise ValueError(f"bandwidth must give a finite kernel of at least {_SMALLEST_KERNEL} people, got {kernel:.4g}")
    window = _window(pooled, percentile, multiplier)
    x = np.arange(math.floor(2 * window), dtype=float) + (0.5 - window)
    # A density far from every residual underflows: each is taken relative to what the nearest residual gives it.
    right = np.searchsorted(pooled, x)
    gap = np.abs(x - pooled[np.clip([right - 1, right], 0, pooled.size - 1)]).min(axis=0)
    offset: Floats = (gap / kernel) ** 2 / 2

    def features(values: Floats) -> Floats:
        distance: Floats = values[:, None] - x
        distance /= kernel  # in place from here on: this array is where the time goes
        np.square(distance, out=distance)
        distance /= -2
        distance += offset
        np.exp(distance, out=distance)
        return distance

    def loss(totals: Floats) -> Floats:
        return log_ratio(totals[:, :-1], totals[:, 1:]) + np.diff(offset)

    return _Curve(
        at=x[:-1],
        width=x.size,
        features=features,
        loss=loss,
        settings={
            "bandwidth": factor,
            "bandwidth_unit": bandwidth_unit,
            "kernel_sd": kernel,
            "percentile": float(percentile),
            "multiplier": float(multiplier),
            "window": window,
        },
        assumption="smoothing: the curve depends on bandwidth and window, is flat near 0 and noisy at its edges",
    )


_METHODS: dict[str, Callable[..., _Curve]] = {"lag_tail": _lag_tail, "histogram": _histogram, "kde": _kde}


def _units(errors: Floats, blocks: ArrayLike | None) -> tuple[NDArray[np.intp] | None, str, str]:
    """Return the unit that each residual is resampled with (None: alone), its name, and what that takes for granted."""
    runs, areas = errors.shape
    if blocks is None and runs == 1:
        return (
            None,
            "areas",
            "areas are independent: in raked tables they are not, and intervals too narrow or too wide",
        )
    if blocks is None:
        return np.arange(runs).repeat(areas), "runs", "runs are independent of each other"
    labels = np.asarray(blocks)
    if labels.shape != (areas,):
        raise ValueError(f"blocks must have one label for each of {areas} areas, got shape {labels.shape}")
    names, block = np.unique(labels, return_inverse=True)
    if names.size < 2:
        raise ValueError(f"blocks must have at least 2 different labels, got {names.size}")
    units = (np.arange(runs)[:, None] * names.size + block).ravel()
    return units, "blocks", "blocks of areas are independent of each other; areas of one block need not be"


def _totals(
    errors: Floats, units: NDArray[np.intp] | None, curve: _Curve, resamples: int, rng: np.random.Generator
) -> Floats:
    """Return the totals of the residuals (row 0) and of their resamples, shape (1 + resamples, width)."""
    values, index, counts = np.unique(errors, return_inverse=True, return_counts=True)
    step = max(1, _CELLS // max(curve.width, resamples))
    parts = [slice(start, start + step) for start in range(0, values.size, step)]
    # Every unit weighs Exp(1) in a resample, equal units together Gamma; only ratios of totals count, not their sum.
    if units is None:
        totals = np.zeros((1 + resamples, curve.width))
        for part in parts:
            weights = rng.standard_gamma(counts[part], size=(resamples, counts[part].size))
            totals += np.vstack([counts[part], weights]) @ curve.features(values[part])
        return totals
    table = csc_array((np.ones(errors.size), (units, index.ravel())))
    sums = sum(table[:, part] @ curve.features(values[part]) for part in parts)
    weights = rng.standard_exponential(size=(resamples, table.shape[0]))
    return np.asarray(np.vstack([np.ones(table.shape[0]), weights]) @ sums)


def _errors(residuals: ArrayLike) -> Floats:
    """Return residuals as (runs, areas), refusing those that no estimator can read."""
    errors = np.atleast_2d(real_numbers("residuals", residuals, ndim=(1, 2)))
    if errors.size < 10:
        raise ValueError(f"residuals must be at least 10, got {errors.size}")
    if errors.min() == errors.max():
        raise ValueError(f"residuals must vary (an invariant count has no loss to estimate), got only {errors.flat[0]}")
    return errors


def _window(pooled: Floats, percentile: float, multiplier: float) -> float:
    """Return the half-width of the window in people, at least one and not too many."""
    share = real_number("percentile", percentile)
    if not 50 < share <= 100:
        raise ValueError(f"percentile must be above 50 and at most 100, got {share}")
    factor = positive_number("multiplier", multiplier)
    window = factor * float(np.abs(np.percentile(pooled, [100 - share, share])).max())
    if not 1 <= window <= _LARGEST_WINDOW:
        raise ValueError(f"the window must reach 1 to {_LARGEST_WINDOW} people, got {window:.4g}")
    return window


def whole_people(values: Floats) -> Floats:
    """Return the nearest whole numbers, halves up: half-to-even would give even numbers more of them."""
    return np.floor(values + 0.5)


def log_ratio(above: NDArray[Any], below: NDArray[Any]) -> Floats:
    """Return ``log(above / below)`` in nats, NaN where either is 0."""
    seen = (above > 0) & (below > 0)
    logs = [np.log(total, out=np.full(seen.shape, np.nan), where=seen) for total in (above, below)]
    return np.asarray(logs[0] - logs[1])
