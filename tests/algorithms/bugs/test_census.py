"""Tables through which the truth shines, beyond what the twins of `test_known_bugs` show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.bugs.census import (
    PoissonScale,
    PublicSize,
    QualityGate,
    RetriedNegatives,
    SkippedZeros,
    TalkativeError,
    UnperturbedZeros,
)
from algorithms.bugs.randomness import CachedNoise, ForkedAreas
from algorithms.bugs.sums import BoundsFromData, LaplaceHoles
from tests.helpers import pair_of, refuses


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_no_pair_loses_more_by_retries_than_zero_and_one(epsilon):
    bug = RetriedNegatives(epsilon)
    losses = []
    for count in range(8):
        law = bug.exact_loss(pair_of([count], [count + 1]))
        losses.append(max(law.maximum, law.reverse().maximum))
    q = math.exp(-epsilon)
    assert losses[0] == pytest.approx(epsilon + math.log1p(q - q * q), rel=1e-9)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] > epsilon


def test_as_many_inhabited_cells_keep_the_promise_without_reaching_it():
    law = SkippedZeros(0.5).exact_loss(pair_of([5, 1], [6, 1]))
    assert law.loss.max() < 0.5
    assert law.delta_at(0.5) == 0


def test_a_law_too_large_for_a_table_or_of_several_changes_is_not_given():
    for make in (UnperturbedZeros, SkippedZeros, PublicSize, PoissonScale, CachedNoise, TalkativeError):
        assert make(1e-9).exact_loss(pair_of([5, 1], [5, 2])) is None
    assert BoundsFromData(1e-6).exact_loss(pair_of([12], [12, 24])) is None
    assert ForkedAreas(0.7).exact_loss(pair_of([0, 0], [2**23, 2**23])) is None
    assert ForkedAreas(0.7).exact_loss(pair_of([5, 3], [2**23, 2**23])) is not None
    assert CachedNoise(1.0).exact_loss(pair_of([7, 7], [8, 9])) is None
    assert CachedNoise(1.0).exact_loss(pair_of([7, 7, 8], [7, 8, 8])) is None  # company on either
    assert QualityGate(0.5).exact_loss(pair_of([50, 3], [51, 4])) is None
    assert LaplaceHoles(0.5).exact_loss(pair_of([10], [11])) is None
    assert LaplaceHoles(0.5, 4).exact_loss(pair_of([10, 4], [11, 5])) is None


def test_shares_need_people_and_the_gate_stops_a_run_and_says_nothing_else():
    message = "shares need at least one person, got counts of 0 only"
    refuses(ValueError, message, PublicSize(1.0), [0, 0], 3, np.random.default_rng(0))
    message = "the release failed at the quality gate"  # false alarm 1e-300
    refuses(RuntimeError, message, QualityGate(0.5, tolerance=2), [50, 3], 1_000, np.random.default_rng(1))
