"""Bugs of the noise and the budget lose exactly what they say."""

import math

import numpy as np
import pytest

from algorithms.bugs.budget import ForgottenLevelRDPC, NotebookGDPC, PublishedTwice, SquareRootShares
from algorithms.flaxman import GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.noise import TwoTailedGeometric
from audit.neighbors import NeighborPair
from tests.helpers import refuses, same_losses

ONE_MORE = NeighborPair.add_people([50, 3], 0)
MOVED = NeighborPair.move_people([50, 3], 0, 1)
TREE = Hierarchy.regular(3, 2)


def composed(epsilon, times):
    """The loss of one person in as many counts, each with geometric noise of its own."""
    law = GDPC(epsilon).exact_loss(ONE_MORE)
    for _ in range(times - 1):
        law = law.compose(GDPC(epsilon).exact_loss(ONE_MORE))
    return law


# True losses


def test_the_notebook_draws_with_epsilon_as_a_success_probability():
    """The difference of two geometric draws with that success probability, as numpy draws them."""
    k, law = np.arange(-40, 41), TwoTailedGeometric(NotebookGDPC(0.1).spent)
    np.testing.assert_allclose(np.exp(law.logpmf(k)), 0.1 * 0.9 ** np.abs(k) / 1.9, rtol=1e-12)
    assert NotebookGDPC(0.1).exact_loss(MOVED).maximum == pytest.approx(-2 * math.log(0.9), rel=1e-12)


@pytest.mark.parametrize("depth", [1, 3])
def test_levels_add_up_to_more_than_was_promised(depth):
    """One person changes one count at each of J + 1 levels: as many independent losses of one share."""
    leaves = 2**depth
    one_more = NeighborPair.add_people(np.arange(leaves), leaves - 1)
    for kind, share in ((SquareRootShares, 0.6 / math.sqrt(depth + 1)), (ForgottenLevelRDPC, 0.6 / depth)):
        bug = kind(0.6, Hierarchy.regular(2, depth))
        same_losses(bug.exact_loss(one_more), composed(share, depth + 1), at=(0.0, 0.3, 0.6, 0.7))
        assert bug.exact_loss(one_more).maximum == pytest.approx((depth + 1) * share, rel=1e-12)
        # Moving a person changes two counts at each level but the root.
        moved = NeighborPair.move_people([9] * leaves, 0, leaves - 1)
        assert bug.exact_loss(moved).maximum == pytest.approx(2 * depth * share, rel=1e-12)


def test_two_tables_lose_twice():
    bug = PublishedTwice(0.5)
    same_losses(bug.exact_loss(ONE_MORE), composed(0.5, 2), at=(0.0, 0.5, 0.8))
    assert bug.exact_loss(ONE_MORE).maximum == 1.0


# What they release


def test_they_release_what_sound_mechanisms_would_with_too_large_a_budget():
    counts = np.arange(9)

    def drawn(mechanism, data=counts):
        return mechanism(data, 50, np.random.default_rng(3))

    forgotten = ForgottenLevelRDPC(1.0, TREE, output="all")
    np.testing.assert_array_equal(drawn(forgotten), drawn(RDPC(1.5, TREE, output="all")))
    totals = TREE.totals(counts).astype(np.int64)
    np.testing.assert_array_equal(drawn(SquareRootShares(1.0, TREE)), drawn(GDPC(1 / math.sqrt(3)), totals))
    both, rng = drawn(PublishedTwice(0.5)), np.random.default_rng(3)
    for table in range(2):  # one after the other, from one stream
        np.testing.assert_array_equal(both[:, table], GDPC(0.5)(counts, 50, rng))


def test_what_would_be_no_bug_is_refused():
    message = "epsilon must be below 1 to be a success probability, got 1"
    refuses(ValueError, message, NotebookGDPC, 1)
    alone = Hierarchy.from_parents([-1])
    for bug in (ForgottenLevelRDPC, SquareRootShares):
        refuses(ValueError, "tree must have a level below the root, got depth 0", bug, 1.0, alone)
        refuses(TypeError, "tree must be a Hierarchy, got list", bug, 1.0, [-1, 0])
