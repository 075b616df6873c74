"""Total variation, which is approximate privacy with epsilon 0: its delta is bounded, planned, saved and written."""

import math

import numpy as np
import pytest

from audit.bounds.game import variation_game_lower
from audit.claims import ApproxDP
from audit.exact import LossDistribution
from audit.measure.evaluation import support_witness
from audit.measure.loss import measure_loss
from audit.methods import OneRun, Variation
from audit.methods.game import right_side
from audit.neighbors import NeighborPair
from audit.results import AuditResult
from audit.review.verify import verify_result
from tests.audit.methods.cases import BOTH, ONE, lower, named
from tests.helpers import noisy, refused, refused_like

PAIR = NeighborPair.add_people([5], 0)
LAPLACE = 1 - math.exp(-0.5)  # between two Laplace laws of scale 1, 1 apart


def only_above(data, size, rng):
    """A warning that only the larger database gives, in 2% of the runs."""
    return (rng.random(size) < 0.02 * (data[0] - 5)).astype(float)


@pytest.mark.parametrize(
    ("mechanism", "truth", "share", "stop"),
    [
        (noisy, LAPLACE, 0.9, "fixed"),
        (only_above, 0.02, 0.6, "fixed"),
        pytest.param(only_above, 0.02, None, "early", marks=pytest.mark.slow),
    ],
)
def test_the_loss_is_found_and_not_exceeded(mechanism, truth, share, stop):
    """At 99.9% confidence: a false alarm in one of a thousand such audits."""
    for promised, verdict in ((truth / 3, "violated"), (truth, "not refuted")):
        options = {"size": 40_000, "confidence": 0.999, "stop": stop, "rng": np.random.default_rng(5)}
        result = measure_loss(mechanism, PAIR, ApproxDP(0, promised), **options)
        assert result.verdict == verdict
        assert result.measured.epsilon == 0
        assert promised / 3 < result.measured.delta <= truth
        if share:
            assert result.measured.delta > share * truth
        assert result.measured.delta <= result.ceiling <= 1
        assert verify_result(result).measured == result.measured
        again = AuditResult.from_dict(result.to_dict())
        assert (again.measured, again.measured.budget) == (result.measured, result.measured.budget)


@pytest.mark.parametrize(("share", "wrong", "event"), [(1.0, 0.5, BOTH), (0.1, 0.0, BOTH), (0.05, 0.1, ONE)])
def test_what_is_detectable_is_called_a_violation_in_four_of_five_audits(share, wrong, event):
    """A share of 0.8 of 4000 audits strays by 0.026 with probability below 1e-4; and normal laws stand for counts."""
    runs, rng = 8000, np.random.default_rng(7)
    how = Variation(ApproxDP(0, 0.02), 1, 0.95)
    half = 1.0 if event is BOTH else 0.5
    seen_wrong = share * wrong
    guesses = named(
        (0, round(runs * seen_wrong), 0), (0, round(runs * (share - seen_wrong)), round(runs * (1 - share)))
    )
    found = how.detectable(guesses, how.basis(event))

    def power(delta):
        missed = min(round(runs * seen_wrong) / runs, (1 - half * delta) / 2)
        counts = rng.multinomial(runs, [missed + half * delta, missed, max(0, 1 - 2 * missed - half * delta)], 4000)
        shown = variation_game_lower(
            counts[:, 0], counts[:, :2].sum(axis=1), runs, named=round(2 * half), confidence=0.95
        )
        return np.mean(shown > 0.02)

    assert power(found) == pytest.approx(0.8, abs=0.05)
    assert power(0.02) < 0.05
    assert power((found + 0.02) / 2) < 0.65  # negative control


def test_few_runs_that_choose_may_name_the_wrong_side():
    how, truth, counting = Variation(ApproxDP(0, 0.1), 1, 0.95), ApproxDP(0, 0.3), np.array([200])
    alone, chosen = (how.power(truth, np.array([choosing]), counting) for choosing in (0, 10))
    assert 0.2 < alone < 1
    assert chosen == pytest.approx(alone * right_side(np.array([10]), 0.65), rel=1e-12)


def test_a_rule_for_one_database_counts_twice_and_one_for_both_once():
    how, counts = Variation(ApproxDP(0, 0.1), 1, 0.95), named((0, 20, 480), (0, 220, 280))
    one, both = (lower(how, counts, event) for event in (ONE, BOTH))
    assert one == pytest.approx(2 * both)
    assert 0.32 < one < 0.4
    most = lower(how, named((0, 0, 500), (0, 500, 0)), ONE)  # every run of the database that it names, and no other
    assert how.ceiling(counts, how.basis(ONE)) == most < 0.97 < how.ceiling(counts, how.basis(BOTH))
    with refused(ValueError, "named must be 1 or 2, got 0"):
        variation_game_lower(1, 2, 3, named=0, confidence=0.95)


def test_what_total_variation_has_no_use_for():
    class Telling:
        def exact_loss(self, pair):
            return LossDistribution(np.zeros(1), np.ones(1) * 0.5, infinite_mass=0.5, missing_mass=0.5)

    assert support_witness(Telling(), PAIR, ApproxDP(1, 0.1)) is not None
    assert support_witness(Telling(), PAIR, ApproxDP(0, 0.1)) is None  # a difference of probabilities has a limit
    with refused_like(ValueError, "^one run bounds no total variation: epsilon must be positive, got epsilon 0"):
        OneRun(ApproxDP(0, 0.1), 1, 0.95)
