"""Discrete Gaussian counts: exact laws against published figures and direct sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.flaxman.gaussian import GaussianCounts
from audit.claims import ZCDP
from audit.neighbors import NeighborPair

ONE_MORE = NeighborPair.add_people([50, 3], 0)
MOVED = NeighborPair.move_people([50, 3], 0, 1)


@pytest.mark.parametrize(
    ("rho", "alpha", "ratio"),
    [
        (0.5, 1.5, 0.999999971464),
        (0.5, 2.5, 0.999999994293),
        (2.0, 1.5, 0.980820321702),
        (4.0, 1.5, 0.885835356702),
        *[(rho, alpha, 1.0) for rho in (0.005, 0.1) for alpha in (1.5, 2.5, 7.3)],
    ],
)
def test_renyi_divergences_are_those_of_the_reference(rho, alpha, ratio):
    law = GaussianCounts(rho).exact_loss(ONE_MORE)
    assert law.renyi(alpha) / (alpha * rho) == pytest.approx(ratio, abs=1e-11 if ratio < 1 else 1e-12)
    assert law.reverse().renyi(alpha) == pytest.approx(law.renyi(alpha), rel=1e-13)


@pytest.mark.parametrize("rho", [0.005, 0.1, 0.5, 2.0, 50.0])
@pytest.mark.parametrize("people", [1, 3])
def test_integer_orders_spend_all_of_the_budget(rho, people):
    law = GaussianCounts(rho).exact_loss(NeighborPair.add_people([50, 3], 1, people))
    for alpha in (1, 2, 3, 10, 32):
        assert law.renyi(alpha) == pytest.approx(people**2 * alpha * rho, rel=1e-12)
    assert law.maximum == law.renyi(math.inf) == math.inf
    assert law.reverse().maximum == math.inf
    assert (law.infinite_mass, law.missing_mass) == (0, 0)
    assert law.epsilon_at(0) == math.inf


@pytest.mark.parametrize("rho", [0.005, 0.5, 3e-4, 1e-4])  # the last on a grid that all its losses lie on
def test_moving_a_person_costs_two_budgets(rho):
    law = GaussianCounts(rho).exact_loss(MOVED)
    for alpha in (1, 2, 5, 32):
        assert law.renyi(alpha) == pytest.approx(2 * alpha * rho, rel=1e-11)
    assert law.maximum == math.inf
    assert GaussianCounts(rho).claim.under("replace_one") == ZCDP(4 * rho, "replace_one")  # all that zCDP knows


def test_unequal_changes_add_up_in_squares():
    pair = NeighborPair.declared([50, 3, 8, 8], [51, 1, 11, 8], "add_remove")
    for rho, within in ((0.5, 1e-12), (1e-3, 1e-4)):  # listed, and on a grid that rounds up
        law = GaussianCounts(rho).exact_loss(pair)
        for alpha in (1, 2, 8):
            assert 1 - 1e-12 <= law.renyi(alpha) / ((1 + 4 + 9) * alpha * rho) <= 1 + within


def test_counts_get_the_noise_of_the_budget(scripted):
    released = GaussianCounts(0.02)([10, 0, 3], 5, np.random.default_rng(3))
    ((sigma, noise),) = scripted
    assert sigma == pytest.approx(5, rel=1e-15)
    np.testing.assert_array_equal(released, noise + np.array([10, 0, 3]))


def test_likelihoods_are_the_product_over_the_cells():
    mechanism, counts = GaussianCounts(0.1), np.array([10, 0, 3])
    outputs = mechanism(counts, 500, np.random.default_rng(4))
    more = np.array([11, 0, 3])
    for data in (counts, more):
        density = np.exp(-0.1 * (outputs - data) ** 2.0) / np.exp(-0.1 * np.arange(-60.0, 61) ** 2).sum()
        np.testing.assert_allclose(mechanism.log_likelihood(outputs, data), np.log(density).sum(axis=1), rtol=1e-12)
    ratio = mechanism.log_likelihood(outputs, counts) - mechanism.log_likelihood(outputs, more)
    np.testing.assert_allclose(ratio, 0.1 * (1 - 2 * (outputs[:, 0] - 10)), atol=1e-12)
    assert mechanism.log_likelihood([[1.5, 2, 3]], counts).tolist() == [-math.inf]


def test_rho_is_a_number_within_what_noise_can_be_drawn():
    assert [GaussianCounts(rho).rho for rho in (1e-24, 1e23)] == [1e-24, 1e23]
    for rho in (0, 1e-25, 1e24, math.inf):
        with pytest.raises(ValueError, match=r"rho must be from 1e-24 to 1e\+23, got"):
            GaussianCounts(rho)
