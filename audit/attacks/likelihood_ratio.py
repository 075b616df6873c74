"""The optimal attack: the exact likelihood ratio of a mechanism that provides its likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.protocol import Exploration
from audit.events import Statistic
from audit.neighbors import NeighborPair
from audit.values import is_value

__all__ = ["candidates"]


def candidates(exploration: Exploration) -> tuple[Statistic, ...]:
    """Return the ratio of the mechanism's ``log_likelihood``; of changed entries only if ``entrywise``."""
    log_likelihood = getattr(exploration.mechanism, "log_likelihood", None)
    if not callable(log_likelihood):
        return ()
    entrywise = bool(getattr(exploration.mechanism, "entrywise", False)) and isinstance(exploration.pair.x, np.ndarray)
    return (likelihood_ratio(log_likelihood, exploration.pair, entrywise=entrywise),)


def likelihood_ratio(
    log_likelihood: Callable[[NDArray[Any], Any], NDArray[Any]], pair: NeighborPair, *, entrywise: bool = False
) -> Statistic:
    """Return the log-ratio of `y` over `x`, infinite if only one gives the output; `entrywise`: of changed entries."""
    changed = np.flatnonzero(pair.x != pair.y) if entrywise else slice(None)

    def changed_entries(outputs: NDArray[Any]) -> NDArray[Any]:
        return outputs.reshape(len(outputs), -1)[:, changed] if entrywise else outputs

    def ratio(outputs: NDArray[Any]) -> NDArray[np.float64]:
        data = (pair.x.reshape(-1)[changed], pair.y.reshape(-1)[changed]) if entrywise else (pair.x, pair.y)
        on_x, on_y = (np.asarray(log_likelihood(outputs, database), np.float64) for database in data)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(on_x) & np.isneginf(on_y), 0.0, on_y - on_x)

    def score(outputs: NDArray[Any]) -> NDArray[np.float64]:
        entries = changed_entries(outputs)
        readable = ~is_value(entries.reshape(len(entries), -1)).any(axis=1)  # neither raised nor NaN
        if readable.all():
            return ratio(entries)
        scores = np.zeros(len(entries))
        if readable.any():
            scores[readable] = ratio(entries[readable])
        return scores

    return Statistic("log-likelihood ratio of y over x", score, log_ratio=True, exact=True)
