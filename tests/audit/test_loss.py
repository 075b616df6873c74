"""The measurement as a whole: it shows nearly all there is, never more, and says what it cannot answer."""

from __future__ import annotations

import math
import re
import tracemalloc

import joblib
import numpy as np
import pytest
from scipy import stats

from algorithms.bugs.budget import HalfNoiseGDPC
from algorithms.flaxman import GDPC, RDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.hierarchy import Hierarchy
from audit.attacks import Attack
from audit.bounds.game import guessing_game_lower
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.events import Event, Statistic, ThresholdRule, cell
from audit.exact import LossDistribution
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.neighbors import NeighborPair
from audit.sampling.probes import MOST_PROBES
from tests.audit.audits import (
    COIN,
    COUNTS,
    PAIR,
    TIGHT,
    audits_of,
    given_laplace,
    laplace,
    leaky,
    normal,
    says,
    shifted,
)
from tests.audit.sampling.cases import noting
from tests.helpers import in_full, refused_like

SURE = 1 - 1e-6  # confidence where a sound mechanism must not be accused


# Known truth


@pytest.mark.parametrize(("audits", "off"), in_full((40, 1.04), (100, 1.02)))
def test_a_right_guess_has_the_odds_of_the_loss(audits, off):
    """Both sides of the geometric law carry the log-ratio epsilon: right guesses are exactly Bin(guesses, e/(1+e))."""
    event = Event.at_least(0, 121, low=120)
    results = [measure_loss(GDPC(1.0), PAIR, PureDP(1), event=event, size=20_000, rng=seed) for seed in range(audits)]
    correct = sum(result.counts["x"]["guessed_x"] + result.counts["y"]["guessed_y"] for result in results)
    guessed = sum(count["guessed_x"] + count["guessed_y"] for result in results for count in result.counts.values())
    assert guessed == audits * 20_000  # 120 or less is x, 121 or more is y, and all runs count
    right = sum(results[0].counts[name][f"guessed_{name}"] for name in "xy")
    confidence = 1 - 0.05 ** results[0].basis.get("inflation", 1.0)
    assert results[0].measured.epsilon == pytest.approx(
        float(guessing_game_lower(right, 20_000, confidence=confidence))
    )
    assert (results[0].size, results[0].selection) == (20_000, 0)
    assert results[0].event == "y if output[0] >= 121, x if output[0] <= 120"
    assert results[0].searched == "one event, registered beforehand"
    # False alarm 1e-6, two-sided.
    assert stats.binomtest(correct, guessed, 1 / (1 + math.exp(-1))).pvalue > 1e-6
    assert stats.binomtest(correct, guessed, 1 / (1 + math.exp(-off))).pvalue < 1e-6
    on_y = sum(result.counts["y"]["runs"] for result in results)
    assert stats.binomtest(on_y, guessed, 0.5).pvalue > 1e-6  # the coins are fair
    spread = (audits - 1) * np.var([result.counts["y"]["runs"] for result in results], ddof=1)
    assert 1e-6 < stats.chi2(audits - 1).cdf(spread / 5000) < 1 - 1e-6  # and tossed, not dealt


def test_every_run_is_made_once_and_selection_spends_its_share():
    sizes = []
    result = measure_loss(noting(sizes, GDPC(1.0)), PAIR, PureDP(1), size=10_000, selection=0.25, rng=1)
    probe = 2 * 1 + (2 * 8 + 1 + 2) * 16  # first outputs, short calls, one of them again, and two at the end
    assert sum(sizes) == 10_000 + probe
    assert probe <= MOST_PROBES
    assert (result.size, result.selection) == (10_000, 2500)
    assert sum(count["runs"] for count in result.counts.values()) == 7500


def test_a_result_says_what_was_searched_what_proves_most_and_what_could_not_have_been_seen():
    result = measure_loss(GDPC(1.0), PAIR, PureDP(1), size=20_000, rng=2)
    assert (result.relation, result.unit, result.adjacency, result.distance) == ("add_remove", "person", "verified", 1)
    assert 1.0 < result.detectable < result.ceiling < 20
    for words in ("add/remove", "lower bound", "95%", "log-likelihood ratio of y over x >= 1", "not refuted"):
        assert words in str(result)
    assert result.searched.startswith("thresholds and single values, to 9 decimals, of ")
    for name in ("log-likelihood ratio of y over x", "output[0]", "distance of output[0] from 120.5"):
        assert name in result.searched
    assert "output[1]" not in result.searched  # one cell differs, and no other is looked at


