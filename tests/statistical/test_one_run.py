"""Audits of one run: they exceed what is true as seldom as they say, and the mistakes that would not."""

from functools import partial

import numpy as np
import pytest
from scipy import special, stats
from scipy.optimize import brentq

from algorithms.flaxman import GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from audit.bounds.one_run import one_run_p_value
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.measure.one_run import Canaries, measure_loss_one_run
from audit.methods.one_run import OneRun
from tests.audit.audits import answers, gaussian, one_run_losses
from tests.helpers import in_full, most

SLOW = pytest.mark.slow
coverage = pytest.mark.parametrize("audits", [pytest.param(1000, marks=SLOW)])  # a second each in short
EMPTY = Canaries([0] * 400)


def worst_case(epsilon, delta):
    """The law of counts 0 and 1 that attains (epsilon, delta): all is told with probability delta."""

    def mechanism(data, size, rng):
        shape = (size, *data.shape)
        lie = rng.random(shape) >= special.expit(epsilon)
        revealed = rng.random(shape) < delta
        return np.where(revealed, 5.0 * (2 * data - 1), np.where(lie, 1.0 - data, data))

    return mechanism


def chain(epsilon, delta, people):
    """Tells nothing but, seldom, that a count is low or high: each step is (epsilon, delta)-DP, and deltas pile up.

    The probability of "low" falls from a count to the next as delta allows, to 0 at `people`: low(k) = exp(epsilon)
    low(k + 1) + delta. That of "high" rises in the same way.
    """
    low = delta * np.expm1(epsilon * np.arange(people, -1, -1)) / np.expm1(epsilon)

    def mechanism(data, size, rng):
        chance = rng.random((size, *data.shape))
        high = chance >= 1 - low[people - data]
        return np.where(chance < low[data], -people, np.where(high, 2 * people, people / 2))

    return mechanism


def misses(audits, truth, *args, **options):
    return sum(loss > truth for loss in one_run_losses(audits, *args, **options))


@pytest.mark.parametrize("audits", in_full(30, 1000))
@pytest.mark.parametrize("options", [{}, {"share": 0.3}], ids=["all", "a share"])
def test_pure_promises_are_kept(audits, options):
    assert misses(audits, 1.0, GDPC(1.0), Canaries([100] * 1000), PureDP(1.0), **options) <= most(audits)


@coverage
@pytest.mark.parametrize("share", [None, 0.2])
def test_pure_promises_of_groups_are_kept(audits, share):
    canaries = Canaries([100] * 500, people=20)
    assert misses(audits, 0.1, GDPC(0.1), canaries, PureDP(0.1), share=share) <= most(audits)


@coverage
def test_pure_promises_are_kept_whatever_areas_share(audits):
    """One public coin says how many areas are answered, which ones, and with which sign."""

    def tied(data, size, rng):
        answered = rng.permutation(data.size) < (20 if rng.random() < 0.5 else 200)
        guesses = np.where(rng.random(data.size) < special.expit(1.0), data, 1 - data)
        return np.tile(np.where(answered, guesses, 0.5), (size, 1))

    assert misses(audits, 1.0, tied, EMPTY, PureDP(1.0)) <= most(audits)


@coverage
@pytest.mark.parametrize("share", [None, 0.5])
def test_raked_areas_keep_the_promise(audits, share):
    """Areas depend on each other; one leaf carries a share of the budget, and no more than all of it."""
    raked = RDPC(1.0, Hierarchy.regular(10, 2))
    found = one_run_losses(audits, raked, Canaries([100] * 100), PureDP(1.0), share=share)
    assert sum(loss > 1.0 for loss in found) <= most(audits)
    assert sum(loss > 0 for loss in found) > audits / 5  # it is no empty bound


@coverage
@pytest.mark.parametrize(("delta", "share"), [(1e-3, None), (1e-3, 0.1), (1e-5, 1.0)])
def test_approximate_promises_are_kept_by_the_worst_law(audits, delta, share):
    assert misses(audits, 1.0, worst_case(1.0, delta), EMPTY, ApproxDP(1.0, delta), share=share) <= most(audits)


