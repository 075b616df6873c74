"""Bets against promises: no law that keeps one makes money on average, and the stake is the best one."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.stats import norm

from audit.bounds.betting import SHRUNK, Bet, betting_evidence, betting_lower, growth, score_growth, staked, total
from audit.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP

FAMILIES = st.one_of(
    st.builds(PureDP, st.floats(0.01, 8)),
    st.builds(ApproxDP, st.floats(0, 5), st.floats(0, 0.9)),
    st.builds(GaussianDP, st.floats(0.01, 6)),
    st.builds(ZCDP, st.floats(0.001, 20)),
)
SHARE = st.floats(0.001, 0.999)


def worst(claim: Claim, likely: float) -> float:
    """Return the least probability on a neighbor of an event that is so likely."""
    return max(0.0, *((likely - delta) * math.exp(-epsilon) for epsilon, delta in zip(*claim.lines(), strict=True)))


@given(FAMILIES, st.sampled_from([1, 2]), SHARE, SHARE, SHARE, SHARE)
def test_no_law_that_keeps_a_promise_makes_money_on_average(claim, regions, named, right, on_y, on_x):
    """Exactly: the mean of the money after a run with a coin, and after one on each database, for the worst laws."""
    expected = named * right, named * (1 - right)
    outcomes = [(1, 0), (0, 1), (0, 0)]
    money = np.exp(growth([(regions, *expected, 1, *outcome) for outcome in outcomes], [claim.lines()]))[..., 0]
    # The region of y has the probability on_y there, and as little as is allowed on x; so has the region of x.
    above = on_y if regions == 1 else on_y * on_x
    below = 0.0 if regions == 1 else (1 - on_y) * on_x
    sides = [(above, worst(claim, below) if regions == 2 else 0.0), (below, worst(claim, above))]  # on y, and on x
    rates = np.array([(right, wrong, 1 - right - wrong) for right, wrong in sides])
    if rates.sum(axis=0).min() >= 0:
        assert (money @ rates.mean(axis=0) <= 1 + 1e-9).all()
    if rates.min() >= 0:  # given outputs: one of each database, and no coin
        assert (np.prod(money @ rates.T, axis=-1) <= 1 + 1e-9).all()


@given(FAMILIES, st.sampled_from([1, 2]), SHARE, SHARE)
def test_the_stake_and_the_line_grow_fastest(claim, regions, named, right):
    right, wrong = named * right, named * (1 - right)
    stake, gain, loss, d, expected = (
        part[0, 0, 0] for part in staked([(regions, right, wrong, 0, 0, 0)], [claim.lines()])
    )
    slowest = 0.0
    for epsilon, delta in zip(*claim.lines(), strict=True):
        gone = delta * regions / 2

        def log(at, epsilon=epsilon, gone=gone):
            win, lose = math.log1p(at * (1 - gone)), math.log1p(-at * (math.exp(epsilon) + gone))
            return -(right * win + wrong * lose + (1 - named) * math.log1p(-at * gone))

        found = optimize.minimize_scalar(log, bounds=(0, (1 - 1e-9) / (math.exp(epsilon) + gone)), method="bounded")
        slowest = max(slowest, -found.fun)
    assert expected >= slowest - 1e-7
    assert 0 <= stake * loss < 1
    assert gain == 1 - d


@settings(max_examples=40)
@given(st.floats(0.05, 3), st.floats(0.2, 3), st.floats(0.5, 2))
def test_no_laws_within_rho_make_money_on_a_score(shift, believed, wider):
    """Two normal laws with exactly this rho, in bins; the score and the stake are of other laws."""
    edges = np.concatenate([[-np.inf], np.linspace(-3, 3, 9), [np.inf]])
    x, y = (np.diff(norm.cdf(edges + side * shift / 2)) for side in (1, -1))
    of_x, of_y = (0.99 * np.diff(norm.cdf((edges + side * believed / 2) / wider)) + 0.001 for side in (1, -1))
    score = np.log(of_y / of_x)
    means = np.zeros((2, len(SHRUNK)))
    for place, (law, row) in itertools.product(range(10), ((x, 3), (y, 4))):
        bet = [score, of_x, of_y, np.zeros(10), np.zeros(10)]
        bet[row] = np.eye(10)[place]
        means[row - 3] += law[place] * np.exp(score_growth([bet], [shift**2 / 2])[:, 0, 0])
    assert (means.mean(axis=0) <= 1 + 1e-9).all()
    assert (means.prod(axis=0) <= 1 + 1e-9).all()  # one run on each database, and no coin


def test_money_is_that_of_three_players():
    """By hand: after ten right guesses, each player has (1 + t)^10, with the stake of an expected .9."""
    stake = (0.9 - 0.1 * math.e) / math.e
    money = [(1 + by * stake) ** 10 for by in (1, 0.5, 0.25)]
    found = betting_evidence([Bet(2, 0.9, 0.1, 10, 10, 0)], [PureDP(1).lines()])
    assert found == pytest.approx(math.log(sum(money) / 3))
    assert total(np.log(money)) == pytest.approx(math.log(sum(money) / 3))


def test_what_is_expected_to_lose_is_not_bet_on():
    for bet in (Bet(2, 0.7, 0.3, 100, 100, 0), Bet(2, 0.0, 0.0, 100, 0, 0)):
        assert betting_evidence([bet], [PureDP(1).lines()]) == pytest.approx(0)
    assert betting_evidence([Bet(1, 0.4, 0.1, 100, 40, 10)], [ApproxDP(0.5, 0.9).lines()]) == pytest.approx(0)


def grid(bets):
    return lambda budgets: betting_evidence(bets, [PureDP(budget).lines() for budget in budgets])


def test_the_bound_is_the_last_budget_that_is_refuted_and_never_above_what_was_seen():
    bets = [Bet(2, 0.9, 0.1, 1000, 900, 100)]
    found = betting_lower(grid(bets), 1.0, confidence=0.95)
    assert 1.8 < found < math.log(9)
    assert grid(bets)([found]) >= math.log(20) > grid(bets)([1.0051 * found])
    assert betting_lower(grid(bets), 1.0, confidence=0.95, most=1.5) == pytest.approx(1.5, rel=0.006)
    assert (
        betting_lower(grid(bets), 1.0, confidence=0.999)
        < found
        > betting_lower(grid(bets), 1.0, confidence=0.95, inflation=2.0)
    )
    assert betting_lower(grid([Bet(2, 0.5, 0.5, 9, 9, 0)]), 1.0, confidence=0.95) == 0  # nothing was bet
    # Money that was there once counts, whatever came later; a budget above one that stands does not.
    lost = Bet(2, 0.9, 0.1, 1000, 100, 900)
    assert betting_lower(grid([*bets, lost]), 1.0, confidence=0.95) == found
    odd = lambda budgets: np.where(np.abs(np.log(budgets / 0.5)) < 0.1, 0.0, 9.0)[:, None]  # noqa: E731
    assert betting_lower(odd, 1.0, confidence=0.95) == pytest.approx(0.5 * math.exp(-0.1), rel=0.006)
