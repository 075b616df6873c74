"""Bugs of the noise and the budget lose exactly what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from algorithms.bugs.budget import (
    ForgottenLevelRDPC,
    HalfNoiseGDPC,
    NotebookGDPC,
    PublishedTwice,
    SquareRootShares,
)
from algorithms.flaxman import GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.noise import TwoTailedGeometric
from audit.neighbors import NeighborPair
from tests.helpers import refused, refuses

ONE_MORE = NeighborPair.add_people([50, 3], 0)
MOVED = NeighborPair.move_people([50, 3], 0, 1)
TREE = Hierarchy.regular(3, 2)


def fit(draws, log_pmf, reach):
    """P-value of the chi-square test of whole numbers against a law, the tails beyond `reach` merged."""
    k = np.arange(-reach, reach + 1)
    inner = np.exp(log_pmf(k))
    tail = (1 - inner.sum()) / 2
    expected = draws.size * np.concatenate([[tail], inner, [tail]])
    observed = np.bincount(np.clip(draws, -reach - 1, reach + 1) + reach + 1, minlength=expected.size)
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), expected.size - 1)


# True losses


def test_the_notebook_loses_what_the_reference_says():
    for epsilon, loss in ((0.025, 0.02532), (0.1, 0.1054), (0.5, 0.693), (0.9, 2.303)):
        assert NotebookGDPC(epsilon).true_loss == pytest.approx(loss, rel=1e-3)


@given(st.floats(0.001, 0.99))
def test_true_losses_are_the_exact_ones(epsilon):
    for bug in (NotebookGDPC(epsilon), HalfNoiseGDPC(epsilon)):
        law = bug.exact_loss(ONE_MORE)
        assert law.maximum == pytest.approx(bug.true_loss, rel=1e-12)
        assert law.reverse().maximum == pytest.approx(bug.true_loss, rel=1e-12)
        assert bug.exact_loss(MOVED).maximum == pytest.approx(2 * bug.true_loss, rel=1e-12)
        # A violation of the very promise: some delta is left at the promised epsilon.
        assert law.delta_at(bug.claim.epsilon) > 0
    assert NotebookGDPC(epsilon).true_loss == pytest.approx(-math.log(1 - epsilon), rel=1e-12)
    assert HalfNoiseGDPC(epsilon).true_loss == 2 * epsilon


@pytest.mark.parametrize(("depth", "epsilon"), [(1, 2.0), (3, 0.1)])
def test_the_forgotten_level_adds_a_share(depth, epsilon):
    """One person changes one count at each of J + 1 levels: as many independent losses of one share."""
    bug = ForgottenLevelRDPC(epsilon, Hierarchy.regular(2, depth))
    share = GDPC(bug.noise.epsilon).exact_loss(ONE_MORE)
    law = share
    for _ in range(depth):
        law = law.compose(share)
    assert bug.true_loss == pytest.approx((depth + 1) / depth * epsilon)
    assert law.maximum == pytest.approx(bug.true_loss)
    assert share.maximum == pytest.approx(epsilon / depth)  # one leaf alone looks innocent
    assert law.delta_at(bug.claim.epsilon) > 0
    sound = RDPC(epsilon, bug.tree)
    assert (depth + 1) * sound.noise.epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("depth", [1, 3])
def test_square_roots_of_shares_add_up_to_too_much(depth):
    """One person changes one count at each of J + 1 levels, each with geometric noise of its own."""
    bug = SquareRootShares(0.6, Hierarchy.regular(2, depth))
    assert bug.spent == pytest.approx(0.6 / math.sqrt(depth + 1))
    one = GDPC(bug.spent).exact_loss(ONE_MORE)
    law = one
    for _ in range(depth):
        law = law.compose(one)
    leaves = 2**depth
    exact = bug.exact_loss(NeighborPair.add_people(np.arange(leaves), leaves - 1))
    assert exact.maximum == pytest.approx(law.maximum, rel=1e-12)
    assert exact.maximum == pytest.approx(bug.true_loss, rel=1e-12)
    assert bug.true_loss == pytest.approx(0.6 * math.sqrt(depth + 1), rel=1e-12)
    for epsilon in (0.0, 0.3, 0.6, 0.7):
        assert exact.delta_at(epsilon) == pytest.approx(law.delta_at(epsilon), rel=1e-9)
    # Moving a person changes two counts at each level but the root.
    moved = NeighborPair.move_people([9] * leaves, 0, leaves - 1)
    assert bug.exact_loss(moved).maximum == pytest.approx(2 * depth * bug.spent, rel=1e-12)


def test_two_tables_lose_twice():
    bug = PublishedTwice(0.5)
    one = GDPC(0.5).exact_loss(ONE_MORE)
    twice, exact = one.compose(one), bug.exact_loss(ONE_MORE)
    assert exact.maximum == pytest.approx(2 * one.maximum, rel=1e-12)
    assert bug.true_loss == pytest.approx(exact.maximum, rel=1e-12)
    for epsilon in (0.0, 0.5, 0.8):
        assert exact.delta_at(epsilon) == pytest.approx(twice.delta_at(epsilon), rel=1e-12)


# What they release


def test_the_notebook_draws_as_numpy_does_with_epsilon_for_a_probability():
    epsilon, rng = 0.4, np.random.default_rng(1)
    theirs = rng.geometric(epsilon, 100_000) - rng.geometric(epsilon, 100_000)
    ours = (NotebookGDPC(epsilon)([7], 100_000, rng) - 7).ravel()
    law = TwoTailedGeometric(NotebookGDPC(epsilon).true_loss).logpmf
    for draws in (theirs, ours):
        assert fit(draws, law, 15) > 1e-6  # the false alarm
        assert fit(draws, TwoTailedGeometric(epsilon).logpmf, 15) < 1e-12


def test_the_forgotten_level_releases_like_rdpc_with_too_little_noise():
    bug = ForgottenLevelRDPC(1.0, TREE, output="all")
    counts = np.arange(9)
    released = bug(counts, 50_000, np.random.default_rng(3))
    same = RDPC(1.5, TREE, output="all")(counts, 50_000, np.random.default_rng(3))
    np.testing.assert_array_equal(released, same)
    root = (released[:, 0] - 36).astype(int)
    assert fit(root, TwoTailedGeometric(1 / 2).logpmf, 15) > 1e-6  # the false alarm
    assert fit(root, TwoTailedGeometric(1 / 3).logpmf, 15) < 1e-12
    assert isinstance(bug, RDPC)
    assert bug.shares == 2


def test_the_two_tables_are_independent():
    released = PublishedTwice(0.5)([7, 0], 50_000, np.random.default_rng(5))
    assert released.shape == (50_000, 2, 2)
    first, second = (released[:, table, 0] - 7 for table in range(2))
    for errors in (first, second):
        assert fit(errors, TwoTailedGeometric(0.5).logpmf, 15) > 1e-6  # the false alarm
    total = TwoTailedGeometric(0.5).variance * 2
    assert np.var(first + second) == pytest.approx(total, rel=0.05)  # eight standard deviations
    assert np.var(2 * first) > 1.5 * total


def test_square_root_shares_release_every_area():
    bug = SquareRootShares(1.0, TREE)
    counts = np.arange(9)
    errors = bug(counts, 50_000, np.random.default_rng(6)) - TREE.totals(counts)
    assert errors.shape == (50_000, TREE.n_nodes)
    for area in (0, 2, 12):
        assert fit(errors[:, area], TwoTailedGeometric(1 / math.sqrt(3)).logpmf, 12) > 1e-6  # the false alarm
        assert fit(errors[:, area], TwoTailedGeometric(1 / 3).logpmf, 12) < 1e-12


# Refusals


def test_what_would_be_no_bug_is_refused():
    for epsilon in (1, 2.5):
        refuses(
            ValueError, f"epsilon must be below 1 to be a success probability, got {epsilon}", NotebookGDPC, epsilon
        )
    alone = Hierarchy.from_parents([-1])
    with refused(ValueError, "a level can only be forgotten in a tree that has one below the root, got depth 0"):
        ForgottenLevelRDPC(1.0, alone)
    with refused(ValueError, "levels can only share a budget in a tree that has one below the root, got depth 0"):
        SquareRootShares(1.0, alone)
    for bug in (ForgottenLevelRDPC, SquareRootShares):
        refuses(TypeError, "tree must be a Hierarchy, got list", bug, 1.0, [-1, 0])