# Every promise


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (leaky(2.0, 0.01), ApproxDP(1.0, 0.01)),
        (leaky(1.0, 0.1), ApproxDP(1.0, 0.01)),
        (shifted, GaussianDP(1.5)),
        (shifted, ZCDP(2.0)),
    ],
    ids=["epsilon", "delta", "mu", "rho"],
)
@pytest.mark.parametrize("how", ["fixed", "early", "outputs"])
def test_a_promise_that_is_broken_is_found_out(mechanism, claim, how):
    (result,) = audits_of(mechanism, claim, how, 20_000, [1])
    assert (result.claim, result.verdict) == (claim, "violated")
    assert result.measured.budget > claim.budget


# Audits that may stop early

GROSS = {
    "pure": (HalfNoiseGDPC(1.0), PureDP(1.0)),
    "approximate": (HalfNoiseGDPC(1.0), ApproxDP(1.0, 1e-3)),
    "Gaussian": (lambda data, size, rng: data + 0.4 * rng.normal(size=(size, 2)), GaussianDP(1.0)),
    "zero-concentrated": (GaussianCounts(4.0), ZCDP(0.5)),
}


@pytest.mark.parametrize("kind", GROSS)
def test_a_gross_violation_takes_no_more_than_2000_runs(kind):
    mechanism, claim = GROSS[kind]
    made = []
    given = {"confidence": SURE, "rng": 1}
    result = measure_loss(noting(made, mechanism), PAIR, claim, size=200_000, stop="early", **given)
    assert result.verdict == "violated"
    assert result.size <= 2000
    assert result.selection == 300
    assert result.size == 300 + sum(count["runs"] for count in result.counts.values())
    assert result.size <= sum(made) <= result.size + MOST_PROBES  # those besides only look at the mechanism
    assert result.provenance["parameters"]["size"] == 200_000
    assert result.provenance["parameters"]["stop"] == "early"
    whole = measure_loss(mechanism, PAIR, claim, size=60_000, selection=0.1, **given)
    assert (whole.verdict, whole.size) == ("violated", 60_000)
    assert whole.measured.budget > result.measured.budget  # what is saved is paid for


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
    result = measure_loss(mechanism, pair, claim, size=size, selection=0.05, **options)
    assert (result.verdict, result.confidence) == ("not refuted", 0.95)
    assert result.detectable <= 1.1 * claim.budget
    assert result.size < size / 2
    short = measure_loss(mechanism, pair, claim, size=2000, **options)
    assert short.detectable > 1.1 * claim.budget
    assert short.size == 2000  # all that were allowed


# Verdicts


@pytest.mark.parametrize("audits", in_full(3, 10))
def test_moving_a_person_costs_twice_what_adding_one_does(audits):
    pair = NeighborPair.move_people(COUNTS, 0, 1)
    claim = GDPC(1.0).claim.under("replace_one")
    results = [measure_loss(GDPC(1.0), pair, claim, rng=seed) for seed in range(audits)]
    assert np.median([result.measured.epsilon for result in results]) > 1.9
    assert all(result.relation == "replace_one" for result in results)
    assert all("log-likelihood ratio of y over x" in result.event for result in results)
    entries = [measure_loss(GDPC(1.0), pair, claim, attack="entries", rng=seed) for seed in range(audits)]
    assert np.median([result.measured.epsilon for result in entries]) > 1.9
    assert any("joint shift of output[0], [1]" in result.event for result in entries)
    # Under the promise of epsilon for a move, which GDPC never gave, the same runs accuse.
    wrong = measure_loss(GDPC(1.0), pair, PureDP(1, "replace_one"), confidence=SURE, rng=1)
    assert wrong.verdict == "violated"


