"""Bugs of the noise and the budget lose exactly what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.bugs.budget import ForgottenLevelRDPC, HalfNoiseGDPC, NotebookGDPC, PublishedTwice, SquareRootShares
from algorithms.flaxman import GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.noise import TwoTailedGeometric
from audit.neighbors import NeighborPair
from tests.helpers import refuses, same_losses

ONE_MORE = NeighborPair.add_people([50, 3], 0)
MOVED = NeighborPair.move_people([50, 3], 0, 1)
TREE = Hierarchy.regular(3, 2)


# True losses


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
    law = composed(bug.noise.epsilon, depth + 1)
    assert bug.true_loss == pytest.approx((depth + 1) / depth * epsilon)
    assert law.maximum == pytest.approx(bug.true_loss)
    assert bug.noise.epsilon == pytest.approx(epsilon / depth)  # one leaf alone looks innocent
    assert law.delta_at(bug.claim.epsilon) > 0
    assert (depth + 1) * RDPC(epsilon, bug.tree).noise.epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("depth", [1, 3])
def test_square_roots_of_shares_add_up_to_too_much(depth):
    """One person changes one count at each of J + 1 levels, each with geometric noise of its own."""
    bug, leaves = SquareRootShares(0.6, Hierarchy.regular(2, depth)), 2**depth
    assert bug.spent == pytest.approx(0.6 / math.sqrt(depth + 1))
    exact = bug.exact_loss(NeighborPair.add_people(np.arange(leaves), leaves - 1))
    same_losses(exact, composed(bug.spent, depth + 1), at=(0.0, 0.3, 0.6, 0.7))
    assert bug.true_loss == pytest.approx(exact.maximum, rel=1e-12)
    assert bug.true_loss == pytest.approx(0.6 * math.sqrt(depth + 1), rel=1e-12)
    # Moving a person changes two counts at each level but the root.
    moved = NeighborPair.move_people([9] * leaves, 0, leaves - 1)
    assert bug.exact_loss(moved).maximum == pytest.approx(2 * depth * bug.spent, rel=1e-12)


def composed(epsilon, times):
    """The loss of one person in as many counts, each with geometric noise of its own."""
    law = GDPC(epsilon).exact_loss(ONE_MORE)
    for _ in range(times - 1):
        law = law.compose(GDPC(epsilon).exact_loss(ONE_MORE))
    return law


def test_two_tables_lose_twice():
    bug = PublishedTwice(0.5)
    same_losses(bug.exact_loss(ONE_MORE), composed(0.5, 2), at=(0.0, 0.5, 0.8))
    assert bug.true_loss == pytest.approx(1.0, rel=1e-12)


# What they release


def test_the_notebook_loses_what_the_reference_says_and_draws_as_numpy_does_with_epsilon_for_a_probability():
    """The difference of two geometric draws with success probability p is k with ``p (1 - p)**|k| / (2 - p)``."""
    for epsilon, loss in ((0.025, 0.02532), (0.1, 0.1054), (0.5, 0.693), (0.9, 2.303)):
        assert NotebookGDPC(epsilon).true_loss == pytest.approx(loss, rel=1e-3)
    k = np.arange(-40, 41)
    law = np.exp(TwoTailedGeometric(NotebookGDPC(0.4).true_loss).logpmf(k))
    np.testing.assert_allclose(law, 0.4 * 0.6 ** np.abs(k) / 1.6, rtol=1e-12)


def test_they_release_what_sound_mechanisms_would_with_too_large_a_budget():
    counts = np.arange(9)

    def drawn(mechanism, data=counts):
        return mechanism(data, 50, np.random.default_rng(3))

    forgotten = ForgottenLevelRDPC(1.0, TREE, output="all")
    np.testing.assert_array_equal(drawn(forgotten), drawn(RDPC(1.5, TREE, output="all")))
    assert isinstance(forgotten, RDPC)
    assert forgotten.shares == 2
    totals = TREE.totals(counts).astype(np.int64)
    np.testing.assert_array_equal(drawn(SquareRootShares(1.0, TREE)), drawn(GDPC(1 / math.sqrt(3)), totals))
    both, rng = drawn(PublishedTwice(0.5)), np.random.default_rng(3)
    for table in range(2):  # one after the other, from one stream
        np.testing.assert_array_equal(both[:, table], GDPC(0.5)(counts, 50, rng))


def test_what_would_be_no_bug_is_refused():
    message = "epsilon must be below 1 to be a success probability, got 1"
    refuses(ValueError, message, NotebookGDPC, 1)
    alone = Hierarchy.from_parents([-1])
    for bug, words in ((ForgottenLevelRDPC, "a level can only be forgotten"), (SquareRootShares, "levels can only")):
        with pytest.raises(ValueError, match=f"^{words} .*in a tree that has one below the root, got depth 0$"):
            bug(1.0, alone)
        refuses(TypeError, "tree must be a Hierarchy, got list", bug, 1.0, [-1, 0])
