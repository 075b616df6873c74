"""The measurement as a whole: it shows nearly all there is, never more, and says what it cannot answer."""

import math
import re
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from algorithms.flaxman import GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from audit.attacks import Attack
from audit.bounds.game import guessing_game_lower
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.events import Event, ThresholdRule, cell
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.neighbors import NeighborPair
from audit.sampling.probes import probe_runs
from tests.audit.audits import COIN, PAIR, TIGHT, given_laplace, leaky, normal
from tests.audit.sampling.cases import noting, same_noise
from tests.helpers import in_full, noisy, refused_like

SURE = 1 - 1e-6  # confidence where a sound mechanism must not be accused


# Known truth


@pytest.mark.parametrize(("audits", "off"), in_full((4, 1.08), (100, 1.02)))
def test_a_right_guess_has_the_odds_of_the_loss(audits, off):
    """Both sides of the geometric law carry the log-ratio epsilon: right guesses are exactly Bin(guesses, e/(1+e))."""
    event = Event.at_least(0, 121, low=120)
    results = [measure_loss(GDPC(1.0), PAIR, PureDP(1), event=event, size=20_000, rng=seed) for seed in range(audits)]
    correct = sum(result.counts["x"]["guessed_x"] + result.counts["y"]["guessed_y"] for result in results)
    guessed = sum(count["guessed_x"] + count["guessed_y"] for result in results for count in result.counts.values())
    counting = 20_000 - int(probe_runs(20_000))
    assert guessed == audits * counting  # 120 or less is x, 121 or more is y, and all runs but probes count
    right = sum(results[0].counts[name][f"guessed_{name}"] for name in "xy")
    confidence = 1 - 0.05 ** results[0].basis.get("inflation", 1.0)
    lower = float(guessing_game_lower(right, counting, confidence=confidence))
    assert results[0].measured.epsilon == pytest.approx(lower)
    assert (results[0].size, results[0].selection) == (20_000, 0)
    assert results[0].event == "y if output[0] >= 121, x if output[0] <= 120"
    assert results[0].searched == "one event, registered beforehand"
    # False alarm 1e-6, two-sided.
    assert stats.binomtest(correct, guessed, 1 / (1 + math.exp(-1))).pvalue > 1e-6
    assert stats.binomtest(correct, guessed, 1 / (1 + math.exp(-off))).pvalue < 1e-6
    on_y = sum(result.counts["y"]["runs"] for result in results)
    assert stats.binomtest(on_y, guessed, 0.5).pvalue > 1e-6  # the coins are fair
    spread = (audits - 1) * np.var([result.counts["y"]["runs"] for result in results], ddof=1)
    assert 1e-6 < stats.chi2(audits - 1).cdf(spread / (counting / 4)) < 1 - 1e-6  # and tossed, not dealt


def test_every_run_is_made_once_and_selection_spends_its_share():
    sizes = []
    result = measure_loss(noting(sizes, GDPC(1.0)), PAIR, PureDP(1), size=10_000, selection=0.25, rng=1)
    assert sum(sizes) == 10_000
    assert (result.size, result.selection) == (10_000, 2500)
    assert sum(count["runs"] for count in result.counts.values()) == 7500
    sizes.clear()
    words = noting(sizes, lambda data, size, rng: ["none" if one < 0.002 else one for one in rng.random(size)])
    measure_loss(words, PAIR, PureDP(1), size=4000, rng=1)
    assert sum(sizes) == 4000  # also where the runs that choose show words, which the first ones did not


def test_runs_that_choose_are_not_counted():
    """No noise is drawn twice, but that of the calls by which a seed must repeat outputs: three of sixteen runs."""
    drawn = []

    def mechanism(data, size, rng):
        noise = rng.laplace(size=(size, 1))
        drawn.extend(noise[:, 0].tolist())
        return data[:1] + noise

    measure_loss(mechanism, PAIR, PureDP(1), size=4000, rng=1)
    assert (len(drawn), len(drawn) - len(set(drawn))) == (4000, 3 * 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "claim", "size"),
    [
        (GDPC(1.0), PureDP(1.0), 400_000),
        (leaky(1.0, 0.01), ApproxDP(1.0, 0.01), 400_000),
        (leaky(0.0, 0.3), ApproxDP(0, 0.3), 40_000),
        (normal, GaussianDP(1.0), 400_000),
        (normal, ZCDP(0.5), 800_000),
    ],
    ids=TIGHT,
)
def test_an_honest_audit_ends_where_a_small_violation_would_have_been_seen(mechanism, claim, size):
    pair = PAIR if isinstance(claim, PureDP) else COIN
    options = {"stop": "early", "rng": 2}
    result = measure_loss(mechanism, pair, claim, size=size, **options)
    assert (result.verdict, result.confidence) == ("not refuted", 0.95)
    assert result.detectable <= 1.1 * claim.budget
    assert result.size < size / 2
    short = measure_loss(mechanism, pair, claim, size=2000, **options)
    assert short.detectable > 1.1 * claim.budget
    assert short.size == 2000  # all that were allowed


