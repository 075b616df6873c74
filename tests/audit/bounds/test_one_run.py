"""Bounds for one run: exact laws that promises allow, formulas written out, and the numbers of another program."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import expit, ndtr
from scipy.stats import binom

from audit.bounds.one_run import one_run_curve_p_value, one_run_least_mass, one_run_p_value
from audit.claims import ZCDP, Claim, GaussianDP, PureDP
from audit.methods.one_run import OneRun


def refuting(correct, guesses, canaries, claim, error=0.05):
    return one_run_least_mass(correct, guesses, canaries, error=error, rarest=claim.rarest) > 1


def smallest_mu(correct, guesses, canaries):
    """The mu up to which promises are refuted."""
    low, high = 0.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if refuting(correct, guesses, canaries, GaussianDP(middle)) else (low, middle)
    return low


def stein_p_value(correct, guesses, epsilon, delta, canaries):
    """The same bound with Stein's equation solved number by number, and the largest value of its solution looked up."""
    odds, tail = math.exp(epsilon), binom.sf(correct - 1, guesses, expit(epsilon))
    solution = [tail / (odds * guesses)]  # of k f(k - 1) - odds (n - k) f(k) = [k >= correct] - tail, from k = 0
    for k in range(1, guesses):
        solution.append((k * solution[-1] - (k >= correct) + tail) / (odds * (guesses - k)))
    return min(1.0, tail + canaries * delta * max(solution))


# Known truth


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
def test_one_canary_is_guessed_as_well_as_promises_allow(epsilon, delta):
    """Randomized response that tells the truth with probability delta attains the bound."""
    right = delta + (1 - delta) * expit(epsilon)
    assert one_run_p_value(1, 1, epsilon, delta=delta) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_one_canary_with_normal_noise_attains_the_bound(mu):
    right = ndtr(mu / 2)
    assert not refuting(1, 1, 1, GaussianDP(mu), error=right - 1e-9)
    assert refuting(1, 1, 1, GaussianDP(mu), error=right + 1e-9)


@pytest.mark.parametrize("guesses", [1, 2, 5, 30])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_p_values_solve_steins_equation(guesses, epsilon):
    for correct in range(1, guesses + 1):
        for delta, canaries in ((0.0, guesses), (1e-6, guesses), (1e-3, guesses + 20), (0.5, 2 * guesses)):
            ours = one_run_p_value(correct, guesses, epsilon, delta=delta, canaries=canaries)
            assert ours == pytest.approx(stein_p_value(correct, guesses, epsilon, delta, canaries), rel=1e-6)


