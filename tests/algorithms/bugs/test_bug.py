"""Exact losses of tables and of single outputs; tables that would be too large."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.bugs.bug import NO_LOSS, loss_of_cells, loss_of_counts, loss_of_one_output, table_reach
from algorithms.bugs.census import UnperturbedZeros
from algorithms.flaxman import GDPC
from algorithms.noise import TwoTailedGeometric
from audit.exact import loss_distribution
from tests.helpers import pair_of, refuses, same_losses


@pytest.mark.parametrize("epsilon", [0.2, 4.0])
@pytest.mark.parametrize(("x", "y"), [([5, 3], [6, 3]), ([5, 3], [6, 1]), ([0], [9]), ([5, 3], [5, 3])])
def test_cells_with_geometric_noise_lose_what_those_of_gdpc_do(epsilon, x, y):
    def law(count, near):
        return near, TwoTailedGeometric(epsilon).logpmf(near - count)

    exact = GDPC(epsilon).exact_loss(pair_of(x, y))
    for loss in (loss_of_cells(np.array(x), np.array(y), law, epsilon), loss_of_counts(epsilon, x, y)):
        same_losses(loss, exact, at=(0.0, epsilon / 2, 1.5 * epsilon))


def test_tables_do_not_outgrow_the_memory():
    assert 2 * TwoTailedGeometric(1.0).sf(table_reach(1.0)) < 2e-22
    assert table_reach(1e-9) is None
    assert UnperturbedZeros(1e-9).exact_loss(pair_of([5], [6])) is None
    assert UnperturbedZeros(1.0).exact_loss(pair_of([5], [2**23])) is None
    assert loss_of_counts(1.0, 0, 2**23) is None

    def uneven(count, near):  # every output has a loss of its own
        return near, -np.abs(near - count) - 1e-3 * count * near % 1

    assert loss_of_cells(np.full(4, 5), np.full(4, 6), uneven, 0.01) is None


@pytest.mark.parametrize(("p", "q"), [(0.3, 0.1), (1.0, 0.25), (0.25, 1.0), (0.5, 0.5), (1.0, 1.0)])
def test_one_output_and_all_others(p, q):
    exact = loss_distribution([p, 1 - p], [q, 1 - q])
    same_losses(loss_of_one_output(math.log(p), math.log(q)), exact, at=(0.0, 0.5, 3.0))
    assert NO_LOSS.maximum == loss_of_counts(0.5, 3, 3).maximum == 0
    assert loss_of_counts(0.5, 7, 0).delta_at(0.4) == loss_of_counts(0.5, 0, 7).delta_at(0.4)


def test_both_databases_are_tables_of_counts_with_the_same_cells():
    same_cells = "the two databases must have the same cells, got 1 and 2"
    exact_loss = UnperturbedZeros(1.0).exact_loss
    refuses(ValueError, same_cells, exact_loss, pair_of([5], [6, 7]))
    refuses(ValueError, "counts must not be negative, got -1", exact_loss, pair_of([5], [-1]))
