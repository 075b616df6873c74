"""Copies of runs are refused, and independent outputs are not taken for copies."""

from __future__ import annotations

import numpy as np
import pytest

from audit.outputs import Kind, read_outputs
from audit.sampling.copies import chance_of_repeat, check_not_copied
from tests.helpers import refused_like


def test_copies_of_runs_are_refused():
    rng = np.random.default_rng(2)
    real, few, pairs = rng.laplace(size=60), rng.integers(0, 3, 900), rng.integers(0, 9, (400, 2))
    words = read_outputs([f"word {number}" for number in range(60)], Kind(None))
    for outputs in (real, few, pairs, words):
        check_not_copied(outputs)
    for copied in (np.tile(real, 2), np.repeat(real, 5), np.tile(rng.laplace(size=(50, 3)), (2, 1)), np.tile(words, 2)):
        with refused_like(ValueError, r"runs must be independent: \d\d outputs occur [25] times each"):
            check_not_copied(copied)
    check_not_copied(np.repeat([0, 1, 2], 50))  # three values agree so by chance


@pytest.mark.parametrize(
    ("outputs", "chance"),
    [
        ([5, 5, 5], 1),
        ([0, 0, 1, 1], (1 / 2) ** 4),
        ([[0, 1], [0, 1], [0, 2], [1, 1]], (6 / 16) ** 4),
        (np.arange(10), 1e-10),
        (np.arange(2000.0), 0),
    ],
)
def test_the_chance_of_a_repeat(outputs, chance):
    assert chance_of_repeat(np.array(outputs)) == pytest.approx(chance, rel=1e-12, abs=0)
