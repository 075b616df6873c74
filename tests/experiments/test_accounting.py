"""Known truth behind two exact experiments: compositions that can be listed, and laws that can be drawn from."""

from collections import Counter

import numpy as np
import pytest

from algorithms.flaxman import RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian
from experiments.flaxman.equation import EPSILON, OUTPUTS, rdpc
from experiments.topdown.accounting import composed, limits


@pytest.mark.parametrize("delta", [1e-3, 1e-10])
def test_limits_of_epsilon_hold_the_exact_one_of_two_laws(delta):
    one, two = DiscreteGaussian(1.3), DiscreteGaussian(2.9)
    (first,), (second,) = (law.losses_of(np.ones(1)) for law in (one, two))
    exact = first.compose(second).epsilon_at(delta)
    low, high = limits(*composed(Counter({one: 1, two: 1}), 100), delta)
    assert low <= exact <= high
    assert high / low < 1.01
    assert low > first.epsilon_at(delta)  # negative control


def test_one_law_is_composed_without_an_error_of_a_grid():
    noise = DiscreteGaussian(2.0)
    law, slack = composed(Counter({noise: 4}), 100)
    (one,) = noise.losses_of(np.ones(1))
    assert slack == 0
    assert law.epsilon_at(1e-6) == pytest.approx(one.self_compose(4).epsilon_at(1e-6), rel=1e-9)


def test_the_enumerated_law_of_a_raked_count_is_what_rdpc_draws():
    """Frequencies of 60 counts, each within 5 standard deviations: false alarm 4e-5."""
    runs, seen = 400_000, slice(-OUTPUTS[0] - 20, -OUTPUTS[0] + 40)
    released = RDPC(EPSILON, Hierarchy.regular(2, 1))([3, 5], runs, np.random.default_rng(1))[:, 0]
    counted = np.bincount(np.clip(np.floor(released + 0.5) - OUTPUTS[0], 0, OUTPUTS.size - 1).astype(int))[seen]
    chance = np.exp(rdpc(3, 5))[seen]
    assert np.all(np.abs(counted - runs * chance) <= 5 * np.sqrt(runs * chance) + 1)
    other = np.exp(rdpc(4, 5))[seen]
    assert not np.all(np.abs(counted - runs * other) <= 5 * np.sqrt(runs * other) + 1)  # negative control