class Rolls:
    """A die thrown beside the count: the likelihood knows what only one database can give."""

    def __call__(self, data, size, rng):
        return data + rng.integers(0, 3, size)

    def log_likelihood(self, outputs, data):
        return np.where((outputs >= data) & (outputs <= data + 2), -math.log(3), -math.inf)


class ConfirmedRolls(Rolls):
    """The same, with the probability of what one database only can give."""

    def support_masses(self, pair):
        return 1 / 3, 1 / 3


@pytest.mark.parametrize("claim", [PureDP(12), ZCDP(8), GaussianDP(6)])
@pytest.mark.parametrize("stop", ["fixed", pytest.param("early", marks=pytest.mark.slow)])
def test_a_likelihood_of_zero_is_a_note_until_the_law_confirms_it(claim, stop):
    """Promises beyond what so many runs can refute: only a witness does."""
    result = measure_loss(Rolls(), COIN, claim, size=4000, stop=stop, rng=1)
    assert (result.support, result.verdict) == (None, "no power")
    (note,) = result.notes
    found = re.fullmatch(r"log_likelihood calls (0\.\d+) of the outputs on [xy] impossible on the other .*", note)
    assert stats.binomtest(round(600 * float(found[1])), 600, 1 / 3).pvalue > 1e-6  # of selection runs there
    confirmed = measure_loss(ConfirmedRolls(), COIN, claim, size=4000, stop=stop, rng=1)
    assert (confirmed.support, confirmed.verdict) == ({"order": "possible on x only", "probability": 1 / 3}, "violated")
    assert math.isfinite(confirmed.measured.budget)
    assert "unbounded by the exact law: possible on x only, probability 0.3" in str(confirmed)


# The same seed, the same result


def again(seed, **options):
    """What an audit under a seed says, and the seed on its record."""
    mechanism = RDPC(1.0, Hierarchy.regular(2, 1), "all")
    result = measure_loss(mechanism, PAIR, PureDP(1), attack=Attack.without("trained"), size=120, rng=seed, **options)
    return (result.counts, result.measured, result.event, result.verdict, result.detectable), result.seed_entropy


