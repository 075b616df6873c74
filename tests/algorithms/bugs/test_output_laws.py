"""Exact losses of tables and single outputs, and what a known bug is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.bugs.output_laws import (
    NO_LOSS,
    loss_of_cells,
    loss_of_one_output,
    loss_of_shift,
    table_reach,
    two_tables,
)
from algorithms.flaxman import GDPC
from algorithms.noise import TwoTailedGeometric
from algorithms.noise.counts import DISJOINT
from audit.exact import loss_distribution
from tests.helpers import pair_of, refuses, same_losses


def geometric(epsilon):
    return lambda outputs, count: TwoTailedGeometric(epsilon).logpmf(outputs - count)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize(("x", "y"), [([5, 3], [6, 3]), ([5, 3], [6, 1]), ([0], [9])])
def test_a_table_of_geometric_noise_is_gdpc(epsilon, x, y):
    ours = loss_of_cells(np.array(x), np.array(y), geometric(epsilon), epsilon)
    same_losses(ours, GDPC(epsilon).exact_loss(pair_of(x, y)), at=(0.0, epsilon / 2, 1.5 * epsilon))


def test_equal_databases_lose_nothing_and_disjoint_ones_everything():
    assert loss_of_cells(np.array([5, 3]), np.array([5, 3]), geometric(1.0), 1.0) is NO_LOSS
    assert NO_LOSS.maximum == NO_LOSS.delta_at(0.0) == 0
    for law in (DISJOINT, DISJOINT.reverse(), DISJOINT.compose(NO_LOSS)):
        assert law.maximum == math.inf
        assert law.delta_at(100.0) == law.infinite_mass == law.missing_mass == 1
        assert law.epsilon_at(0.5) == math.inf


def test_tables_do_not_outgrow_the_memory():
    assert table_reach(1.0) == 50
    assert 2 * TwoTailedGeometric(1.0).sf(table_reach(1.0)) < 2e-22
    assert table_reach(1e-9) is None
    assert loss_of_cells(np.array([5]), np.array([6]), geometric(1e-9), 1e-9) is None
    assert loss_of_cells(np.array([5]), np.array([2**23]), geometric(1.0), 1.0) is None
    assert loss_of_shift(1.0, 2**23) is None

    def uneven(outputs, count):  # every output has a loss of its own
        return -np.abs(outputs - count) - 1e-3 * count * outputs % 1

    assert loss_of_cells(np.array([5] * 4), np.array([6] * 4), uneven, 0.01) is None


@pytest.mark.parametrize("shift", [0, 1, 7])
def test_shifts_have_no_sign(shift):
    law = loss_of_shift(0.5, shift)
    assert law.maximum == pytest.approx(0.5 * shift)
    for epsilon in (0.0, 0.4, 2.0):
        assert loss_of_shift(0.5, -shift).delta_at(epsilon) == law.delta_at(epsilon)


@pytest.mark.parametrize(("p", "q"), [(0.3, 0.1), (1.0, 0.25), (0.25, 1.0), (0.5, 0.5), (1.0, 1.0)])
def test_one_output_and_all_others(p, q):
    exact = loss_distribution([p, 1 - p], [q, 1 - q])
    same_losses(loss_of_one_output(math.log(p), math.log(q)), exact, at=(0.0, 0.5, 3.0))


def test_pairs_are_of_one_shape():
    same_cells = "the two databases must have the same cells, got 1 and 2"
    assert [counts.tolist() for counts in two_tables(pair_of([5], [6]))] == [[5], [6]]
    refuses(ValueError, same_cells, two_tables, pair_of([5], [6, 7]))
    refuses(ValueError, "counts must not be negative, got -1", two_tables, pair_of([5], [-1]))
