"""Answers, shape (size, databases), of databases 0 for `x` and 1 for `y`, that lose exactly what a claim says."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit import ApproxDP
from audit.claims import Claim


def coin(truth: Claim, share: float, which: ArrayLike, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return +1 for `y`, -1 for `x`, or 0 (no answer), with the largest rate of right answers for this loss."""
    delta = truth.delta if isinstance(truth, ApproxDP) else 0.0
    wrong = (share - delta) * float(special.expit(-truth.budget))
    chance = rng.random((size, np.size(which)))
    return np.where(chance >= share, 0, np.where(chance < wrong, -1, 1)) * (2.0 * np.asarray(which) - 1)


def normal(truth: Claim, which: ArrayLike, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return 0 for `x` or 1 for `y`, plus normal noise with exactly this loss."""
    return np.asarray(which) + rng.standard_normal((size, np.size(which))) / truth.shift
