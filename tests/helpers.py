"""What several test modules share: mechanisms of one line, pairs of databases, binomial limits."""

from __future__ import annotations

import numpy as np

from audit.neighbors import NeighborPair


def noisy(data, size, rng):
    """Laplace noise of scale 1 on every count."""
    return data + rng.laplace(size=(size, *np.shape(data)))


def geometric(epsilon, size, rng):
    """Two-tailed geometric noise."""
    p = -np.expm1(-epsilon)
    return rng.geometric(p, size) - rng.geometric(p, size)


def pair_of(x, y, relation="add_remove"):
    """Two databases on the caller's word."""
    return NeighborPair.declared(np.array(x), np.array(y), relation)
