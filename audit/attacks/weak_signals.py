"""Losses spread thinly over many entries, as in tables made consistent: a score learned from more runs."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import Explored, clearly, movers
from audit.attacks.statistics import dot
from audit.events import Statistic

__all__ = ["Features", "apart", "combined_score", "companions", "one_thread", "pick", "standardizer", "still_gains"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

FAR = 1e4  # interquartile ranges at which values are clipped, infinities included
KNOWN = 4.0  # standard errors by which scores of held-out runs must differ before more runs are used for training
GAIN = 1.2  # ratio of training to held-out distance above which more runs help
LEADS, COMPANIONS = 16, 8  # most entries that move (leads), and most entries correlated with each
FEWEST = 100  # fewest runs on either database for correlations
KNOTS = (-1.0, 0.0, 1.0)  # interquartile ranges from the middle where a curve may bend
HELD = 2**26  # numbers that a curve's fit may hold: 256 MiB
CHUNK = 2**13  # runs that are scored at a time


@dataclass(frozen=True)
class Features:
    """Entries of a flattened output, in order, and the places among them of those that move and of their companions."""

    entries: Places
    leads: Places
    others: Places

    def __call__(self, values: Floats) -> Floats:
        """Return values of the entries and by how much leads lie above their companions, shape (runs, features)."""
        with np.errstate(invalid="ignore", over="ignore"):
            between = values[:, self.leads] - values[:, self.others]
        return np.hstack([values, np.where(np.isnan(between), 0.0, between)])

    @property
    def size(self) -> int:
        """Number of features."""
        return self.entries.size + self.leads.size


def companions(explored: Explored, entries: Places) -> Features:
    """Return entries, and those correlated with the ones that clearly move, as parts of tables that add up are."""
    x, y = explored.held
    _, _, best, by = movers(explored.x, explored.y, LEADS)
    leads = best[by >= clearly(explored.center.size)]
    none = np.empty(0, np.intp)
    if leads.size == 0 or min(len(x), len(y)) < FEWEST:
        return Features(entries, none, none)
    shared = np.zeros((leads.size, explored.center.size))
    for side in (x, y):
        values = explored.standard(side)
        values = values - values.mean(axis=0)
        spread = values.std(axis=0)
        values = values / np.where(spread > 0, spread, 1.0)
        shared += np.abs(values[:, leads].T @ values) / np.sqrt(2 * len(side))
    shared[np.arange(leads.size), leads] = 0.0
    near = np.argsort(-shared, axis=1, kind="stable")[:, :COMPANIONS]
    row, column = np.nonzero(np.take_along_axis(shared, near, axis=1) >= clearly(shared.size))
    firsts, others = leads[row], near[row, column]
    columns = np.unique(np.concatenate([entries, firsts, others]))
    return Features(columns, np.searchsorted(columns, firsts), np.searchsorted(columns, others))


def apart(x: Floats, y: Floats) -> tuple[float, float]:
    """Return how far scores on `y` lie above those on `x`, in their standard deviations and in standard errors."""
    spread = float(np.sqrt((x.var() + y.var()) / 2))
    by = float(y.mean() - x.mean()) / spread if spread > 0 else 0.0
    return by, by / float(np.sqrt(1 / len(x) + 1 / len(y)))


def still_gains(
    scores: Iterable[Callable[[Floats], Floats]], taught: Sequence[Floats], fresh: Sequence[Floats]
) -> bool:
    """Tell whether more training runs would help: scores separate fresh runs, but far less than training runs."""
    distances = [(apart(*map(score, taught))[0], *apart(*map(score, fresh))) for score in scores]
    clear = max(errors for _, _, errors in distances)
    return clear >= KNOWN and any(learned > GAIN * shown for learned, shown, _ in distances)


def combined_score(on_x: Floats, on_y: Floats, features: Features, *, seed: int) -> Statistic:
    """Return the mean log-odds of `y` of slow boosting and of additive curves: the mean halves the errors of each."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
    from sklearn.linear_model import LogisticRegression

    most = max(1, HELD // (features.size * (1 + len(KNOTS)))) // 2
    sides = [features(values[:most]) for values in (on_x, on_y)]
    labels = np.repeat([0, 1], [len(side) for side in sides])
    both = np.concatenate(sides)
    standardized = standardizer(both)
    values = standardized(both).astype(np.float32)
    boosting = HistGradientBoostingClassifier(
        max_iter=150,
        learning_rate=0.05,
        max_leaf_nodes=8,
        min_samples_leaf=400,
        l2_regularization=10.0,
        early_stopping=False,
        random_state=seed,
    )
    curves = LogisticRegression(C=0.001, max_iter=60)
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")  # of a fit that has not converged: it is rated on fresh runs anyway
        boosting.fit(values, labels)
        curves.fit(_bent(values), labels)

    def score(outputs: NDArray[Any]) -> Floats:
        scores = np.empty(len(outputs))
        with one_thread():
            for start in range(0, len(outputs), CHUNK):
                part = standardized(features(pick(outputs[start : start + CHUNK], features.entries)))
                by_curves = dot(_bent(part), curves.coef_[0].astype(np.float64)) + float(curves.intercept_[0])
                scores[start : start + CHUNK] = (boosting.decision_function(part) + by_curves) / 2
        return scores

    name = f"boosting and curves on {features.entries.size} entries and {features.leads.size} differences"
    return Statistic(name, score, proportional=True)


def _bent(values: NDArray[Any]) -> NDArray[Any]:
    """Return values and smooth steps at the knots, the basis functions of additive curves."""
    return np.hstack([np.clip(values, -10, 10) * 0.3, *(np.tanh(2 * (values - knot)) for knot in KNOTS)])


def standardizer(outputs: NDArray[Any]) -> Callable[[Floats], Floats]:
    """Return a function that standardizes features: distances from the median in interquartile ranges."""
    first, center, last = np.quantile(outputs.astype(np.float64), [0.25, 0.5, 0.75], axis=0, method="nearest")
    with np.errstate(invalid="ignore", over="ignore"):
        spread = last - first
    scale = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
    center = np.where(np.isfinite(center), center, 0.0)

    def standardized(values: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.clip((values - center) / scale, -FAR, FAR)

    return standardized


def one_thread() -> Any:
    """Return a context in which numeric libraries use one thread: blocks run in parallel, and threads wait busily."""
    return _libraries("sklearn.ensemble" in sys.modules).limit(limits=1)


@functools.cache
def _libraries(sklearn: bool) -> Any:
    """Return the numeric libraries that are loaded, with or without `sklearn`; cached, as finding them is slow."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def pick(outputs: NDArray[Any], entries: Places) -> Floats:
    """Return some entries of each output, shape (runs, entries)."""
    return outputs.reshape(len(outputs), -1)[:, entries].astype(np.float64)
