"""One run with many canaries: it shows nearly all there is, never more, and a wrong way to count shows."""

import math

import numpy as np
import pytest
from scipy import special, stats

from algorithms.flaxman import GDPC
from audit.bounds.game import guessing_game_lower
from audit.bounds.one_run import one_run_curve_p_value, one_run_least_mass, one_run_p_value
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.measure.one_run import Canaries, RecordCanaries, measure_loss_one_run
from audit.methods.one_run import OneRun
from audit.results import AuditResult
from tests.audit.audits import answers, gaussian
from tests.audit.sampling.cases import noting
from tests.helpers import BrokenError, geometric, raising, refused_like

# Known truth


@pytest.mark.parametrize(("right", "wrong", "expected"), [(100, 0, 3.492965431), (0, 100, 0.0)])
def test_right_guesses_show_what_the_theorem_says(right, wrong, expected):
    result = measure_loss_one_run(answers(right, wrong), Canaries([0] * 1200), PureDP(1.0), rng=1)
    assert result.measured.epsilon == pytest.approx(expected, abs=1e-8)
    correct = result.counts["x"]["guessed_x"] + result.counts["y"]["guessed_y"]
    assert (correct, sum(side["runs"] for side in result.counts.values())) == (right, 1200)
    assert result.ceiling == pytest.approx(guessing_game_lower(1200, 1200, confidence=0.95), abs=1e-8)


