"""The attack by classifiers: for losses that show only in how the entries of an output vary together."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import KNOWING, Explored, explored, like_outputs, movers
from audit.attacks.protocol import Exploration
from audit.events import Statistic
from audit.neighbors import NeighborPair
from audit.sampling.streams import Phase, stream

__all__ = ["Trained"]

SHARE = 1 / 3  # of the selection runs that teaches classifiers
FEWEST, MOST = 400, 20_000  # runs that do
FEW_ENTRIES, MOST_ENTRIES = 32, 16  # entries that a classifier gets: all of so few, else as many of each kind
FAR = 1e4  # interquartile ranges beyond which a learner need not tell values apart, infinity included


class Trained:
    """Logistic regression and gradient boosting, taught on a third of the selection runs [1]_.

    Which of them is of any use is for fresh runs to say: those that taught it say nothing more.

    References
    ----------
    .. [1] Bichsel, Steffen, Bogunovic and Vechev, "DP-Sniper: Black-Box Discovery of Differential Privacy Violations
       using Classifiers", 2021 (a classifier's score orders outputs by likelihood ratio).
    """

    name = "trained"
    automatic = True

    def candidates(self, known: Exploration) -> tuple[Statistic, ...]:
        """Return their scores, if there are several entries, runs enough, and no attack that knows more."""
        learning = min(int(known.choosing * SHARE), MOST)
        if known.found.keys() & KNOWING or learning < FEWEST or math.prod(known.shape) == 1:
            return ()
        seen = explored(known)
        entries = entries_to_learn(known.pair, seen)
        taught = known.outputs(learning, lambda outputs: pick(outputs, entries), Phase.LEARN)
        on_x, on_y = (np.concatenate(list(blocks)) for blocks in taught)
        seed = int(stream(known.runs.root, Phase.LEARN).generate_state(1)[0])
        return trained_scores(on_x, on_y, entries, seed=seed)


def entries_to_learn(pair: NeighborPair, seen: Explored) -> NDArray[np.intp]:
    """Return the places of entries in a flattened output: all if there are few, else what changes, moves or spreads."""
    entries = math.prod(seen.shape)
    if entries <= FEW_ENTRIES:
        return np.arange(entries)
    best = np.concatenate([movers(seen.x, seen.y, MOST_ENTRIES)[2], seen.that_spread(MOST_ENTRIES)])
    if like_outputs(pair, seen.shape):
        change = np.abs(pair.y.astype(np.float64) - pair.x).reshape(-1)
        largest = np.argsort(-change, kind="stable")[:MOST_ENTRIES]
        best = np.concatenate([largest[change[largest] > 0], best])
    return np.unique(best)


def trained_scores(
    outputs_x: NDArray[Any], outputs_y: NDArray[Any], entries: NDArray[np.intp], *, seed: int
) -> tuple[Statistic, ...]:
    """Train classifiers to tell the two databases apart by some entries, and return their log-odds of `y`."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
    from sklearn.linear_model import LogisticRegression

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
        with warnings.catch_warnings(), _one_thread():  # blocks are at work side by side already
            warnings.simplefilter("ignore")  # of a fit that has not converged: it is rated on fresh runs anyway
            learner.fit(features, labels)

        def score(outputs: NDArray[Any], learner: Any = learner) -> NDArray[np.float64]:
            with _one_thread():
                return np.asarray(learner.decision_function(standardized(pick(outputs, entries))))

        statistics.append(Statistic(f"{name} on {entries.size} entries", score))
    return tuple(statistics)


def _one_thread() -> Any:
    """Return what keeps the libraries of learners to one thread."""
    return _libraries().limit(limits=1)


@functools.cache
def _libraries() -> Any:
    """Return the libraries that learners have loaded; to look for them takes long."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def pick(outputs: NDArray[Any], entries: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return some entries of each output, shape (runs, entries)."""
    return outputs.reshape(len(outputs), -1)[:, entries].astype(np.float64)
