"""Mechanisms that `plaudit audit mymodule:NAME` finds in the current folder."""

import numpy as np


def noisy_counts(counts, size, rng):
    """Add Laplace noise of scale 1 to every count: epsilon 1 for one person added or removed."""
    return np.round(counts + rng.laplace(scale=1.0, size=(size, counts.size)), 6)


def by_age(people, size, rng):
    """Count people of 65 or older, with geometric noise: epsilon 1 for one person added or removed."""
    # Without pandas, people come as a list of dicts.
    ages = [person["age"] for person in people] if isinstance(people, list) else people["age"]
    exact = int(np.sum(np.asarray(ages, dtype=int) >= 65))
    success = 1 - np.exp(-1.0)
    return exact + rng.geometric(success, size) - rng.geometric(success, size)
