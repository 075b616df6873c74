"""Assertions for test suites: sound systems pass, known bugs are detected, and an empty pass fails."""

import re

import pytest

import audit.testing
from algorithms.bugs.budget import HalfNoiseGDPC
from algorithms.bugs.census import SilentInvariant
from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from audit.claims import ZCDP, GaussianDP, PureDP
from audit.neighbors import NeighborPair
from audit.results import AuditResult
from audit.testing import assert_loss_detected, assert_loss_within
from audit.testing.session import Running, entered, running, seed_of
from tests.audit.audits import COIN, leaky
from tests.helpers import noisy

PAIR = NeighborPair.add_people([120, 75], 0)


def a_test(name="test_release.py::test_counts", seed=0, **settings):
    return Running(name, seed, lambda: f"run {name}", **settings)


def lines_of(error):
    """The lines of a failure under their names."""
    return dict(re.findall(r"^  (\S.{9}) (.*)$", str(error.value), re.MULTILINE))


def test_a_sound_system_passes():
    """False alarm 1e-6."""
    result = assert_loss_within(GDPC(1.0), PAIR, size=20_000)
    assert isinstance(result, AuditResult)
    assert (result.verdict, result.confidence) == ("not refuted", 1 - 1e-6)
    assert 0.3 < result.measured.epsilon < 1.0
    with pytest.raises(AssertionError, match=r"no violation shown: .*: not refuted"):
        assert_loss_detected(GDPC(1.0), PAIR, size=20_000)


@pytest.mark.parametrize("people", [1, 3])  # 3 s: a loss of each of three people shows in 20,000 runs
def test_a_known_bug_is_detected(people):
    pair = NeighborPair.add_people([120, 75], 1, people)
    options = {"size": 20_000, "attack": "entries"}
    assert 1 < assert_loss_detected(HalfNoiseGDPC(1.0), pair, **options).measured.epsilon < 2
    with pytest.raises(AssertionError, match=r"^HalfNoiseGDPC: violated: promised "):
        assert_loss_within(HalfNoiseGDPC(1.0), pair, **options)


def test_a_check_may_stop_early():
    """A loss of 2.5 promises takes some hundred runs at 99.9999%; Ctrl-C ends the session, not one audit."""
    options = {"stop": "early", "size": 20_000, "attack": "entries"}
    assert assert_loss_detected(leaky(2.5, 0.0), COIN, PureDP(1.0), **options).size < 1000
    with pytest.raises(AssertionError, match=r"violated: promised .* from \d\d\d runs"):
        assert_loss_within(leaky(2.5, 0.0), COIN, PureDP(1.0), **options)
    left = [40]

    def interrupted(data, size, rng):
        left[0] -= size
        if left[0] < 0:
            raise KeyboardInterrupt
        return leaky(1.0, 0.0)(data, size, rng)

    with pytest.raises(KeyboardInterrupt):
        assert_loss_within(interrupted, COIN, PureDP(1.0), **options)


@pytest.mark.parametrize("assertion", [assert_loss_within, assert_loss_detected])
def test_a_check_without_power_fails(assertion):
    """Two thousand runs cannot tell 0.02 from twice as much: a pass would be empty."""
    with pytest.raises(AssertionError, match=r"GDPC: no power: promised epsilon 0\.02 \(add/remove\), "):
        assertion(GDPC(0.02), PAIR, size=2000)