@coverage
def test_approximate_promises_of_groups_are_kept(audits):
    canaries = Canaries([0] * 400, people=400)
    assert misses(audits, 0.005, chain(0.005, 5e-5, 400), canaries, ApproxDP(0.005, 5e-5), share=0.05) <= most(audits)


@pytest.mark.parametrize("audits", in_full(12, 1000))  # a bound under a curve takes 30 ms
@pytest.mark.parametrize("claim", [GaussianDP(1.0), ZCDP(0.5)], ids=str)
@pytest.mark.parametrize("share", [None, 0.5])
def test_gaussian_promises_are_kept(audits, claim, share):
    assert misses(audits, claim.budget, gaussian, EMPTY, claim, share=share) <= most(audits)


def seldom_more(claim, seldom, share, accuracy):
    """Canaries lose more together, seldom: then as many as are guessed are told, as rightly as the promise allows."""

    def mechanism(data, size, rng):
        revealed = rng.permutation(data.size) < round(share * data.size) if rng.random() < seldom else data < 0
        lie = rng.random(data.size) >= accuracy
        return np.tile(np.where(revealed, np.where(lie, 1 - data, data), 0.5), (size, 1))

    right = seldom * share * accuracy
    assert claim.rarest(right) <= seldom * share - right < 1.05 * claim.rarest(right)
    return mechanism


def normal(mu):
    return lambda bits, rng: bits * mu + rng.normal(size=bits.size) - mu / 2


def shared_coin(mu):
    """Normal noise of 0.77 mu, but with probability 0.1 each guess is right as often as then keeps the promise."""
    rest, epsilons = GaussianDP(0.77 * mu), np.linspace(0, 10, 1001)
    room = np.array([GaussianDP(mu).delta_at(e) - 0.9 * rest.delta_at(e) for e in epsilons]) / 0.1
    accuracy = np.min((room + np.exp(epsilons)) / (1 + np.exp(epsilons)))

    def scores(bits, rng):
        worse = rng.random() < 0.1
        return (
            9.0 * np.where(rng.random(bits.size) < accuracy, bits, ~bits) - 4.5 if worse else normal(rest.mu)(bits, rng)
        )

    return scores


def revealed(mu, seldom):
    """Nothing, but seldom as many guesses as are counted, right as often as the promise allows."""
    claim = GaussianDP(mu)
    share = OneRun(claim, 1, 0.95).share(10_000)
    each = seldom * share
    accuracy = brentq(lambda rate: claim.rarest(each * rate) - each * (1 - rate), 0.5, 1.0)

    def scores(bits, rng):
        shown = (rng.random() < seldom) & (rng.permutation(bits.size) < share * bits.size)
        return (
            (1 + 8.0 * shown) * np.where(rng.random(bits.size) < np.where(shown, accuracy, 0.5), 1, -1) * (bits - 0.5)
        )

    return scores


@pytest.mark.parametrize("law", [shared_coin, partial(revealed, seldom=0.06), partial(revealed, seldom=0.2)])
@pytest.mark.parametrize(
    "mu", [pytest.param(0.5, marks=SLOW), 1.0, pytest.param(2.0, marks=SLOW)]
)  # .6 s: of 1,000 runs right guesses are counted
def test_curves_are_kept_whatever_canaries_share(law, mu):
    """Negative control: as many guesses as independent canaries have right with probability 0.05 are no evidence."""
    method, laws, number = OneRun(GaussianDP(mu), 1, 0.95), law(mu), 10_000
    guessed = round(method.share(number) * number)
    right = stats.norm.sf(stats.foldnorm.isf(guessed / number, mu / 2) - mu / 2) * number / guessed
    correct = []
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        bits = rng.random(number) < 0.5
        clear = laws(bits, rng)
        clearest = np.argpartition(-np.abs(clear) + 1e-9 * rng.random(number), guessed)[:guessed]
        correct.append(np.sum((clear > 0)[clearest] == bits[clearest]))
    assert np.sum(np.array(correct) >= method.needed(guessed, number)) <= most(1000)
    if law is not shared_coin and law.keywords["seldom"] == 0.2:
        assert np.sum(np.array(correct) > stats.binom.isf(0.05, guessed, right)) > most(1000)


