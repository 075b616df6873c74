"""Discrete Gaussian counts: exact laws against published figures and direct sums."""

import math

import numpy as np
import pytest

from algorithms.flaxman.gaussian import GaussianCounts
from audit.neighbors import NeighborPair

ONE_MORE = NeighborPair.add_people([50, 3], 0)


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


@pytest.mark.parametrize(
    ("rho", "change", "within"),
    [
        *((rho, [people], 1e-11) for rho in (0.005, 0.1, 0.5, 2.0, 50.0) for people in (1, 3)),
        *((rho, [-1, 1], 1e-11) for rho in (0.005, 0.5, 3e-4, 1e-4)),  # the last on a grid that all its losses lie on
        (0.5, [1, -2, 3], 1e-11),
        (1e-3, [1, -2, 3], 1e-4),  # on a grid that rounds up
    ],
)
def test_integer_orders_spend_the_budget_for_the_square_of_every_change(rho, change, within):
    counts = np.full(len(change), 50)
    law = GaussianCounts(rho).exact_loss(NeighborPair.declared(counts, counts + change, "add_remove"))
    for alpha in (1, 2, 8, 32):
        assert 1 - 1e-11 <= law.renyi(alpha) / (np.square(change).sum() * alpha * rho) <= 1 + within
    assert law.maximum == law.reverse().maximum == law.epsilon_at(0) == math.inf


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
