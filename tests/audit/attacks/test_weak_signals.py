import math

import numpy as np
import pytest
from scipy.stats import norm

from audit.attacks.movement import explore
from audit.attacks.protocol import Exploration
from audit.attacks.weak_signals import combined_score, companions, pick, still_gains
from audit.claims import PureDP
from audit.measure.loss import measure_loss
from audit.review.verify import verify_result
from tests.audit.attacks.cases import exploration
from tests.audit.audits import COIN
from tests.audit.sampling.cases import given_runs

ENTRIES, FAMILY, LEAD = 40, range(8, 16), 10
RUNS, FRESH = 10_000, 40_000
# The lead moves by 1 against 7 others whose own noise is 1, once the noise that all 8 share, of 5, is taken off.
SHIFT = math.sqrt(1 - (25 / (1 + 8 * 25)))


def family(secret, size, rng):
    """Forty entries with noise of their own, rounded, of which eight share more: one of these counts the secret."""
    outputs = rng.normal(size=(size, ENTRIES))
    outputs[:, FAMILY] += 5 * rng.normal(size=(size, 1))
    outputs[:, LEAD] += secret
    return outputs.round(6)


def features_of(x, y, entries=(0, LEAD)):
    return companions(explore(exploration(x, y)), np.array(entries))


def right(score, x, y):
    return (np.mean(score(x) < 0) + np.mean(score(y) > 0)) / 2


def learned(x, y):
    """What varies with an entry that moves, and a score that was taught on it."""
    features = features_of(x, y)
    return features, combined_score(pick(x, features.entries), pick(y, features.entries), features, seed=1)


@pytest.fixture(scope="module")
def taught():  # what is learned from 20,000 runs, half a second
    rng = np.random.default_rng(3)
    x, y = family(0, RUNS, rng), family(1, RUNS, rng)
    return (x, y, *learned(x, y))


def test_companions_are_what_varies_with_an_entry_that_moves(taught):
    *_, features, _ = taught
    assert features.entries.tolist() == [0, *FAMILY]
    assert set(features.entries[features.leads]) == {LEAD}
    assert sorted(features.entries[features.others]) == [one for one in FAMILY if one != LEAD]
    values = np.arange(9.0)[None]
    at = features.entries.tolist().index(LEAD)
    assert sorted(features(values)[0, 9:]) == sorted(at - np.delete(np.arange(1.0, 9), at - 1))
    assert features.size == features(values).shape[1] == 16


@pytest.mark.parametrize("runs", [RUNS, 50])
def test_nothing_varies_with_what_does_not_move(runs):
    """Negative control: equal laws, and too few runs to tell. A false alarm of 40 entries has probability 1e-7."""
    rng = np.random.default_rng(2)
    features = features_of(family(0, runs, rng), family(40 * (runs < RUNS), runs, rng))
    assert features.entries.tolist() == [0, LEAD]
    assert features.size == 2


def test_what_entries_share_is_taken_off(taught):  # a search among many entries
    *_, score = taught
    rng = np.random.default_rng(13)
    x, y = family(0, FRESH, rng), family(1, FRESH, rng)
    # The best guess is right with probability 0.68. Of 80,000 guesses the rate is known to 0.0016: 4 of them are passed
    # with probability 3e-5. The entry by itself is right in 0.54: negative control.
    assert norm.cdf(SHIFT / 2) - 0.015 < right(score, x, y) < norm.cdf(SHIFT / 2) + 0.007
    assert right(lambda outputs: outputs[:, LEAD] - 0.5, x, y) < 0.55
    apart_by = score(y).mean() - score(x).mean()  # log-odds: their means differ by the squared shift
    assert apart_by == pytest.approx(SHIFT**2, rel=0.2)


def test_scores_are_finite_whatever_comes():
    rng = np.random.default_rng(4)
    x, y = family(0, RUNS, rng), family(1, RUNS, rng)
    x[::7, LEAD], y[::7, LEAD + 1], x[::9, 0] = -math.inf, math.inf, 1.7e308
    _, score = learned(x, y)
    strange = np.array([np.full(ENTRIES, value) for value in (math.inf, -math.inf, 1.7e308, 0.0)])
    strange[3, LEAD] = math.inf
    assert np.isfinite(score(strange)).all()


def test_more_runs_gain_where_fresh_runs_are_told_apart_less_than_those_that_taught():
    rng = np.random.default_rng(7)
    near, far = ((rng.normal(size=5000), rng.normal(by, 1, size=5000)) for by in (0.5, 1.0))
    nothing = rng.normal(size=(2, 5000))
    assert still_gains([lambda scores: scores], far, near)
    assert not still_gains([lambda scores: scores], near, near)
    assert not still_gains([lambda scores: scores], far, nothing)  # false alarm 3e-5


def test_runs_that_teach_are_taken_from_those_that_count_before_any_is_made():  # 40,000 runs of many entries
    """Of all 30% choose, and may teach; a third of the others teaches besides what entries share."""
    result = measure_loss(lambda secret, size, rng: family(secret, size, rng), COIN, PureDP(0.5), size=40_000, rng=8)
    assert result.verdict == "violated"
    assert "differences" in result.event
    assert result.selection == 12_000 + 2 * (28_000 // 6)
    assert sum(side["runs"] for side in result.counts.values()) == result.size - result.selection
    verify_result(result)


@pytest.mark.parametrize(("moves", "size"), [(True, 14_000), (False, 20_000)], ids=["few count", "nothing to learn"])
def test_no_runs_are_borrowed_where_too_few_count_or_there_is_nothing_to_learn(moves, size):
    result = measure_loss(lambda bit, size, rng: family(bit * moves, size, rng), COIN, PureDP(1.0), size=size, rng=2)
    assert result.selection == 0.3 * size


@pytest.mark.parametrize(("runs", "used"), [(10, 10), (11, 10), (100, 30), (0, 0)])
def test_no_more_extra_runs_are_used_than_are_allowed(runs, used):
    exploration = Exploration(given_runs(np.zeros((9, 1)), np.ones((9, 1))), 10, extra_allowed=31)
    assert [exploration.use_extra(number) for number in (runs, 100, 100)] == [used, 30 - used, 0]
