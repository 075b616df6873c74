"""Bounds for every look: literal twins, and stakes that gain nothing on average (coverage: row 1)."""

import math

import numpy as np
import pytest

from audit.bounds.anytime import STAKES, _mixture, anytime_game_lower, look_confidence
from audit.claims import ApproxDP
from tests.audit.audits import at_the_boundary


def literal_wealth(correct, wrong, abstained, epsilon, delta, distance):
    """What each run does to each stake, one factor at a time."""
    pair = ApproxDP(epsilon, delta).group(distance)
    total = 0.0
    for stake in STAKES:
        lost = stake * (math.exp(pair.epsilon) + pair.delta)
        if lost < 1:
            right, none = 1 + stake * (1 - pair.delta), 1 - stake * pair.delta
            total += right**correct * (1 - lost) ** wrong * none**abstained / len(STAKES)
    return total


# Known truth


@pytest.mark.parametrize(
    ("seen", "delta", "distance"),
    [((80, 20, 0), 0.0, 1), ((80, 20, 100), 0.01, 1), ((60, 5, 30), 1e-3, 3), ((90, 0, 10), 0.0, 20)],
)
@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-6])
def test_the_lower_bound_is_where_the_wealth_suffices(seen, delta, distance, alpha):
    correct, wrong, _ = seen
    bound = anytime_game_lower(correct, wrong, sum(seen), confidence=1 - alpha, delta=delta, distance=distance)
    assert bound > 0
    assert literal_wealth(*seen, bound * (1 - 1e-6), delta, distance) >= 1 / alpha * (1 - 1e-9)
    assert literal_wealth(*seen, bound * (1 + 1e-6) + 1e-9, delta, distance) < 1 / alpha


@pytest.mark.parametrize(
    ("epsilon", "delta", "share", "distance"), [(0.5, 0.0, 1, 1), (1, 0.05, 0.3, 1), (0.2, 0.01, 0.5, 3)]
)
def test_no_stake_gains_on_average(epsilon, delta, share, distance):
    """One run at the boundary: the average factor is 1 for every stake, hence at most 1 wherever the promise holds."""
    right, wrong, none = at_the_boundary(epsilon, delta, share, distance)
    pair = ApproxDP(epsilon, delta).group(distance)
    stakes = STAKES[STAKES * (math.exp(pair.epsilon) + pair.delta) < 1]
    factors = (
        right * (1 + stakes * (1 - pair.delta))
        + wrong * (1 - stakes * (math.exp(pair.epsilon) + pair.delta))
        + none * (1 - stakes * pair.delta)
    )
    np.testing.assert_allclose(factors, 1, rtol=1e-12)


@pytest.mark.parametrize(("guesses", "accuracy"), [(1, 0.5), (1000, 0.8), (1e9, 0.999)])
def test_most_is_staked_three_standard_errors_from_what_is_expected(guesses, accuracy):
    stakes, log_shares = _mixture((guesses, accuracy))
    best = min(3 * math.sqrt((1 - accuracy) / (accuracy * guesses)), stakes[-1])
    assert log_shares.argmax() == np.abs(np.log(stakes / best)).argmin()
    assert np.exp(log_shares).sum() == pytest.approx(1)


def test_looks_share_the_error():
    errors = [1 - look_confidence(k, 0.9) for k in range(1, 2001)]
    assert errors[0] == pytest.approx(0.05)
    assert math.fsum(errors) == pytest.approx(0.1 * (1 - 1 / 2001))
    assert math.fsum(1 - look_confidence(k, 0.9, 7) for k in range(1, 8)) == pytest.approx(0.1)


# Properties


def test_nothing_seen_shows_nothing():
    assert anytime_game_lower(0, 0, 0, confidence=0.95) == 0
    assert anytime_game_lower(0, 0, 100, confidence=0.95, delta=0.1) == 0
    assert anytime_game_lower(1, 0, 1, confidence=0.95) == 0
    assert anytime_game_lower(500, 500, 1000, confidence=0.95) == 0
    assert anytime_game_lower(10, 0, 10**5, confidence=0.95, delta=0.001) == 0  # so seldom may be the leak alone
    assert 12 < anytime_game_lower(10**7, 0, 10**7, confidence=0.95) < 16.2
    assert 10 < anytime_game_lower(10**15, 0, 10**15, confidence=0.95) <= -math.log(STAKES[0])  # never infinite
