"""What the bugs of tables start from is sound, and its exact loss; single outputs; tables that would be too large."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.bugs.bug import NO_LOSS, TableBug, loss_of_cells, loss_of_one_output, loss_of_shift, table_reach
from algorithms.flaxman import GDPC
from algorithms.noise import TwoTailedGeometric
from audit.exact import loss_distribution
from tests.helpers import pair_of, refuses, same_losses


@pytest.mark.parametrize("epsilon", [0.2, 4.0])
@pytest.mark.parametrize(("x", "y"), [([5, 3], [6, 3]), ([5, 3], [6, 1]), ([0], [9]), ([5, 3], [5, 3])])
def test_a_table_without_a_bug_is_gdpc(epsilon, x, y):
    sound, pair = TableBug(epsilon), pair_of(x, y)
    same_losses(sound.exact_loss(pair), GDPC(epsilon).exact_loss(pair), at=(0.0, epsilon / 2, 1.5 * epsilon))
    released = (mechanism(x, 50, np.random.default_rng(1)) for mechanism in (sound, GDPC(epsilon)))
    np.testing.assert_array_equal(*released)


def test_tables_do_not_outgrow_the_memory():
    assert 2 * TwoTailedGeometric(1.0).sf(table_reach(1.0)) < 2e-22
    assert table_reach(1e-9) is None
    assert TableBug(1e-9).exact_loss(pair_of([5], [6])) is None
    assert TableBug(1.0).exact_loss(pair_of([5], [2**23])) is None
    assert loss_of_shift(1.0, 2**23) is None

    def uneven(outputs, count):  # every output has a loss of its own
        return -np.abs(outputs - count) - 1e-3 * count * outputs % 1

    assert loss_of_cells(np.full(4, 5), np.full(4, 6), uneven, 0.01) is None


@pytest.mark.parametrize(("p", "q"), [(0.3, 0.1), (1.0, 0.25), (0.25, 1.0), (0.5, 0.5), (1.0, 1.0)])
def test_one_output_and_all_others(p, q):
    exact = loss_distribution([p, 1 - p], [q, 1 - q])
    same_losses(loss_of_one_output(math.log(p), math.log(q)), exact, at=(0.0, 0.5, 3.0))
    assert NO_LOSS.maximum == loss_of_shift(0.5, 0).maximum == 0
    assert loss_of_shift(0.5, -7).delta_at(0.4) == loss_of_shift(0.5, 7).delta_at(0.4)


def test_both_databases_are_tables_of_counts_with_the_same_cells():
    same_cells = "the two databases must have the same cells, got 1 and 2"
    refuses(ValueError, same_cells, TableBug(1.0).exact_loss, pair_of([5], [6, 7]))
    refuses(ValueError, "counts must not be negative, got -1", TableBug(1.0).exact_loss, pair_of([5], [-1]))