def test_the_witness_of_an_unbounded_loss_speaks_even_if_no_run_sees_it():
    class Leaky:
        """Adds noise, but on `y` gives everything away once in a billion runs."""

        def __call__(self, data, size, rng):
            return laplace(data, size, rng)

        def exact_loss(self, pair):
            return LossDistribution(np.array([0.0]), np.array([1.0]), missing_mass=1e-9)

    result = measure_loss(Leaky(), PAIR, PureDP(2), size=2000, rng=1)
    assert result.verdict == "violated"
    assert result.support == {"order": "possible on y only", "probability": 1e-9}
    assert math.isfinite(result.measured.epsilon)


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
@pytest.mark.parametrize("stop", ["fixed", "early"])
def test_a_likelihood_of_zero_is_a_note_until_the_law_confirms_it(claim, stop):
    """Promises beyond what so many runs can refute: only a witness does."""
    result = measure_loss(Rolls(), COIN, claim, size=4000, stop=stop, rng=1)
    assert (result.support, result.verdict) == (None, "no power")
    (note,) = result.notes
    found = re.fullmatch(r"log_likelihood calls (0\.\d+) of the outputs on [xy] impossible on the other .*", note)
    assert (
        stats.binomtest(round(600 * float(found[1])), 600, 1 / 3).pvalue > 1e-6
    )  # of selection runs, on that database
    confirmed = measure_loss(ConfirmedRolls(), COIN, claim, size=4000, stop=stop, rng=1)
    assert (confirmed.support, confirmed.verdict) == ({"order": "possible on x only", "probability": 1 / 3}, "violated")
    assert math.isfinite(confirmed.measured.budget)
    assert "unbounded by the exact law: possible on x only, probability 0.3" in str(confirmed)


def test_approximate_privacy_forgives_an_output_that_one_database_only_can_give():
    forgiven = measure_loss(ConfirmedRolls(), COIN, ApproxDP(1, 0.34), size=4000, rng=1)
    assert (forgiven.verdict, forgiven.support) == ("not refuted", None)
    assert forgiven.measured.epsilon < 0.1
    missed = measure_loss(ConfirmedRolls(), COIN, ApproxDP(1, 0.01), size=4000, rng=1)
    assert (missed.verdict, missed.support["probability"]) == ("violated", 1 / 3)


# Any data, any outputs


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda counts, size, rng: np.column_stack([laplace(counts, size, rng)[:, 0], np.full(size, counts[0])]),
        lambda counts, size, rng: np.sort(counts) + rng.laplace(0, 0.2, (size, 2)),
    ],
    ids=["copied", "sorted"],
)
def test_entries_that_the_pair_leaves_alone_are_looked_at(mechanism):
    result = measure_loss(mechanism, PAIR, PureDP(1), size=40_000, confidence=SURE, rng=2)
    assert "output[1]" in result.event
    assert result.verdict == "violated"


def often_nan(data, size, rng):
    """NaN in one of fifty runs on `x`, in twenty of them on `y`."""
    outputs = laplace(data, size, rng)
    outputs[rng.random(size) < (0.02 if data[0] == 120 else 0.4), 0] = np.nan
    return outputs


def growing(data, size, rng):
    """As many columns as people beyond 115."""
    return rng.laplace(0, 1, (size, data[0] - 115))


def now_and_then_a_word(data, size, rng):
    """A word in the place of a number that is too small: the other database has a smaller one."""
    return ["suppressed" if count < 121 else float(count) for count in laplace(data, size, rng)[:, 0] + 1]


@pytest.mark.parametrize(
    ("mechanism", "event", "loss"),
    [
        (often_nan, r"output\[0\] .*NaN", math.log(20)),
        (growing, "length of output", math.inf),
        (now_and_then_a_word, "output", 1.0),
    ],
)
def test_what_is_no_number_is_a_value_of_its_own(mechanism, event, loss):
    result = measure_loss(mechanism, PAIR, PureDP(0.3), attack="entries", size=60_000, confidence=SURE, rng=1)
    assert re.search(event, result.event)
    assert 0.3 < result.measured.epsilon < loss


# Words, and runs that raise


OPINIONS = says(("no", 0.6, 0.3), ("undecided", 0.2, 0.2), ("yes", 0.2, 0.5))


@pytest.mark.parametrize("how", ["fixed", "outputs"])
def test_words_are_outputs(how):
    """Between yes and no lies what tells nothing; the largest ratio is that of yes, 0.5 to 0.2."""
    (result,) = audits_of(OPINIONS, PureDP(1), how, 100_000, [1])
    assert "'yes'" in result.event
    assert "undecided" not in result.event
    assert 0.8 < result.measured.epsilon < math.log(2.5)
    assert result.verdict == "not refuted"


