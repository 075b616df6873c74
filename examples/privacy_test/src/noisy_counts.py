"""Noisy counts that promise epsilon 1 for one person added or removed."""

import numpy as np

EPSILON = 1.0


def noisy_counts(counts, size, rng):
    """Return counts with two-tailed geometric noise, `size` times."""
    success = 1 - np.exp(-EPSILON)
    shape = (size, len(counts))
    return np.asarray(counts) + rng.geometric(success, shape) - rng.geometric(success, shape)