@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-4])
def test_the_bound_is_where_the_p_value_crosses(people, delta):
    """Of one step; a group is held against what group privacy makes of the promise, abstentions are canaries too."""
    tell, canaries = answers(800, 200), Canaries([0] * 1200, people=people)
    claim = ApproxDP(0.5, delta)
    share = 1000 / 1200  # all the others say nothing
    result = measure_loss_one_run(
        lambda data, size, rng: people * tell(data // people, size, rng), canaries, claim, share=share, rng=1
    )
    group = ApproxDP(result.measured.epsilon, delta).group(people)
    p_value = one_run_p_value(800, 1000, group.epsilon, delta=group.delta, canaries=1200)
    assert p_value == pytest.approx(0.05, rel=1e-6)
    assert (result.verdict == "violated") == (result.measured.epsilon > 0.5)
    assert result.measured.delta == delta
    if delta == 0:
        assert people * result.measured.epsilon == pytest.approx(1.254330359, abs=1e-8)


@pytest.mark.parametrize("claim", [GaussianDP(1.0), ZCDP(0.5)], ids=str)
@pytest.mark.parametrize("people", [1, 4])
def test_a_curve_is_refuted_up_to_the_bound(claim, people):
    """Of one step: until both tests of as many right guesses no longer refute what group privacy makes of it."""
    tell = answers(460, 40)
    result = measure_loss_one_run(
        lambda data, size, rng: people * tell(data // people, size, rng),
        Canaries([0] * 1000, people=people),
        claim,
        share=0.5,
        rng=1,
    )

    def refuted(factor):
        promise = claim.at(result.measured.budget * factor).group(people)
        mass = one_run_least_mass(460, 500, 1000, error=0.05, rarest=promise.rarest)
        return mass > 1, one_run_curve_p_value(460, 500, 1000, lines=promise.lines()) < 0.05

    assert any(refuted(1 - 1e-9))
    assert not any(refuted(1 + 1e-4))


def test_the_share_is_known_before_the_run():
    """Fewer of more canaries, all where there are few; a group is as far apart as its people are together."""
    shares = [OneRun(GaussianDP(1.0), 1, 0.95).share(number) for number in (1, 1000, 10_000, 10**6)]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert OneRun(GaussianDP(0.01), 1, 0.95).share(1000) == 1.0
    assert OneRun(GaussianDP(0.25), 4, 0.95).share(1000) == shares[1] == OneRun(ZCDP(0.5), 1, 0.95).share(1000)
    result = measure_loss_one_run(gaussian, Canaries([5] * 1000), GaussianDP(1.0), rng=1)
    assert sum(side["guessed_x"] + side["guessed_y"] for side in result.counts.values()) == round(1000 * shares[1])


def test_a_right_guess_has_the_odds_of_the_loss():
    results = [measure_loss_one_run(GDPC(1.0), Canaries([100] * 10_000), PureDP(1.0), rng=seed) for seed in range(20)]
    sides = [result.counts[name] for result in results for name in "xy"]
    assert sum(side["guessed_x"] + side["guessed_y"] for side in sides) == 200_000  # whole numbers leave no doubt
    correct = sum(result.counts["x"]["guessed_x"] + result.counts["y"]["guessed_y"] for result in results)
    # False alarm 1e-6 each, two-sided.
    assert stats.binomtest(correct, 200_000, special.expit(1.0)).pvalue > 1e-6
    assert stats.binomtest(correct, 200_000, special.expit(1.1)).pvalue < 1e-6
    assert stats.binomtest(sum(result.counts["y"]["runs"] for result in results), 200_000).pvalue > 1e-6


@pytest.mark.parametrize(
    ("mechanism", "number", "claim", "confidence"),
    [
        (lambda data, size, rng: np.full((size, 400), 0.5), 400, PureDP(1.0), 0.95),
        (answers(0, 0), 40, GaussianDP(1.0), 0.95),
        *((gaussian, 1, claim, 0.99) for claim in (PureDP(1.0), ApproxDP(1.0, 0.9), GaussianDP(1.0), ZCDP(0.5))),
    ],
)
def test_a_mechanism_that_tells_nothing_or_of_one_canary_shows_nothing(mechanism, number, claim, confidence):
    result = measure_loss_one_run(mechanism, Canaries([0] * number), claim, confidence=confidence, rng=1)
    assert (result.measured.budget, result.verdict) == (0.0, "no power")
    assert result.detectable > claim.budget


# Records, and scores of one's own


def test_records_are_canaries_of_a_histogram():
    def histogram(records, size, rng):
        return np.bincount(records, minlength=20_000) + geometric(1.0, (size, 20_000), rng)

    canaries = RecordCanaries(np.repeat(np.arange(20_000), 2), np.arange(20_000))
    result = measure_loss_one_run(histogram, canaries, PureDP(1.0), score=lambda output: output - 2, rng=1)
    assert 0.95 < result.measured.epsilon < 1.02
    assert result.verdict == "not refuted"
    assert (result.unit, result.distance) == ("record", 1)
    assert result.pair == "1 record in (y) or out (x) by each of 20000 secret coins"


def test_the_database_holds_whom_the_coins_chose():
    bits = np.array([True, False, True])
    counts = Canaries([[5, 6], [7, 8]], [3, 0, 1], people=2)
    assert counts.database(bits).tolist() == [[5, 8], [7, 10]]
    assert counts.scores(np.array([[5.0, 8.0], [7.0, 9.0]])).tolist() == [0.5, 0.0, 1.0]
    records = RecordCanaries([[0, 0]], [[1, 0], [1, 1], [1, 0]], people=2)
    assert records.database(bits).tolist() == [[0, 0], [1, 0], [1, 0], [1, 0], [1, 0]]
    assert (len(counts), len(records)) == (3, 3)
    assert RecordCanaries(np.empty((0, 2)), [[1, 0]]).database(np.array([False])).shape == (0, 2)
    with pytest.raises(ValueError, match="read-only"):
        counts.cells[0] = 1


# What the result says


def test_the_result_is_whole():
    result = measure_loss_one_run(GDPC(1.0), Canaries([100] * 1000, people=2), PureDP(1.0), rng=5)
    again = measure_loss_one_run(GDPC(1.0), Canaries([100] * 1000, people=2), PureDP(1.0), rng=result.seed_entropy)
    assert again.counts == result.counts
    assert measure_loss_one_run(GDPC(1.0), Canaries([100] * 1000, people=2), PureDP(1.0), rng=6).counts != again.counts
    assert (result.size, result.selection, result.distance, result.relation) == (1, 0, 2, "add_remove")
    assert str(result).startswith("GDPC: not refuted: promised epsilon 1 (add/remove), lower bound 0.9")
    assert "2 people in (y) or out (x) by each of 1000 secret coins" in str(result)
    assert AuditResult.from_dict(result.to_dict()).to_dict() == result.to_dict()


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.0), ApproxDP(1.0, 1e-4), GaussianDP(0.3), ZCDP(0.02)])
def test_what_is_called_detectable_is_seen(claim):
    """Guesses right as often as at the loss that is called detectable show a violation with probability 0.8."""
    number = 4000
    result = measure_loss_one_run(gaussian, Canaries([0] * number), claim, rng=1)
    guessed = sum(side["guessed_x"] + side["guessed_y"] for side in result.counts.values())
    found = claim.at(result.detectable)
    if isinstance(found, PureDP | ApproxDP):
        delta = getattr(found, "delta", 0.0)
        rate = special.expit(found.epsilon)
        rate += (1 - rate) * delta * number / guessed
    else:
        mu = found.mu if isinstance(found, GaussianDP) else math.sqrt(2 * found.rho)
        least = stats.foldnorm.isf(guessed / number, mu / 2)  # how far from the middle the clearest ones are
        rate = stats.norm.sf(least - mu / 2) * number / guessed
    assert 0.5 < rate < 1

    def verdict(right):
        tell = answers(right, guessed - right)
        return measure_loss_one_run(tell, Canaries([0] * number), claim, share=guessed / number, rng=1).verdict

    fewest = int(stats.binom.isf(0.8, guessed, rate))  # exceeded with probability 0.8, give or take one guess
    assert verdict(fewest + 2) == "violated"
    assert verdict(fewest - 2) != "violated"