def test_a_likelihood_of_words_is_not_asked_about_their_numbers():
    class Opinions:
        def __call__(self, data, size, rng):
            return OPINIONS(data, size, rng)

        def log_likelihood(self, outputs, data):
            raise AssertionError("words were expected")

    result = measure_loss(Opinions(), COIN, PureDP(1), size=4000, rng=1)
    assert "'yes'" in result.event


FIRST = Statistic("the first count", lambda outputs: outputs[:, 0])


def in_two_parts(data, size, rng):
    """The first count with noise, in two parts, neither of which tells as much as both."""
    return laplace(data, size, rng)[:, :1] + 1.5 * rng.normal(size=(size, 1)) * [1, -1]


@pytest.mark.parametrize(
    ("attack", "searched"),
    [
        ("auto", "thresholds and single values"),
        ("threshold", "thresholds, to 9 decimals"),
        ("cell", "single values, to 9 decimals"),
        ("entries", "statistics (output[0], distance of output[0] from 120.5"),
        ("likelihood_ratio", "of 1 statistics (log-likelihood ratio of y over x)"),
        ("trained", "of 2 statistics (logistic regression on 2 entries, gradient boosting on 2 entries)"),
        ("paths", "joint shift of raked counts of areas 0, 1"),
        (Attack((FIRST,), ("threshold",)), "thresholds, to 9 decimals, of 1 statistics (the first count)"),
    ],
)
def test_an_attack_looks_where_its_name_says(attack, searched):
    # A classifier is not taught where the likelihood is known, or one entry tells all.
    mechanism = {"trained": in_two_parts, "paths": RDPC(1.0, Hierarchy.regular(2, 1), "all")}.get(attack, GDPC(1.0))
    result = measure_loss(mechanism, PAIR, PureDP(1), attack=attack, size=20_000, confidence=SURE, rng=1)
    assert searched in result.searched
    assert 0.7 < result.measured.epsilon < 1.0
    assert result.verdict == "not refuted"


# Any statistic


def test_an_exact_release_shows_as_much_as_the_runs_allow():
    result = measure_loss(lambda data, size, rng: np.tile(data, (size, 1)), PAIR, PureDP(1), size=10_000, rng=1)
    assert result.measured.epsilon == pytest.approx(result.ceiling)
    assert result.verdict == "violated"


# The same seed, the same result


def again(seed, **options):
    """What an audit under a seed says, and the seed on its record."""
    mechanism = RDPC(1.0, Hierarchy.regular(2, 1), "all")
    result = measure_loss(mechanism, PAIR, PureDP(1), attack=Attack.without("trained"), size=300, rng=seed, **options)
    return (result.counts, result.measured, result.event, result.verdict, result.detectable), result.seed_entropy


def test_a_seed_reproduces_an_audit_and_another_does_not():
    once = again(11)
    assert once[1] == 11
    assert again(11, n_jobs=2) == again(np.random.SeedSequence(11)) == once
    with joblib.parallel_config(backend="sequential"):
        assert again(11, n_jobs=2) == once
    generator = np.random.default_rng(11)
    seeds = [12, generator, generator, None, np.random.SeedSequence(5).spawn(1)[0], np.random.SeedSequence([1, 2])]
    found = [again(seed) for seed in [*seeds, np.random.SeedSequence(3, pool_size=8)]]
    assert all(again(entropy) == (said, entropy) for said, entropy in found)
    assert len({str(said[0]) for said, _ in [once, *found]}) == 1 + len(found)
    assert found[4][1] != 5  # the entropy of a spawned seed is that of its siblings


def test_parameters_on_record_are_plain_json():
    class Odd:
        def __init__(self):
            self.scale, self.limit, self.hidden, self._own = 1.0, math.inf, object(), 3

        def __call__(self, data, size, rng):
            return laplace(data, size, rng)

    result = measure_loss(Odd(), PAIR, PureDP(1), size=500, rng=1)
    assert result.mechanism == "Odd"
    assert result.provenance["parameters"]["mechanism"] == {"scale": 1.0, "limit": "inf"}


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