def least_refuting(guesses, canaries, claim):
    return next((k for k in range(guesses // 2, guesses + 1) if refuting(k, guesses, canaries, claim)), guesses + 1)


def laws(guesses, canaries, claim):
    """Tails of the number of right guesses, where canaries lose more together, seldom, and else nothing.

    Then chance picks as many canaries as are guessed, and each is told, rightly as often as the promise allows: the
    curve of one canary is a polygon with its corners on that of the promise.
    """
    k = np.arange(guesses + 1)
    for seldom in np.geomspace(0.02, 1.0, 40):
        share = seldom * guesses / canaries

        def excess(rate, share=share):
            return claim.rarest(share * rate) - share * (1 - rate)

        rate = brentq(excess, 0.5, 1.0)
        yield seldom * binom.sf(k - 1, guesses, rate) + (1 - seldom) * binom.sf(k - 1, guesses, 0.5)


def most_probable(correct, guesses, canaries, claim):
    """The largest P(so many right guesses or more) of all laws that keep the promise, by linear programming.

    For each epsilon the promise limits a sum over the numbers of other right guesses: of how much likelier it is that
    one more guess is right than exp(epsilon) times that it is wrong, where it is likelier.
    """
    odds = np.exp(np.linspace(0, 5, 41))
    j, rows, limits = np.arange(guesses), [], []
    for place, level in enumerate(odds):  # variables: the law, then the positive parts of all excesses
        excess = np.zeros((guesses, guesses + 1 + odds.size * guesses))
        excess[j, j + 1], excess[j, j] = j + 1, -level * (guesses - j)
        excess[j, guesses + 1 + place * guesses + j] = -1
        together = np.zeros(excess.shape[1])
        together[guesses + 1 + place * guesses + j] = 1
        rows += [*excess, together]
        limits += [0.0] * guesses + [canaries * claim.delta_at(math.log(level))]
    law = np.arange(len(rows[0])) <= guesses
    objective = -1.0 * (law & (np.arange(law.size) >= correct))
    return -linprog(objective, rows, limits, law[None], [1.0]).fun


CLAIMS = pytest.mark.parametrize("claim", [GaussianDP(0.5), GaussianDP(1.0), ZCDP(0.5)], ids=str)


@CLAIMS
@pytest.mark.parametrize(("guesses", "canaries"), [(1, 3), (2, 2), (4, 10), (8, 20)])
def test_no_law_that_keeps_the_promise_is_impossible(claim, guesses, canaries):
    """At the probability that it gives to so many right guesses, whatever their number, nothing is refuted."""
    for law in [*laws(guesses, canaries, claim), binom.sf(np.arange(guesses + 1) - 1, guesses, ndtr(claim.shift / 2))]:
        for correct, tail in enumerate(law):
            assert not 1e-12 < tail < 1 or not refuting(correct, guesses, canaries, claim, error=tail * (1 - 1e-9))
            for error in (0.5, 0.05, 1e-4):
                p_value = one_run_curve_p_value(correct, guesses, canaries, lines=claim.lines(), error=error)
                assert p_value >= tail * (1 - 1e-9)


@pytest.mark.parametrize(
    ("claim", "guesses", "canaries", "correct"),
    [
        (GaussianDP(0.5), 12, 30, 11),
        (GaussianDP(0.3), 25, 100, 22),
        (GaussianDP(0.5), 40, 500, 37),
        (ZCDP(0.1), 20, 80, 18),
        (ZCDP(0.1), 40, 1000, 38),
    ],
)
def test_a_curve_allows_no_more_than_the_worst_law_has(claim, guesses, canaries, correct):
    """The p-value is never below it, and there is no room: the mass refutes at an error of 1.3 times as much."""
    most = most_probable(correct, guesses, canaries, claim)
    assert 0.005 < most < 0.2
    for error in (most, 0.05, 1e-3):
        assert one_run_curve_p_value(correct, guesses, canaries, lines=claim.lines(), error=error) >= most * (1 - 1e-6)
    assert one_run_curve_p_value(correct, guesses, canaries, lines=claim.lines(), error=most) < 2 * most
    assert refuting(correct, guesses, canaries, claim, error=1.3 * most)


@pytest.mark.parametrize(
    ("guesses", "correct", "mass", "more"),
    [(520, 399, 0.3458, 0.3541), (460, 427, 0.7203, 0.7314), (1600, 1587, 1.4075, 1.4267)],
)
def test_a_curve_proves_more_than_the_mass(guesses, correct, mass, more):
    """Typical numbers of right guesses about 10,000 canaries with normal noise of mu 0.5, 1 and 2."""
    assert smallest_mu(correct, guesses, 10_000) == pytest.approx(mass, abs=2e-4)
    assert one_run_curve_p_value(correct, guesses, 10_000, lines=GaussianDP(more).lines()) < 0.05


@CLAIMS
@pytest.mark.parametrize(("guesses", "canaries"), [(500, 10_000), (2000, 100_000)])
def test_canaries_that_lose_more_together_are_not_accused(claim, guesses, canaries):
    """Exact laws, and the mistake of leaving out whom the rule does not guess."""
    found, mistaken = (least_refuting(guesses, number, claim) for number in (canaries, guesses))
    weighed = OneRun(claim, 1, 0.95).needed(guesses, canaries)
    assert weighed < found
    tails = list(laws(guesses, canaries, claim))
    assert 0.01 < max(law[found] for law in tails) < max(law[weighed] for law in tails) <= 0.05  # no empty bounds
    assert max(law[mistaken] for law in tails) > 0.4


# Other programs, other formulas


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "mu"),
    [
        (10_000, 500, 463, 0.7184016038287363),
        (10_000, 300, 282, 0.728798132418317),
        (10_000, 2000, 1420, 0.30612625951514744),
        (1000, 1000, 700, 0.3572109418099317),
        (100_000, 1200, 1134, 0.7314701395102079),
    ],
)
def test_the_mass_is_that_of_jax_privacy(canaries, guesses, correct, mu):
    """Its `_epsilon_one_run_fdp`, version 2.0.0, at 95%; roots are its own to 1e-6 of an epsilon."""
    assert smallest_mu(correct, guesses, canaries) == pytest.approx(mu, abs=1e-6)


@pytest.mark.parametrize("claim", [ZCDP(0.02), ZCDP(0.5), GaussianDP(0.3), GaussianDP(2.0)], ids=str)
def test_curves_are_envelopes_of_their_profiles(claim):
    """The lines of the profile at any epsilon lie below, and some of a fine grid nearly touch."""
    for probability in (1e-9, 1e-4, 0.02, 0.2, 0.5):
        found = claim.rarest(probability)
        lines = [(probability - claim.delta_at(e)) * math.exp(-e) for e in np.linspace(0, 14, 1401)]
        assert max(lines) <= found * (1 + 1e-9)
        assert max(lines) == pytest.approx(found, rel=2e-3)
        assert Claim.rarest(claim, probability) <= found * (1 + 1e-9)
        assert Claim.rarest(claim, probability) == pytest.approx(found, rel=0.2)
    assert claim.rarest(0.0) == 0
    assert PureDP(1.0).rarest(0.2) == pytest.approx(0.2 * math.exp(-1))


# Extremes


def test_far_out_a_delta_still_counts():
    """Where binomial probabilities are below all floats, what one more failure would need remains."""
    found = one_run_p_value(1990, 2000, 0.1, delta=1e-9)
    assert found == pytest.approx(2e-6 / 1990 / (1 - math.exp(0.1) * 10 / 1991), rel=1e-9)
    assert one_run_p_value(1990, 2000, 0.1) == 0


def test_nothing_guessed_rightly_refutes_nothing():
    for correct, guesses in ((0, 0), (0, 5), (2, 5)):
        assert one_run_least_mass(correct, guesses, 9, error=0.05, rarest=GaussianDP(0.0).rarest) == 0.05
        assert one_run_curve_p_value(correct, guesses, 9, lines=GaussianDP(1.0).lines()) == 1


def test_a_curve_beyond_all_floats_refutes_nothing():
    """Also where too many numbers would need a weight."""
    assert one_run_curve_p_value(90, 100, 1000, lines=GaussianDP(1000.0).lines()) == 1
    assert one_run_curve_p_value(900_000, 10**6, 10**6, lines=GaussianDP(0.1).lines()) == 1