# Bad input


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "words"),
    [
        (Canaries, ([],), ValueError, "counts must have at least one cell"),
        (Canaries, ([5, 6], []), ValueError, "cells must be a list of at least one cell"),
        (Canaries, ([5, 6], [0.0]), TypeError, "cells must be whole numbers, got dtype float64"),
        (Canaries, ([5, 6], [2]), ValueError, r"cells must be in 0\.\.1, got 2"),
        (Canaries, ([5, 6], [1, 0, 1]), ValueError, "canaries must not overlap, got cell 1 more than once"),
        (RecordCanaries, ([1], []), ValueError, "canaries must be at least one record"),
        (RecordCanaries, ([1], [[1]]), ValueError, r"must have the same columns: \(1,\), \(1, 1\)"),
        (RecordCanaries, (["a"], [1]), TypeError, "must be of one kind, got <U1 and int64"),
        (RecordCanaries, ([1], [1], 0), ValueError, "people must be at least 1, got 0"),
    ],
)
def test_canaries_that_cannot_be_are_refused(kind, arguments, error, words):
    with pytest.raises(error, match=words):
        kind(*arguments)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"canaries": [0, 1]}, TypeError, "canaries must be Canaries or RecordCanaries, got list"),
        ({"canaries": RecordCanaries([1], [1])}, ValueError, "records need a score"),
        ({"mechanism": lambda data, size, rng: data}, ValueError, "must return one output a run"),
        ({"mechanism": lambda data, size, rng: data[None, :3]}, ValueError, r"needs a score: \(3,\), \(5,\)"),
        ({"mechanism": lambda data, size, rng: [["word"] * 5]}, TypeError, "output of words needs a score, got 'word'"),
        ({"score": lambda output: output[:3]}, ValueError, r"one number a canary, shape \(5,\), got \(3,\)"),
        ({"score": lambda output: output * math.nan}, ValueError, "scores must not be NaN, got 5 of 5"),
        ({"score": lambda output: ["in"] * 5}, TypeError, "a score must be a number for each canary, got dtype <U2"),
    ],
)
def test_bad_input_is_refused_in_one_line(options, error, words):
    given = {"mechanism": GDPC(1.0), "canaries": Canaries([3] * 5), "claim": PureDP(1.0), "rng": 1} | options
    with refused_like(error, words):
        measure_loss_one_run(**given)


def test_an_exception_of_the_mechanism_is_the_callers():
    """To run again would be to look at two releases."""
    sizes = []
    with pytest.raises(BrokenError):
        measure_loss_one_run(noting(sizes, raising(1.0)), Canaries([0] * 400), PureDP(1.0), rng=1)
    assert sizes == [1]