@coverage
@pytest.mark.parametrize("revealed", [40, 130])
def test_approximate_promises_are_kept_where_canaries_fail_together(audits, revealed):
    """Each with probability 1e-3, so many at once."""

    def failing(data, size, rng):
        failed = rng.permutation(data.size) < (revealed if rng.random() < 1e-3 * data.size / revealed else 0)
        lie = rng.random(data.size) >= special.expit(1.0)
        return np.tile(np.where(failed, 5.0 * (2 * data - 1), np.where(lie, 1.0 - data, data)), (size, 1))

    assert misses(audits, 1.0, failing, EMPTY, ApproxDP(1.0, 1e-3), share=1.0) <= most(audits)


# The mistakes


@coverage
def test_a_share_chosen_after_the_run_misses(audits):
    """The same release read with twelve shares, the best one reported: wrong 16 times in 100, not 5."""
    shares = np.geomspace(1.0, 0.02, 12)
    best = np.max(
        [one_run_losses(audits, GDPC(1.0), Canaries([100] * 300), PureDP(1.0), share=one) for one in shares], axis=0
    )
    assert np.sum(best > 1.0) > most(audits)


@SLOW
def test_canaries_taken_for_independent_miss():
    """A binomial tail at what normal noise lets be right of the clearest twentieth: wrong 20 times in 100, not 5."""
    law, canaries = seldom_more(GaussianDP(1.0), 0.2, 0.05, 0.9584), Canaries([0] * 10_000)
    results = [measure_loss_one_run(law, canaries, GaussianDP(1.0), share=0.05, rng=seed) for seed in range(200)]
    correct = np.array([result.counts["x"]["guessed_x"] + result.counts["y"]["guessed_y"] for result in results])
    beyond = stats.foldnorm.isf(0.05, 0.5)
    assert np.sum(stats.binom.sf(correct - 1, 500, stats.norm.sf(beyond - 0.5) / 0.05) < 0.05) > most(200)
    assert sum(result.measured.mu > 1.0 for result in results) <= most(200)


@pytest.mark.parametrize("audits", in_full(20, 200))
def test_delta_left_out_misses(audits):
    assert misses(audits, 1.0, worst_case(1.0, 0.05), EMPTY, PureDP(1.0), share=0.2) > most(audits)


def test_a_group_bound_with_delta_is_no_quotient():
    """Deltas of 400 steps of (0.005, 0.00005) pile up to 0.064; a bound on the whole, divided, accuses the innocent."""
    epsilon, delta, people, number = 0.005, 5e-5, 400, 10_000
    steps = chain(epsilon, delta, people)
    quotient = measure_loss_one_run(
        lambda data, size, rng: steps(people * data, size, rng) / people,
        Canaries([0] * number),
        ApproxDP(epsilon * people, delta),
        share=0.05,
        rng=1,
    )
    assert quotient.measured.epsilon / people > 1.2 * epsilon
    canaries = Canaries([0] * number, people=people)
    group = measure_loss_one_run(steps, canaries, ApproxDP(epsilon, delta), share=0.05, rng=1)
    assert group.counts == quotient.counts
    assert group.measured.epsilon <= epsilon


def test_a_number_of_guesses_left_to_the_mechanism_misses():
    """Why a promise with a delta is tested with a number of guesses that is fixed beforehand: an exact law.

    With a small probability the mechanism tells 13 canaries of 4,000 outright, answers one more and is silent about the
    others; else it answers all by randomized response. Each canary is told with probability delta.
    """
    epsilon, number, delta, revealed, of = 0.02, 4000, 0.2 / 4000, 13, 14
    rate, seldom = special.expit(epsilon), number * delta / revealed

    def fewest(guesses, at_least):
        right = range(at_least, guesses + 1)
        return next(v for v in right if one_run_p_value(v, guesses, epsilon, delta=delta, canaries=number) <= 0.05)

    few, many = fewest(of, 1), fewest(number, number // 2)
    missed = seldom * stats.binom.sf(few - revealed - 1, of - revealed, rate) + (1 - seldom) * stats.binom.sf(
        many - 1, number, rate
    )
    assert missed > 0.059
    result = measure_loss_one_run(answers(100, 0), EMPTY, ApproxDP(epsilon, delta), rng=1)
    guessed = sum(side["guessed_x"] + side["guessed_y"] for side in result.counts.values())
    assert guessed == 200  # whatever the release says