@pytest.mark.parametrize(
    ("mechanism", "claim", "size"),
    [
        (GDPC(0.2), PureDP(0.2), 1000),
        (GaussianCounts(0.005), GaussianDP(0.1), 2000),
        pytest.param(GaussianCounts(0.005), ZCDP(0.005), 20_000, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_what_a_check_without_power_advises_gives_power(mechanism, claim, size):
    with pytest.raises(AssertionError, match="no power") as raised:
        assert_loss_within(mechanism, PAIR, claim, size=size)
    advice = lines_of(raised)["help      "]
    numbers = re.findall(r"about ([\d,]+) runs in all .*, or databases that differ in (\d+) people", advice)[0]
    runs, people = (int(number.replace(",", "")) for number in numbers)
    assert assert_loss_within(mechanism, PAIR, claim, size=runs).verdict == "not refuted"
    group = NeighborPair.add_people([120, 75], 0, people)
    assert assert_loss_within(mechanism, group, claim, size=size).verdict == "not refuted"


def test_advice_says_no_more_than_is_known():
    with pytest.raises(AssertionError) as raised:
        assert_loss_within(GDPC(1.0), PAIR, size=30)
    assert lines_of(raised)["detectable"] == "at least epsilon inf, with power 0.8"
    advice = lines_of(raised)["help      "]
    assert advice == "more runs (size, or --audit-runs), or databases that differ in several people"
    with pytest.raises(AssertionError) as raised:  # events of a group would be too rare
        assert_loss_within(GaussianCounts(0.005), PAIR, ZCDP(0.005), size=2000)
    assert re.fullmatch(r"about [\d,]+ runs in all \(size, or --audit-runs\)", lines_of(raised)["help      "])


def test_a_failure_says_what_was_promised_what_was_measured_and_how_to_see_it_again():
    households = NeighborPair.declared(PAIR.x, PAIR.y, "add_remove", unit="household", label="with\x1b[2J\nB")
    with entered(a_test()), pytest.raises(AssertionError) as raised:
        assert_loss_within(HalfNoiseGDPC(1.0), households, size=4000, attack="entries")
    lines = lines_of(raised)
    assert len(lines) == 11
    assert lines["promised  "] == "epsilon 1 (add/remove)"
    bound = r"epsilon is at least 1\.\d+ at 99\.9999% confidence, by 4000 runs \(guessing game\)"
    assert re.fullmatch(bound, lines["bound     "])
    assert re.fullmatch(r"at least epsilon 1\.\d+, with power 0\.8", lines["detectable"])
    assert lines["event     "].startswith("y if output[0] >= ")
    for side in "xy":
        assert re.fullmatch(r"1[34]\d\d runs: guessed x \d+, guessed y \d+", lines[f"on {side}      "])
    assert lines["neighbors "] == "with [2J B (add_remove, declared)"
    assert lines["unit      "] == "one household; the databases are at distance 1"
    assert lines["seed      "] == str(seed_of(0, "test_release.py::test_counts", 1))
    assert lines["reproduce "] == "run test_release.py::test_counts"
    assert not str(raised.value).startswith("CONFIDENTIAL")


def test_an_unbounded_loss_shows_its_witness():
    words = r"\n  event +.*; unbounded by the exact law: possible on [xy] only, probability 1"
    with pytest.raises(AssertionError, match=words):
        assert_loss_within(SilentInvariant(1.0), PAIR, size=2000)


def test_a_stated_claim_goes_before_that_of_the_mechanism():  # two audits
    """Geometric noise for epsilon 1 keeps the first, and not the second."""
    assert assert_loss_within(GDPC(1.0), PAIR, ZCDP(1.5), size=20_000).claim == ZCDP(1.5)
    assert assert_loss_detected(GDPC(1.0), PAIR, PureDP(0.5), size=20_000).claim == PureDP(0.5)


def seed_used(**options):
    return assert_loss_within(GDPC(1.0), PAIR, size=4000, attack="entries", **options).seed_entropy


def test_a_test_says_the_same_every_day():
    """Seeds depend on the test, the number of the call in it and the seed of the session, and on nothing else."""
    with entered(a_test()):
        first = [assert_loss_within(GDPC(1.0), PAIR, size=4000, attack="entries") for _ in range(2)]
    assert first[0].provenance["command"] == "run test_release.py::test_counts"
    assert first[0].counts != first[1].counts
    assert [result.seed_entropy for result in first] == [seed_of(0, "test_release.py::test_counts", n) for n in (1, 2)]
    for other in (a_test(seed=1), a_test("test_release.py::test_totals")):
        with entered(other):
            assert seed_used() not in [result.seed_entropy for result in first]


def test_outside_of_a_test_the_seed_is_0(monkeypatch):
    monkeypatch.setattr("audit.testing.session._entered", [])
    assert running() is None
    assert [seed_used(), seed_used(), seed_used(rng="fixed")] == [0, 0, 0]
    with pytest.raises(AssertionError) as raised:
        assert_loss_detected(GDPC(1.0), PAIR, size=4000)
    assert "reproduce " not in lines_of(raised)


def test_a_search_that_begins_anew_says_how_to_repeat_it():
    fresh = {seed_used(rng=None) for _ in range(2)}
    assert len(fresh) == 2
    assert seed_used(rng=7) == 7
    with entered(a_test()), pytest.raises(AssertionError) as raised:
        assert_loss_detected(GDPC(1.0), PAIR, size=4000, rng=None)
    lines = lines_of(raised)
    drawn = re.fullmatch(r"(\d+), drawn anew: rng=\1 would repeat it", lines["seed      "])
    assert lines["reproduce "] == f"with rng={drawn[1]} in the test, run test_release.py::test_counts"
    with pytest.raises(TypeError, match=r"rng must be None, an integer, a Generator or a SeedSequence, got 'anew'"):
        seed_used(rng="anew")


def test_what_is_left_out_comes_from_the_test_and_runs_from_the_session():  # seven audits
    test = a_test(options={"size": 400, "confidence": 0.99, "rng": 5})
    with entered(test):
        result = assert_loss_within(GDPC(1.0), PAIR)
        assert (result.size, result.confidence, result.seed_entropy) == (400, 0.99, 5)
        result = assert_loss_within(GDPC(1.0), PAIR, size=500, confidence=0.9, rng=6)
        assert (result.size, result.confidence, result.seed_entropy) == (500, 0.9, 6)
    with entered(a_test(options={"rng": "fixed"})):
        seeds = [seed_of(0, "test_release.py::test_counts", call) for call in (1, 2)]
        assert [seed_used(), seed_used(rng="fixed"), seed_used(rng=3)] == [*seeds, 3]
    test.runs = 2000
    with entered(test):
        assert assert_loss_within(GDPC(1.0), PAIR, size=5000).size == 2000
        assert assert_loss_detected(HalfNoiseGDPC(1.0), PAIR).size == 2000


@pytest.mark.parametrize("assertion", [assert_loss_within, assert_loss_detected])
def test_a_claim_is_needed(assertion):
    with pytest.raises(TypeError, match="noisy has no promise of its own: state one"):
        assertion(noisy, PAIR)
    with pytest.raises(AttributeError, match=r"module 'audit.testing' has no attribute 'assert_private'"):
        _ = audit.testing.assert_private
