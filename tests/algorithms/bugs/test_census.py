"""Tables through which the truth shines: losses beyond the registered pairs, and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.bugs.census import (
    ABSENT,
    EditedToTruth,
    EmptyAreaExit,
    ObservedDomain,
    PoissonScale,
    PublicSize,
    QualityGate,
    RetriedNegatives,
    SilentInvariant,
    SkippedZeros,
    TalkativeError,
    UnperturbedZeros,
)
from algorithms.bugs.randomness import CachedNoise
from algorithms.flaxman import GDPC
from algorithms.noise import TwoTailedGeometric
from tests.helpers import pair_of, refuses, same_losses

# Away from their edges these are sound: one step is GDPC's


def test_tables_without_a_new_zero_keep_their_promise():
    pair = pair_of([5, 2], [6, 2])
    for make in (UnperturbedZeros, ObservedDomain, EmptyAreaExit):
        same_losses(make(0.7).exact_loss(pair), GDPC(0.7).exact_loss(pair))


def test_moves_under_a_silent_invariant_show_one_count_only():
    moved = pair_of([5, 2], [4, 3])
    same_losses(SilentInvariant(0.7).exact_loss(moved), GDPC(0.7).exact_loss(pair_of([5], [4])))
    assert SilentInvariant(0.7).exact_loss(pair_of([5], [5])).maximum == 0
    assert SilentInvariant(0.7)([5], 3, np.random.default_rng(0)).tolist() == [[5]] * 3
    same_losses(PublicSize(0.7).exact_loss(moved), GDPC(0.7).exact_loss(moved))


def test_nobody_on_either_database():
    for make in (EmptyAreaExit, ObservedDomain, SkippedZeros):
        assert make(1.0).exact_loss(pair_of([0, 0], [0, 0])).maximum == 0
    assert (ObservedDomain(1.0)([0, 0], 3, np.random.default_rng(0)) == ABSENT).all()
    assert SkippedZeros(1.0)([0, 0], 3, np.random.default_rng(0)).tolist() == [0, 0, 0]


# Empty cells


def test_zeros_are_told_cell_by_cell():
    law = UnperturbedZeros(1.0).exact_loss(pair_of([0, 0], [1, 2]))
    chance = [TwoTailedGeometric(1.0).logpmf(-count) for count in (1, 2)]
    assert law.maximum == pytest.approx(-sum(chance))  # both stay 0 by chance
    assert law.infinite_mass == 0
    assert law.missing_mass == pytest.approx(1 - math.exp(sum(chance)))


def test_the_number_of_skipped_cells_is_told():
    law = SkippedZeros(1.0).exact_loss(pair_of([5, 1], [5, 0]))
    # By the tails alone: every output is possible, and the wider law has the unbounded loss.
    assert law.infinite_mass == law.missing_mass == 0
    assert law.maximum == math.inf
    assert 0 < law.reverse().maximum < 2
    law = SkippedZeros(1.0).exact_loss(pair_of([0, 0], [0, 1]))
    assert law.missing_mass == pytest.approx(1 - math.exp(TwoTailedGeometric(1.0).logpmf(-1)))
    assert law.reverse().maximum == math.inf


def test_as_many_cells_keep_the_promise_without_reaching_it():
    law = SkippedZeros(0.5).exact_loss(pair_of([5, 1], [6, 1]))
    assert law.maximum == law.reverse().maximum == 0.5
    assert law.loss.max() < 0.5
    assert law.delta_at(0.5) == 0
    assert SkippedZeros(0.5).exact_loss(pair_of([5, 1], [8, 1])).maximum == 1.5


# The truth at hand


def test_edited_counts_end_where_the_truth_says():
    for slack in (1, 3):
        law = EditedToTruth(0.5, slack).exact_loss(pair_of([50], [51]))
        end = math.exp(-0.5 * slack) / (1 + math.exp(-0.5))
        assert (law.infinite_mass, law.missing_mass) == pytest.approx((end, end))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_no_pair_loses_more_by_retries_than_zero_and_one(epsilon):
    bug = RetriedNegatives(epsilon)
    losses = []
    for count in range(8):
        law = bug.exact_loss(pair_of([count], [count + 1]))
        losses.append(max(law.maximum, law.reverse().maximum))
    assert losses[0] == pytest.approx(bug.true_loss, rel=1e-9)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] > epsilon


def test_shares_have_denominators_in_common():
    bug = PublicSize(1.0)
    # A single person: every share on x is a multiple of one half too, by chance, in tails that drift apart.
    law = bug.exact_loss(pair_of([1], [2]))
    assert law.infinite_mass == 0
    assert law.maximum == math.inf
    noise = TwoTailedGeometric(1.0)
    odd = 2 * sum(math.exp(noise.logpmf(k)) for k in range(1, 60, 2))
    assert law.missing_mass == pytest.approx(odd)
    assert law.reverse().infinite_mass == pytest.approx(odd)
    # Four and six people have the halves in common.
    law = bug.exact_loss(pair_of([4], [6]))
    assert law.infinite_mass == pytest.approx(odd)  # odd multiples of a quarter
    thirds = 1 - sum(math.exp(noise.logpmf(3 * k)) for k in range(-20, 21))
    assert law.missing_mass == pytest.approx(thirds)


def test_poisson_scales_drift_apart():
    bug = PoissonScale(1.0)
    for law in (bug.exact_loss(pair_of([5], [4])), bug.exact_loss(pair_of([4], [5])).reverse()):
        assert law.infinite_mass == law.missing_mass == 0
        assert law.maximum == math.inf
        assert law.delta_at(0.0) > 0
        assert math.isfinite(law.reverse().maximum)
    assert bug.exact_loss(pair_of([0], [1])).missing_mass == bug.exact_loss(pair_of([1], [0])).infinite_mass > 0.5


def test_a_law_too_large_for_a_table_is_not_given():
    for make in (UnperturbedZeros, SkippedZeros, PublicSize, PoissonScale, CachedNoise, TalkativeError):
        assert make(1e-9).exact_loss(pair_of([5, 1], [5, 2])) is None


def test_shares_need_people():
    message = "shares need at least one person, got counts of 0 only"
    refuses(ValueError, message, PublicSize(1.0), [0, 0], 3, np.random.default_rng(0))


# What else comes out


def test_messages_name_the_count():
    law = TalkativeError(1.0).exact_loss(pair_of([1, 0], [2, 1]))
    sf = [math.exp(-n) / (1 + math.exp(-1)) for n in range(1, 5)]
    assert law.infinite_mass == pytest.approx(1 - (1 - sf[1]) * (1 - sf[0]))
    assert law.missing_mass == pytest.approx(1 - (1 - sf[2]) * (1 - sf[1]))
    assert TalkativeError(1.0).exact_loss(pair_of([1], [1])).maximum == 0


def test_the_gate_stops_a_run_and_says_nothing_else():
    bug = QualityGate(0.5, tolerance=2)
    message = "the release failed at the quality gate"
    refuses(RuntimeError, message, bug, [50, 3], 1_000, np.random.default_rng(1))  # false alarm 1e-300
    inside = 1 - 2 * math.exp(-1.5) / (1 + math.exp(-0.5))
    law = bug.exact_loss(pair_of([50, 3], [51, 3]))
    assert law.infinite_mass == pytest.approx(math.tanh(0.25) * math.exp(-1) * inside)
    assert np.exp(law.log_p).sum() + law.infinite_mass == pytest.approx(1)
    assert bug.exact_loss(pair_of([50, 3], [50, 3])).maximum == 0
    assert bug.exact_loss(pair_of([50, 3], [51, 4])) is None
