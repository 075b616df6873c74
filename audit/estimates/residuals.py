"""Estimates of the privacy loss from the errors of one release (residuals): never bounds."""

from __future__ import annotations

import inspect
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.sparse import csc_array

from audit.arguments import real_number, real_numbers, whole_number
from audit.bounds.limits import check_confidence
from audit.estimates.curves import CURVES, Curve
from audit.results import LossEstimate
from audit.sampling.streams import Seed, seed_sequence

__all__ = ["residual_loss"]

Floats = NDArray[np.float64]

_CELLS = 1 << 20  # numbers held at a time while values are turned into totals: 8 MB

_ASSUMPTIONS = (
    "translation equivariance: one person more in an area shifts its released count by one and leaves the law of its "
    "error alone",
    "exchangeable areas: the errors of all areas follow one law",
    "one cell of one area: an event over several cells, areas or levels may lose more",
)


def residual_loss(
    residuals: ArrayLike,
    *,
    method: Literal["lag_tail", "histogram", "kde", "slope"] = "lag_tail",
    lag: float | None = None,
    at: ArrayLike | None = None,
    bandwidth: float | Literal["robust"] | None = None,
    bandwidth_unit: Literal["sd", "people"] | None = None,
    percentile: float | None = None,
    multiplier: float | None = None,
    change: float | None = None,
    blocks: ArrayLike | None = None,
    resamples: int = 200,
    confidence: float = 0.95,
    rng: Seed = None,
) -> LossEstimate:
    """Estimate the privacy loss from the errors of all areas of one release: never a bound.

    If one more person only shifts the error of an area, the shape of the error law determines the loss [1]_.

    Parameters
    ----------
    residuals : array_like of float, shape (areas,) or (runs, areas)
        Released minus exact counts, in people; at least 10 of them.
    method : {"lag_tail", "histogram", "kde", "slope"}
        Log-ratios of two tails, of frequencies of whole people, of a Gaussian kernel density, or rho [3]_.
    lag, at : float and array_like of float, optional
        Of lag_tail: people between the tails, and where these start; by default from the median absolute deviation.
    bandwidth, bandwidth_unit : float or "robust", and {"sd", "people"}, optional
        Of kde: width of the kernel, 0.15 deviations as in [1]_, or for heavy tails the normal scale bandwidth [4]_.
    percentile, multiplier : float, optional
        Of histogram and kde: errors up to `multiplier` times a percentile are used, 2 times the 95th as in [1]_.
    change : float, optional
        Of slope: by how much one person moves an answer, by default 1.
    blocks : array_like, shape (areas,), optional
        A label for each area, for residuals that depend on each other within a block.
    resamples, confidence, rng : int, float, seed
        Of the intervals: a standard error from the Bayesian bootstrap [2]_, and the Student quantile.

    Returns
    -------
    LossEstimate
        In nats for one person; NaN where a count is 0. `value` is the median ``|loss|``, or rho if the method is slope.

    References
    ----------
    .. [1] Flaxman, "Empirical quantification of privacy loss with examples relevant to the 2020 US Census", 2019.
    .. [2] Rubin, "The Bayesian Bootstrap", Annals of Statistics 9(1), 1981, section 2.
    .. [3] Bun and Steinke, 2016, Proposition 1.6: ``rho = change^2 / (2 sd^2)``.
    .. [4] Chacon, Duong and Wand, Statistica Sinica 21, 2011.
    """
    options = {"lag": lag, "at": at, "bandwidth": bandwidth, "bandwidth_unit": bandwidth_unit}
    options |= {"percentile": percentile, "multiplier": multiplier, "change": change}
    errors, repeats, level = _errors(residuals), whole_number("resamples", resamples, least=20), confidence
    check_confidence(real_number("confidence", level))
    curve = _curve(errors, method, {name: value for name, value in options.items() if value is not None})
    return _estimated(errors, method, curve, blocks, repeats, float(level), np.random.default_rng(seed_sequence(rng)))


def _curve(errors: Floats, method: str, settings: dict[str, Any]) -> Curve:
    if method not in CURVES:
        raise ValueError(f"method must be one of {', '.join(map(repr, CURVES))}, got {method!r}")
    if foreign := settings.keys() - inspect.signature(CURVES[method]).parameters.keys():
        raise ValueError(f"method {method!r} has no setting {', '.join(sorted(foreign))}")
    return CURVES[method](np.sort(errors, axis=None), **settings)


def _estimated(
    errors: Floats,
    method: str,
    curve: Curve,
    blocks: ArrayLike | None,
    resamples: int,
    level: float,
    rng: np.random.Generator,
) -> LossEstimate:
    units, resampled, dependence = _units(errors, blocks)
    totals = _totals(errors, units, curve, resamples, rng)
    losses = curve.loss(totals)
    if np.isnan(losses[0]).all():
        raise ValueError(f"no event of the curve has residuals on both sides of its ratio, got {curve.settings}")
    values = curve.value(totals, losses)
    n_units = errors.size if units is None else int(units.max()) + 1
    # The bootstrap variance is n / (n + 1) of the units' variance, which is (n - 1) / n of that of their law.
    factor = float(special.stdtrit(n_units - 1, (1 + level) / 2)) * math.sqrt((n_units + 1) / (n_units - 1))
    half = factor * losses[1:].std(axis=0, ddof=1)
    value, margin = float(values[0]), factor * float(values[1:].std(ddof=1))
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
        settings=curve.settings | {"resamples": resamples, "resampled": resampled, "units": n_units},
        statistic=curve.statistic,
    )


def _units(errors: Floats, blocks: ArrayLike | None) -> tuple[NDArray[np.intp] | None, str, str]:
    """Return the unit in which residuals are resampled (None: each alone), its name, and its assumption."""
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
    errors: Floats, units: NDArray[np.intp] | None, curve: Curve, resamples: int, rng: np.random.Generator
) -> Floats:
    """Return the totals of the residuals (row 0) and of their resamples, shape (1 + resamples, width)."""
    values, index, counts = np.unique(errors, return_inverse=True, return_counts=True)
    step = max(1, _CELLS // max(curve.width, resamples))
    parts = [slice(start, start + step) for start in range(0, values.size, step)]
    # In a resample the weight of a unit is Exp(1), of n equal units Gamma(n). Their sum cancels in ratios of totals.
    if units is None:
        totals = np.zeros((1 + resamples, curve.width))
        for part in parts:
            weights = rng.standard_gamma(counts[part], size=(resamples, counts[part].size))
            totals[:, curve.near(values[part])] += np.vstack([counts[part], weights]) @ curve.features(values[part])
        return totals
    table = csc_array((np.ones(errors.size), (units, index.ravel())))
    sums = np.zeros((table.shape[0], curve.width))
    for part in parts:
        sums[:, curve.near(values[part])] += table[:, part] @ curve.features(values[part])
    weights = rng.standard_exponential(size=(resamples, table.shape[0]))
    return np.asarray(np.vstack([np.ones(table.shape[0]), weights]) @ sums)


def _errors(residuals: ArrayLike) -> Floats:
    errors = np.atleast_2d(real_numbers("residuals", residuals, ndim=(1, 2)))
    if errors.size < 10:
        raise ValueError(f"residuals must be at least 10, got {errors.size}")
    if errors.min() == errors.max():
        raise ValueError(f"residuals must vary (an invariant count has no loss to estimate), got only {errors.flat[0]}")
    return errors
