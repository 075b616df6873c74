"""Estimates of several laws of noise: each component by itself, weighed by what the pair changes, and added up."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from audit.estimates.running import estimate_direct, estimate_loss, estimate_residuals
from audit.neighbors import NeighborPair
from tests.helpers import refused_like

COUNTS = np.full(9_000, 30)
ONE = NeighborPair.add_people(COUNTS, 0)
SMALL = NeighborPair.add_people([5, 3], 0)
MOVED = NeighborPair.move_people(COUNTS, 0, 1)


class Both:
    """Two releases of the same counts side by side."""

    def __init__(self, *releases):
        self.releases = releases

    def components(self):
        return self.releases


@pytest.mark.parametrize("method", ["lag_tail", "kde", "histogram"])
def test_losses_of_independent_parts_add_up(method):
    """0.3 and 0.7, each by 2% in 9,000 errors (the KDE besides smooths): beyond 0.1 once in a million."""
    found = estimate_loss(Both(GDPC(0.3), GDPC(0.7)), ONE, method=method, rng=1)
    assert found.value == pytest.approx(1.0, abs=0.1)
    assert found.loss == pytest.approx([0.3, 0.7], abs=0.07)
    assert found.value == pytest.approx(found.loss.sum())
    assert (found.statistic, found.areas, found.settings["weights"]) == ("sum over components", 18_000, [1, 1])
    halves = (found.high - found.low) / 2
    assert (found.interval[1] - found.interval[0]) / 2 == pytest.approx(np.hypot(*halves))  # not their sum


def test_who_moves_changes_two_counts():
    one, moved = (estimate_loss(Both(GDPC(0.5)), pair, method="lag_tail", rng=1) for pair in (ONE, MOVED))
    assert moved.value == pytest.approx(2 * one.value)
    assert moved.settings["weights"] == [2]


def test_rho_grows_with_the_square_of_a_change():
    """0.1 and 0.4 of one person, by 1.5% in 9,000 errors."""
    three = NeighborPair.add_people(COUNTS, 0, 3)
    release = Both(GaussianCounts(0.1), GaussianCounts(0.4))
    one, group = (estimate_loss(release, pair, method="slope", rng=1) for pair in (ONE, three))
    assert one.value == pytest.approx(0.5, abs=0.04)
    assert (one.statistic, group.value) == ("rho", one.value)  # of three people 9 times as much, for one 9 times less
    assert group.settings["weights"] == [1, 1]
    moved = estimate_loss(release, MOVED, method="slope", rng=1)
    assert moved.settings["weights"] == [2, 2]


def test_counts_on_both_databases_are_added_up_too():
    """Of 20,000 runs a log-ratio near 0 is right to 0.03; the largest of 17 is higher."""
    found = estimate_loss(Both(GDPC(0.3), GDPC(0.7)), SMALL, method="direct", runs=20_000, rng=1)
    assert 0.9 < found.value < 2
    assert found.areas == 2


def test_errors_may_be_of_other_databases():
    found = estimate_loss(Both(GDPC(0.5)), SMALL, method="lag_tail", data=COUNTS, rng=1)
    assert found.areas == 9_000
    assert found.value == estimate_loss(Both(GDPC(0.5)), ONE, method="lag_tail", rng=1).value


def test_a_mechanism_of_one_law_is_estimated_as_it_is():
    by_itself = estimate_residuals(GDPC(0.5), COUNTS, method="kde", rng=1)
    assert estimate_loss(GDPC(0.5), ONE, method="kde", rng=1).to_dict() == by_itself.to_dict()
    counted = estimate_direct(GDPC(0.5), ONE, runs=1000, rng=1)
    assert estimate_loss(GDPC(0.5), ONE, method="direct", runs=1000, rng=1).to_dict() == counted.to_dict()


def test_a_pair_that_changes_nothing_is_refused():
    class Blind(GDPC):
        def exact(self, counts):
            return np.zeros(len(counts))

    with refused_like(ValueError, "change is for one law of noise"):
        estimate_loss(Both(GDPC(1.0)), ONE, method="slope", change=2)
    with refused_like(ValueError, "must differ in an exact output, got none that changes"):
        estimate_loss(Both(Blind(1.0)), ONE, method="lag_tail")
