"""The law of a raked count that the experiment on Flaxman's equation enumerates, against draws."""

import numpy as np

from algorithms.flaxman import RDPC
from algorithms.hierarchy import Hierarchy
from experiments.flaxman.equation import EPSILON, OUTPUTS, rdpc


def test_the_enumerated_law_of_a_raked_count_is_what_rdpc_draws():
    """Frequencies of 60 counts, each within 5 standard deviations: false alarm 4e-5."""
    runs, middle = 400_000, slice(-OUTPUTS[0] - 20, -OUTPUTS[0] + 40)
    released = RDPC(EPSILON, Hierarchy.regular(2, 1))([3, 5], runs, np.random.default_rng(1))[:, 0]
    counted = np.bincount(np.clip(np.floor(released + 0.5) - OUTPUTS[0], 0, OUTPUTS.size - 1).astype(int))[middle]
    chance = np.exp(rdpc(3, 5))[middle]
    assert np.all(np.abs(counted - runs * chance) <= 5 * np.sqrt(runs * chance) + 1)
    other = np.exp(rdpc(4, 5))[middle]
    assert not np.all(np.abs(counted - runs * other) <= 5 * np.sqrt(runs * other) + 1)  # negative control