def test_a_seed_reproduces_an_audit_and_another_does_not():  # five audits, one by two processes
    once = again(11)
    assert once[1] == 11
    assert again(11, n_jobs=2) == once
    (found, entropy), (other, _) = again(np.random.SeedSequence(5).spawn(1)[0]), again(12)
    assert again(entropy) == (found, entropy)
    assert len({str(text[0]) for text in (once[0], found, other)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("size", [160, 10_000])  # runs, whose outputs together are 1,221 and 76,294 MiB
def test_a_million_areas_are_never_held_for_all_runs(size):
    pair = NeighborPair.add_people(np.full(1_000_000, 100), 0)
    tracemalloc.start()
    measure_loss(GDPC(1.0), pair, PureDP(1), size=size, rng=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * 2**20


# Outputs from elsewhere


@pytest.mark.parametrize("audits", in_full(60, 200))
def test_thinning_keeps_as_many_runs_as_fair_coins_pick(audits):
    event, tosses = Event(cell(), ThresholdRule(0.0, 1.0)), int(2000 - 4 * math.sqrt(2000))
    results = [
        measure_loss_from_outputs(*given_laplace(3, 1000), PureDP(1), relation="add_remove", event=event, rng=seed)
        for seed in range(audits)
    ]
    assert (results[0].selection, results[0].size) == (0, 2000)  # a registered event needs none to select
    spread = (audits - 1) * np.var([result.counts["y"]["runs"] for result in results], ddof=1) / (tosses / 4)
    assert 1e-6 < stats.chi2(audits - 1).cdf(spread) < 1 - 1e-6


def synthetic(runs, share, seed=3):
    """Return outputs of which a share has a mark on y, in random order, and none on x."""
    marks = np.arange(runs) < round(share * runs)
    return np.zeros((runs, 1)), np.random.default_rng(seed).permutation(marks.astype(float))[:, None]


def test_a_mark_of_41_of_60_outputs_proves_a_loss_with_and_without_its_name():
    """Two exact limits of all outputs prove 2.22 at 95%, and 1.36 at 99.9%."""
    outputs, named = synthetic(60, 41 / 60), {"relation": "add_remove", "event": Event.at_least(0, 1)}
    for confidence, proved in ((0.95, 2.57), (0.999, 1.745)):
        result = measure_loss_from_outputs(*outputs, PureDP(1), confidence=confidence, **named)
        assert result.measured.epsilon == pytest.approx(proved)
    found = [measure_loss_from_outputs(*outputs, PureDP(1), relation="add_remove", rng=seed) for seed in range(5)]
    assert np.median([result.measured.epsilon for result in found]) >= 1.9
    around = [measure_loss_from_outputs(*synthetic(runs, 34 / runs), PureDP(1), **named) for runs in (49, 50, 51)]
    assert np.ptp([result.measured.epsilon for result in around]) <= 0.02


@pytest.mark.parametrize("confidence", [1e-6, 0.3])
def test_few_outputs_have_a_bound_at_little_confidence(confidence):
    """A bound for half of all audits is the estimate itself, and of events that nobody saw there is none."""
    rng = np.random.default_rng(2)
    x, y = (count + rng.laplace(size=40) for count in (0, 1))
    options = {"relation": "add_remove", "confidence": confidence, "confidential": confidence == 0.3, "rng": 3}
    result = measure_loss_from_outputs(x, y, PureDP(1.0), **options)
    assert (result.confidence, result.confidential) == (confidence, confidence == 0.3)
    assert np.isfinite(result.measured.epsilon)


# What cannot be asked


def ask(**changes):
    arguments = {"mechanism": noisy, "pair": PAIR, "claim": PureDP(1), "size": 2000, "rng": 1} | changes
    return measure_loss(arguments.pop("mechanism"), arguments.pop("pair"), arguments.pop("claim"), **arguments)


def failing(data, size, rng):
    raise ZeroDivisionError("in the mechanism")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"mechanism": 3}, TypeError, r"mechanism must be callable as \(data, size, rng\), got 3"),
        ({"pair": (1, 2)}, TypeError, "pair must be a NeighborPair, got tuple"),
        ({"stop": "late"}, ValueError, 'stop must be "fixed" or "early", got \'late\''),
        ({"size": 0}, ValueError, "size must be at least 20, got 0"),
        ({"size": 20}, ValueError, "at least 8 runs must choose an event, got 6 of 20"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be a whole number other than 0, got 0"),
        (
            {"size": 24, "selection": 0.99},
            ValueError,
            "size must leave runs to count, got 24, of which 24 do not count",
        ),
        ({"selection": math.nan}, ValueError, r"selection must be in \(0, 1\), got nan"),
        ({"mechanism": same_noise}, ValueError, "the mechanism ignores its rng"),
        ({"mechanism": failing}, ZeroDivisionError, "in the mechanism"),
        ({"mechanism": failing, "n_jobs": 2}, ZeroDivisionError, "in the mechanism"),
    ],
)
def test_bad_input_is_refused_in_one_line(changes, error, words):
    """What an output may be is for the tests of outputs; that an audit asks is shown by a few."""
    with refused_like(error, words):
        ask(**changes)


RUNS = np.arange(50.0)


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "words"),
    [
        (RUNS, RUNS, {}, ValueError, "must not share a random stream"),
        ([], np.zeros(40), {}, ValueError, "there must be outputs on both databases, got 0 and 40"),
        (np.arange(5.0), np.arange(1000.0), {}, ValueError, "at least 8 runs must choose an event, got 3 of 10"),
        (RUNS, RUNS + 1, {"selection": 0}, ValueError, r"selection must be in \(0, 1\), got 0"),
        (RUNS, RUNS + 1, {"selection": 0.99}, ValueError, "selection must leave runs to count, got 0.99 of 50 on a"),
    ],
)
def test_bad_outputs_are_refused_in_one_line(x, y, options, error, words):
    with refused_like(error, words):
        measure_loss_from_outputs(x, y, PureDP(1), **{"relation": "add_remove", "rng": 1} | options)


def test_a_bound_of_nothing_announces_no_detectable_loss():
    """A count with far more noise than promised, by few runs: 25 of 40 audits announced a loss of up to twice it."""
    noisy = lambda data, size, rng: np.round(data + rng.laplace(0, 20, (size, 2)), 3)  # noqa: E731
    results = [measure_loss(noisy, PAIR, PureDP(1.0), attack="entries", size=150, rng=seed) for seed in range(4)]
    assert all(result.far_below_claim or result.verdict == "no power" for result in results)
