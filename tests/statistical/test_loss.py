"""Whole audits: they reach nearly all of a loss, and exceed what is true as seldom as they say; row 1 has more."""

import math

import numpy as np
import pytest

from algorithms.flaxman import ADPC, GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.events import Event
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.methods.method import guesses
from audit.neighbors import NeighborPair
from tests.audit.audits import COIN, COUNTS, PAIR, TIGHT, audits_of, given_laplace, leaky, normal, says, shifted
from tests.helpers import in_full, most

slow = pytest.mark.slow
NOTHING = lambda _, size, rng: rng.geometric(0.3, (size, 2)), PureDP(1), 0.0  # no loss at all


def misses(results, truth):
    return sum(result.measured.budget > truth for result in results)


# What it reaches (the numbers that the flagship promises)


@pytest.mark.parametrize("audits", in_full(2, 1000))
def test_one_person_shows_the_whole_epsilon(audits):
    """The middle of audits of 200,000 runs, selection included, is at least 0.98 of epsilon."""
    results = [measure_loss(GDPC(1.0), PAIR, PureDP(1), rng=seed) for seed in range(audits)]
    assert np.median([result.measured.epsilon for result in results]) >= 0.98
    assert misses(results, 1.0) <= most(audits)


@pytest.mark.parametrize("audits", in_full(2, 200))
def test_a_group_shows_an_epsilon_that_one_person_cannot(audits):
    pair = NeighborPair.add_people(COUNTS, 0, people=80)
    results = [measure_loss(GDPC(0.025), pair, PureDP(0.025), size=1000, rng=seed) for seed in range(audits)]
    assert np.median([result.measured.epsilon for result in results]) >= 0.75 * 0.025
    assert misses(results, 0.025) <= most(audits)
    # The rule must abstain to get there: guessing on every run is right with probability 1 - exp(-1) / 2 only.
    always = Event.at_least(0, 161, low=160)
    plain = [
        measure_loss(GDPC(0.025), pair, PureDP(0.025), event=always, size=1000, rng=seed) for seed in range(audits)
    ]
    assert np.median([result.measured.epsilon for result in plain]) < math.log(2 * math.e - 1) / 80 < 0.75 * 0.025
    assert all(result.distance == 80 for result in results)


@slow
@pytest.mark.parametrize(("mechanism", "claim", "loss"), [NOTHING, (ADPC(2.0), PureDP(2), 2.0)])
def test_other_laws_are_exceeded_as_seldom(mechanism, claim, loss):
    results = [measure_loss(mechanism, PAIR, claim, size=2000, rng=seed) for seed in range(400)]
    assert misses(results, loss) <= most(400)


# Every promise, at its boundary: the law is the worst that keeps it


LONG = [(kind, "early", 200 if kind == "zero-concentrated" else 400) for kind in TIGHT]  # row 1 has the others
LONG += [(kind, how, 1000) for kind in ("total variation", "zero-concentrated") for how in ("fixed", "outputs")]
LONG += [(kind, "growing outputs", 200) for kind in ("pure", "Gaussian")]  # the last look has the bets of all before


@pytest.mark.parametrize(
    ("kind", "how", "audits"), [("pure", "fixed", 12), *(pytest.param(*one, marks=slow) for one in LONG)]
)
def test_a_promise_that_is_kept_is_exceeded_as_seldom_as_it_says(kind, how, audits):
    """Selection included; an audit that may stop early looks after each block. Slow ones have four times the runs."""
    mechanism, claim, size = TIGHT[kind]
    results = audits_of(mechanism, claim, how, size if audits == 12 else 4 * size, range(audits))
    assert misses(results, claim.budget) <= most(audits)
    assert sum(result.verdict == "violated" for result in results) <= most(audits)
    found = [result.measured.budget for result in results]
    assert len(set(found)) > min(20, audits / 3)
    assert (max(found) if audits < 1000 else np.median(found)) > 0.2 * claim.budget  # and not by showing nothing
    assert {(type(result.measured), result.confidence) for result in results} == {(type(claim), 0.95)}


GROUP = ApproxDP(0.5, 0.01).group(2)


@pytest.mark.parametrize("audits", in_full(8, 60))
@pytest.mark.parametrize(
    ("mechanism", "claim", "distance"),
    [
        pytest.param(leaky(GROUP.epsilon, GROUP.delta), ApproxDP(0.5, 0.01), 2, marks=slow),
        (shifted, GaussianDP(1.0), 3),
        pytest.param(shifted, ZCDP(0.5), 3, marks=slow),
    ],
    ids=["approximate", "Gaussian", "zero-concentrated"],
)
def test_a_promise_to_a_group_is_exceeded_as_seldom(mechanism, claim, distance, audits):
    pair = NeighborPair.declared(0, 1, "add_remove", distance=distance)
    results = audits_of(mechanism, claim, "fixed", 1000, range(audits), pair)
    assert misses(results, claim.budget) <= most(audits)
    assert np.median([result.measured.budget for result in results]) > 0.3 * claim.budget
    if not isinstance(claim, ApproxDP):  # negative control: a loss that is not shared, or shared as an epsilon is
        shared = distance if isinstance(claim, ZCDP) else 1
        assert sum(result.measured.budget * distance**2 / shared > claim.budget for result in results) > most(audits)


