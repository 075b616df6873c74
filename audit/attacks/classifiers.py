"""Scores that classifiers learn: for losses that show only in how the entries of an output vary together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.events import Statistic

__all__ = ["pick", "trained_scores"]

FAR = 1e4  # interquartile ranges beyond which a learner need not tell values apart, infinity included


def trained_scores(
    outputs_x: NDArray[Any], outputs_y: NDArray[Any], entries: NDArray[np.intp], *, seed: int
) -> tuple[Statistic, ...]:
    """Train classifiers to tell the two databases apart, and return their scores.

    Which classifier is of any use is for fresh runs to say: these have taught it and say nothing more.

    Parameters
    ----------
    outputs_x, outputs_y : ndarray, shape (runs, entries)
        The chosen entries of outputs on either database, as `pick` returns them.
    entries : ndarray of int, shape (entries,)
        Where they are in a flattened output.
    seed : int
        Of the learner.

    Returns
    -------
    tuple of Statistic
        Log-odds of `y` by logistic regression and by gradient boosting.

    References
    ----------
    .. [1] Bichsel, Steffen, Bogunovic and Vechev, "DP-Sniper: Black-Box Discovery of Differential Privacy Violations
       using Classifiers", 2021 (a classifier's score orders outputs by likelihood ratio).
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    given = np.concatenate([outputs_x, outputs_y])
    first, center, last = np.quantile(given, [0.25, 0.5, 0.75], axis=0, method="nearest")
    with np.errstate(invalid="ignore", over="ignore"):
        spread = last - first
    scale = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
    center = np.where(np.isfinite(center), center, 0.0)

    def standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.clip((values - center) / scale, -FAR, FAR)

    features = standardized(given)
    labels = np.repeat([0, 1], [len(outputs_x), len(outputs_y)])
    learners = {
        "logistic regression": LogisticRegression(max_iter=200),
        "gradient boosting": HistGradientBoostingClassifier(
            max_iter=40, max_leaf_nodes=15, min_samples_leaf=50, early_stopping=False, random_state=seed
        ),
    }
    statistics = []
    for name, learner in learners.items():
        with warnings.catch_warnings(), threadpool_limits(1):  # blocks are at work side by side already
            warnings.simplefilter("ignore")  # of a fit that has not converged: it is rated on fresh runs anyway
            learner.fit(features, labels)

        def score(outputs: NDArray[Any], learner: Any = learner) -> NDArray[np.float64]:
            with threadpool_limits(1):
                return np.asarray(learner.decision_function(standardized(pick(outputs, entries))))

        statistics.append(Statistic(f"{name} on {entries.size} entries", score))
    return tuple(statistics)


def pick(outputs: NDArray[Any], entries: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return some entries of each output.

    Parameters
    ----------
    outputs : ndarray, shape (runs, *output)
        A batch.
    entries : ndarray of int, shape (m,)
        Where they are in a flattened output.

    Returns
    -------
    ndarray of float, shape (runs, m)
        One row a run.
    """
    return outputs.reshape(len(outputs), -1)[:, entries].astype(np.float64)
