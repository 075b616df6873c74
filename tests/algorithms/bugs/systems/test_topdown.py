"""Known bugs of TopDown: their true losses, by the exact law or a witness."""

import numpy as np
import pytest
from scipy import stats

from algorithms.bugs.systems.topdown import MissingFactorTwo, PrunedByTruth, SilentTotals, WrongLevelShare
from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import Invariant
from audit.claims import ZCDP, PureDP
from audit.neighbors import NeighborPair

TREE = Hierarchy.regular(3, 2)
SCHEMA = Schema({"sex": ("female", "male"), "age": ("minor", "adult")})
PURE, CONCENTRATED = PureDP(1.0, "replace_one"), ZCDP(0.5, "replace_one")
COUNTS = 10 + np.arange(36).reshape(9, 4) % 7
MOVED = NeighborPair.move_people(COUNTS, (0, 0), (8, 3))
RARE = NeighborPair.move_people(np.array([[5, 4, 3, int(leaf == 0)] for leaf in range(9)]), (0, 3), (8, 3))


def plant(kind, promise, tree=TREE, queries=None, **options):
    shares = [f"1/{tree.depth + 1}"] * (tree.depth + 1)
    budget = Budget(promise, shares, [queries or {"detailed": 1}] * len(shares))
    return kind(SCHEMA, tree, budget, solver="batched", **options)


def loss(mechanism, pair):
    """Epsilon, or rho: of integer changes the Renyi divergence is linear in its order."""
    law = mechanism.exact_loss(pair)
    return law.epsilon_at(0) if isinstance(mechanism.claim, PureDP) else law.renyi(2) / 2


# What is lost


@pytest.mark.parametrize("promise", [PURE, CONCENTRATED])
@pytest.mark.parametrize(("kind", "factor"), [(TopDown, 1), (MissingFactorTwo, 2), (WrongLevelShare, 1.5)])
def test_measurements_lose_what_the_bug_multiplies(kind, factor, promise):
    bug = plant(kind, promise)
    assert loss(bug.stage("measurements"), MOVED) == pytest.approx(factor * promise.budget)
    assert bug.claim == promise
    for level in range(3):
        stage = bug.stage("measurements", level=level)
        assert loss(stage, MOVED) == pytest.approx(factor * stage.claim.budget)
        assert stage.claim.budget == pytest.approx(promise.budget / 3)
    with pytest.raises(ValueError, match="tree must have a level below the root, got depth 0"):
        plant(WrongLevelShare, PURE, Hierarchy.from_parents([-1]))
    unbounded = plant(MissingFactorTwo, PureDP(1.0))  # the factor is missing under a bounded promise only
    assert loss(unbounded.stage("measurements"), NeighborPair.add_people(COUNTS, (0, 0))) == pytest.approx(1)


@pytest.mark.parametrize("kind", [PrunedByTruth, SilentTotals])
def test_bugs_of_the_estimation_leave_the_measurements_sound(kind):
    bug, sound = (plant(one, PURE).stage("measurements") for one in (kind, TopDown))
    for pair in (MOVED, RARE):
        assert loss(bug, pair) == loss(sound, pair) <= 1 + 1e-9


@pytest.mark.parametrize("promise", [PURE, CONCENTRATED])
def test_pruned_cells_show_one_database_as_often_as_the_witness_says(promise):
    """3,000 runs, a two-sided binomial test each; false alarm 2e-6 in all."""
    bug, area = plant(PrunedByTruth, promise), slice(0, 3)
    ((_, law),) = bug.laws(0, "detailed")
    assert bug.support_masses(RARE) == (law.sf(-1), law.sf(-1))
    on_x, on_y = (bug(data, 1_500, np.random.default_rng(7))[:, area, 3].sum(axis=1) for data in (RARE.x, RARE.y))
    assert not on_y.any()
    assert stats.binomtest(int(np.sum(on_x > 0)), on_x.size, float(law.sf(-1))).pvalue > 1e-6
    assert plant(TopDown, promise)(RARE.y, 200, np.random.default_rng(7))[:, area, 3].any()


def test_there_is_no_witness_where_its_argument_does_not_apply():
    for bug in (
        plant(PrunedByTruth, PURE, queries={"total": "1/2", "detailed": "1/2"}),
        plant(PrunedByTruth, PURE, queries={"sex": 1}),
        plant(PrunedByTruth, PURE, invariants=[Invariant("total", 0)]),
    ):
        assert bug.support_masses(RARE) == (0, 0)
    assert plant(PrunedByTruth, PURE).support_masses(MOVED) == (0, 0)  # no cell is empty
    ragged = Hierarchy.from_parents([-1, 0, 0, 1])  # a sibling is a leaf
    pair = NeighborPair.move_people(np.array([[1, 0, 0, 1], [5, 0, 0, 0]]), (0, 3), (1, 3))
    assert plant(PrunedByTruth, PURE, ragged).support_masses(pair) == (0, 0)


def test_silent_totals_are_the_true_ones():
    bug, sound = plant(SilentTotals, PURE), plant(TopDown, PURE)
    exact = COUNTS.reshape(3, 12).sum(axis=1)
    for kind, kept in ((bug, True), (sound, False)):
        totals = kind(COUNTS, 20, np.random.default_rng(3)).reshape(20, 3, 12).sum(axis=2)
        assert bool(np.all(totals == exact)) == kept
    assert bug.support_masses(MOVED) == bug.support_masses(RARE) == (1, 1)
    assert bug.support_masses(NeighborPair.move_people(COUNTS, (0, 0), (2, 3))) == (0, 0)