@pytest.mark.parametrize("audits", in_full(2, 8))
@pytest.mark.parametrize(
    ("mechanism", "claim", "least"),
    [
        (leaky(1.0, 0.01), ApproxDP(1.0, 0.01), 0.95),
        (normal, GaussianDP(1.0), 0.93),
        (normal, ZCDP(0.5), 0.88),
        (normal, ApproxDP(1.0, GaussianDP(1.0).delta_at(1.0)), 0.8),
    ],
    ids=["approximate", "Gaussian", "zero-concentrated", "normal noise, approximate"],
)
def test_a_promise_that_is_kept_to_the_letter_is_nearly_reached(mechanism, claim, least, audits):
    found = [result.measured.budget for result in audits_of(mechanism, claim, "fixed", 100_000, range(audits))]
    assert least * claim.budget <= np.median(found) <= claim.budget
    assert max(found) <= 1.05 * claim.budget


# Zero-concentrated privacy of whole numbers


def discrete(seed, claim=None, size=200_000):
    pair = NeighborPair.add_people([120], 0)
    return measure_loss(GaussianCounts(0.5), pair, claim or ZCDP(0.5), size=size, rng=seed)


@pytest.mark.parametrize("audits", in_full(1, 200))
def test_discrete_noise_shows_nine_tenths_of_its_rho(audits):  # 200,000 runs for rho
    results = [discrete(seed) for seed in range(audits)]
    found = [result.measured.rho for result in results]
    assert min(found) > 0.4
    assert np.median(found) >= 0.90 * 0.5
    assert misses(results, 0.5) <= most(audits)
    assert all("log-likelihood ratio of " in result.event for result in results)
    # With these seeds few runs rate the orders, and meet no rare value: order 4 looked best, and showed less.
    assert min(discrete(seed, size=5714).measured.rho for seed in (1, 39)) > 0.27


@slow
@pytest.mark.parametrize(("size", "least"), [(5714, 0.35), (28_571, 0.425), (200_000, 0.47)])
def test_of_normal_noise_most_of_rho_is_proved(size, least):
    results = [measure_loss(normal, COIN, ZCDP(0.5), size=size, rng=seed) for seed in range(12)]
    assert np.median([result.measured.rho for result in results]) >= least


# Outputs from elsewhere, and words


@slow
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(
    ("kind", "runs", "runs_y"),
    [
        *((kind, *runs) for kind in list(TIGHT)[1:] if kind != "approximate" for runs in ((49, 51), (20_000, 300))),
        ("pure", 2000, 60),
        ("pure", 300, 300),
    ],
)
def test_a_thousand_audits_of_given_outputs_exceed_as_seldom(kind, runs, runs_y, confidence):
    """False alarm 1e-4 each; and the mistake: what the counts say, taken at face value. Row 1 has other sizes."""
    (mechanism, claim, _), found, exceeded = TIGHT[kind], [], 0
    options = {"relation": "add_remove", "confidence": confidence, "selection": 0.5, "attack": "entries"}
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        x, y = mechanism(0, runs, rng), mechanism(1, runs_y, rng)
        found.append(measure_loss_from_outputs(x, y, claim, rng=rng, **options))
        if kind == "pure":
            right, guessed, _ = guesses(found[-1].counts)
            exceeded += 0 < guessed < (1 + math.exp(-1)) * right
    assert misses(found, claim.budget) <= most(1000, confidence)
    if kind == "pure" and runs == runs_y:
        assert exceeded > most(1000, confidence)


@pytest.mark.parametrize("audits", in_full(5, 30))
@pytest.mark.parametrize(("runs", "runs_y", "bound"), [(250, 2000, "guessing game"), (40, 60, "two samples")])
def test_given_outputs_are_exceeded_as_seldom_as_it_says(runs, runs_y, bound, audits):
    results = [
        measure_loss_from_outputs(*given_laplace(seed, runs, runs_y), PureDP(1), relation="add_remove", rng=seed)
        for seed in range(audits)
    ]
    assert {result.bound for result in results} == {bound}
    assert misses(results, 1.0) <= most(audits)


@pytest.mark.parametrize("audits", in_full(2, 8))
def test_given_outputs_show_nearly_what_the_mechanism_would(audits):
    results = [
        measure_loss_from_outputs(*given_laplace(seed, 100_000), PureDP(1), relation="add_remove", rng=seed)
        for seed in range(audits)
    ]
    assert np.median([result.measured.epsilon for result in results]) > 0.95
    bug = measure_loss_from_outputs(*given_laplace(1, 20_000, scale=0.5), PureDP(1), relation="add_remove", rng=1)
    assert (bug.verdict, bug.mechanism, bug.adjacency) == ("violated", "given outputs", "declared")


@pytest.mark.parametrize("audits", in_full(6, 60))
@pytest.mark.parametrize(
    "claim", [PureDP(1), *(pytest.param(one, marks=slow) for one in (GaussianDP(1), ApproxDP(1, 1e-6), ZCDP(0.5)))]
)
def test_words_say_nothing_where_there_is_nothing(claim, audits):
    same = says(("no", 0.6, 0.6), ("yes", 0.4, 0.4))
    results = [measure_loss(same, COIN, claim, size=400, rng=seed) for seed in range(audits)]
    assert misses(results, 0.0) <= most(audits)