def test_sorted_outputs_are_refused_and_shuffled_ones_are_read():
    """Sorted runs depend on each other; in the order in which they came, or in any other at random, they do not."""
    made = given_laplace(3, 20_000)
    rng = np.random.default_rng(4)
    fault = "outputs must be independent and in the order in which they were made: output"
    for x, y in (map(np.sort, made), (np.sort(made[0]), made[1]), (made[0], np.sort(made[1]))):
        with refused_like(ValueError, f"^{fault} of a row correlates by 1 with that 1 later$"):
            measure_loss_from_outputs(x, y, PureDP(1), relation="add_remove", rng=1)
    for x, y in (made, map(rng.permutation, map(np.sort, made))):
        result = measure_loss_from_outputs(x, y, PureDP(1), relation="add_remove", rng=1)
        assert 0.85 < result.measured.epsilon < 1.0


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.zeros(60), np.zeros((60, 2)), "(absent)"),
        ([1.0, math.nan] * 30, [0.0] * 60, "NaN"),
        (["a"] * 60, np.zeros(60), "(a word)"),
        (np.zeros(60), [None] * 60, "None"),
    ],
)
def test_outputs_of_two_kinds_tell_the_databases_apart(x, y, words):
    result = measure_loss_from_outputs(x, y, PureDP(1), relation="add_remove", rng=1)
    assert words in result.event
    assert result.verdict == "violated"


@pytest.mark.parametrize("distance", [1, 3])
def test_many_entries_and_groups_from_elsewhere(distance):
    noise = np.random.default_rng(5).laplace(0, 1, (2, 20_000, 3, 4))
    noise[1, :, 1, 2] += distance
    options = {"relation": "add_remove", "distance": distance, "rng": 1}
    result = measure_loss_from_outputs(*np.round(noise, 6), PureDP(1), **options)
    assert "output[1, 2]" in result.event
    assert (result.distance, result.verdict) == (distance, "not refuted")
    assert 0.85 < result.measured.epsilon < 1.0


def test_thinning_keeps_as_many_runs_as_fair_coins_pick():
    result = measure_loss_from_outputs(*given_laplace(3, 1000), PureDP(1), relation="add_remove", rng=1)
    fresh = 1000 - result.selection // 2
    tosses = int(2 * fresh - 6 * math.sqrt(2 * fresh))
    assert sum(count["runs"] for count in result.counts.values()) == tosses
    event, tosses = Event(cell(), ThresholdRule(0.0, 1.0)), int(2000 - 6 * math.sqrt(2000))
    results = [
        measure_loss_from_outputs(*given_laplace(3, 1000), PureDP(1), relation="add_remove", event=event, rng=seed)
        for seed in range(200)
    ]
    assert (results[0].selection, results[0].size) == (0, 2000)  # a registered event needs none to select
    spread = 199 * np.var([result.counts["y"]["runs"] for result in results], ddof=1) / (tosses / 4)
    assert 1e-6 < stats.chi2(199).cdf(spread) < 1 - 1e-6


# What cannot be asked


def ask(**changes):
    arguments = {"mechanism": laplace, "pair": PAIR, "claim": PureDP(1), "size": 2000, "rng": 1} | changes
    return measure_loss(arguments.pop("mechanism"), arguments.pop("pair"), arguments.pop("claim"), **arguments)


def deaf(data, size, rng):
    return laplace(data, size, np.random.default_rng(0))


def failing(data, size, rng):
    raise ZeroDivisionError("in the mechanism")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"mechanism": 3}, TypeError, r"mechanism must be callable as \(data, size, rng\), got 3"),
        ({"pair": (1, 2)}, TypeError, "pair must be a NeighborPair, got tuple"),
        ({"stop": "late"}, ValueError, 'stop must be "fixed" or "early", got \'late\''),
        ({"attack": "likelihood_ratio"}, ValueError, "an attack must find something to look at: likelihood ratio of"),
        ({"attack": "paths"}, ValueError, "an attack must find something to look at: paths of outputs of shape"),
        ({"size": 2000.0}, TypeError, r"size must be an integer, got 2000\.0"),
        ({"size": 0}, ValueError, "size must be at least 1, got 0"),
        ({"size": 20}, ValueError, "at least 8 runs must choose an event, got 6 of 20"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be a whole number other than 0, got 0"),
        ({"n_jobs": 1.5}, ValueError, r"n_jobs must be a whole number other than 0, got 1\.5"),
        ({"size": 8, "selection": 0.99}, ValueError, "size must leave runs to count, got 8 with 8"),
        ({"selection": math.nan}, ValueError, r"selection must be in \(0, 1\), got nan"),
        ({"event": Event.at_least(2, 1)}, ValueError, r"output\[2\] must be inside outputs, got outputs of shape \(2,"),
        ({"mechanism": lambda data, size, rng: data / data}, ValueError, "one output a run: asked for 1 run, got 2"),
        ({"mechanism": lambda data, size, rng: [b"", object()][:size]}, TypeError, "outputs must be numbers, words"),
        ({"mechanism": deaf}, ValueError, "the mechanism ignores its rng"),
        ({"mechanism": failing}, ZeroDivisionError, "in the mechanism"),
        ({"mechanism": failing, "n_jobs": 2}, ZeroDivisionError, "in the mechanism"),
    ],
)
def test_bad_input_is_refused_in_one_line(changes, error, words):
    """What an output may be is for the tests of outputs; that an audit asks is shown by a few."""
    with refused_like(error, words):
        ask(**changes)


def test_a_mistake_in_the_exact_law_costs_no_runs():
    class Mistaken:
        def __call__(self, data, size, rng):
            assert size <= 32
            return laplace(data, size, rng)

        def exact_loss(self, pair):
            raise LookupError("no such law")

    with pytest.raises(LookupError):
        ask(mechanism=Mistaken())


@pytest.mark.parametrize("confidence", [1e-6, 0.3, 0.5])
def test_few_outputs_may_be_asked_with_little_confidence(confidence):
    """A bound for half of all audits is the estimate itself, and of events that nobody saw there is none."""
    rng = np.random.default_rng(2)
    x, y = (count + rng.laplace(size=40) for count in (0, 1))
    asked = {"relation": "add_remove", "confidence": confidence, "confidential": confidence == 0.3, "rng": 3}
    result = measure_loss_from_outputs(x, y, PureDP(1.0), **asked)
    assert (result.confidence, result.confidential) == (confidence, confidence == 0.3)
    assert np.isfinite(result.measured.epsilon)


RUNS = np.arange(50.0)


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "words"),
    [
        (RUNS, RUNS, {}, ValueError, "must not share a random stream"),
        (RUNS, np.tile(np.arange(60.0), 2), {}, ValueError, "60 outputs occur 2 times each, more than chance"),
        (3.0, np.zeros(40), {}, ValueError, "outputs must be a sequence, one a run, got float"),
        ([], np.zeros(40), {}, ValueError, "there must be outputs on both databases, got 0 and 40"),
        ([print] * 40, np.zeros(40), {}, TypeError, "outputs must be numbers, words, None"),
        (np.arange(5.0), np.arange(1000.0), {}, ValueError, "at least 8 runs must choose an event, got 3 of 10"),
        (RUNS, RUNS + 1, {"relation": "replace_one"}, ValueError, "the pair is replace_one"),
        (RUNS, RUNS + 1, {"selection": 0}, ValueError, r"selection must be in \(0, 1\), got 0"),
        (RUNS, RUNS + 1, {"selection": 0.99}, ValueError, "selection must leave runs to count, got 0.99 of 50 on a"),
    ],
)
def test_bad_outputs_are_refused_in_one_line(x, y, options, error, words):
    with refused_like(error, words):
        measure_loss_from_outputs(x, y, PureDP(1), **{"relation": "add_remove", "rng": 1} | options)


def test_a_group_too_large_for_the_runs_is_told_and_how_large_it_may_be():
    """Every run crosses the threshold: 2,800 runs prove ln(2800 / 3) of the pair, which 20 people share."""

    def audit(people):
        def crossed(data, size, rng):
            return np.column_stack([np.full(size, data[0] > 100), rng.laplace(size=size).round(6)])

        pair = NeighborPair.add_people([100], 0, people=people)
        return measure_loss(crossed, pair, PureDP(1.0), size=4000, rng=1)

    result = audit(20)
    assert result.verdict == "no power"
    assert result.power[0].endswith("these runs prove at most 0.3420 (6.840 / 20), whatever they show")
    assert audit(6).verdict == "violated"  # as `audit.report.words.remedy` says


def test_a_bound_of_nothing_announces_no_detectable_loss():
    """A count with far more noise than promised, by few runs: 25 of 40 audits announced a loss of up to twice it."""
    noisy = lambda data, size, rng: np.round(data + rng.laplace(0, 20, (size, 2)), 3)  # noqa: E731
    results = [measure_loss(noisy, PAIR, PureDP(1.0), attack="entries", size=150, rng=seed) for seed in range(4)]
    assert all(result.far_below_claim or result.verdict == "no power" for result in results)
