"""What is a violation, what is no evidence, and what cannot be evaluated."""

import itertools
import math
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from algorithms.flaxman import GDPC
from algorithms.noise import Laplace, TwoTailedGeometric, add_noise
from audit.claims import PureDP
from audit.neighbors import NeighborPair
from audit.replay import primitive, replay
from tests.audit.replay.cases import ADDED, kinds, played, sum_of


@settings(max_examples=15)
@given(
    x=st.lists(st.integers(0, 20), min_size=1, max_size=5),
    moved=st.lists(st.integers(-5, 5), min_size=5, max_size=5),
    declared=st.tuples(st.floats(0.5, 12), st.floats(0.5, 12)),
)
def test_a_change_is_accused_if_it_is_beyond_what_is_declared(x, moved, declared):
    change = np.array(moved[: len(x)])
    pair = NeighborPair.declared(np.array(x), np.array(x) + change, "add_remove")
    found = replay(sum_of(TwoTailedGeometric(0.1), sensitivity=declared, of=np.asarray), pair)
    l1, l2 = np.abs(change).sum(), math.sqrt((change**2).sum())
    assert (found.queries[0].l1_change, found.queries[0].l2_change) == (l1, pytest.approx(l2))
    accused = l1 > declared[0] or l2 > declared[1] * (1 + 1e-9)
    assert kinds(found) == (["sensitivity"] if accused else [])


def test_an_exception_that_noise_decides_is_none_of_the_data():
    def checked(data, size, rng):
        noisy = add_noise(data, TwoTailedGeometric(0.01), size, rng, sensitivity=1)
        if noisy.min() < 0:
            raise ValueError(f"negative: {noisy.min()}")
        return noisy

    found = replay(checked, ADDED, size=50)
    assert (found.verdict, found.violations) == ("not refuted", ())
    assert any("ValueError (negative: -" in note for note in found.notes)


def ladder(data, size, rng):
    """Branches on a noisy value: with the same noise instead of the same answers, y would go elsewhere."""
    level = int(add_noise(data.sum(), TwoTailedGeometric(1.0), None, rng, query="level", sensitivity=1))
    return [add_noise(data, TwoTailedGeometric(1.0), size, rng, query=f"{level} {step}") for step in range(level % 7)]


def unrecorded(data, size, rng):
    return data + rng.laplace(size=(size, data.size))


def shuffled(data, size, rng):
    noisy = add_noise(data, TwoTailedGeometric(1.0), size, rng.spawn(1)[0], sensitivity=1)
    return rng.permutation(noisy[0])


blind = primitive("value")(lambda value, rng: value + rng.normal())
ELSEWHERE = "random numbers are drawn outside of the primitives"
NO_LIMIT = "no query has a declared sensitivity, or a known loss to compare with a promise"


@pytest.mark.parametrize(
    ("mechanism", "options", "verdict", "largest", "notes"),
    [
        (ladder, {"claim": PureDP(0.1), "size": 4}, "not refuted", None,
         ["which queries are asked depends on answers: losses do not add up to a law of all"]),
        (lambda data, size, rng: add_noise([*data, math.nan], Laplace(1.0), size, rng, query="q", sensitivity=1),
         {}, "not refuted", 1.0, ["'q' is not finite on both databases: no noise would hide"]),
        (shuffled, {"claim": PureDP(1.0)}, "not refuted", 1.0, [ELSEWHERE]),
        (sum_of(), {}, "no power", 1.0, [NO_LIMIT]),
        (lambda data, size, rng: blind(data * 9, rng), {"claim": PureDP(1.0)}, "no power", None, [NO_LIMIT]),
        (unrecorded, {"claim": PureDP(0.1)}, "no power", None,
         ["no noise was recorded", ELSEWHERE,
          "no evidence, as noise that is not recorded may have made it: output: all answers are the same, and yet"]),
        (lambda data, size, rng: np.zeros((size, 2)), {"claim": PureDP(1.0)}, "no power", None, ["no noise"]),
    ],
    ids=["branches", "nan", "shuffled", "no claim", "no law", "unrecorded", "no noise"],
)  # fmt: skip
def test_nobody_is_accused_and_notes_say_why_nothing_is_known(mechanism, options, verdict, largest, notes):
    found = replay(mechanism, ADDED, **options)
    assert (found.verdict, found.violations) == (verdict, ())
    assert (found.exact_loss and found.exact_loss.maximum) == largest
    assert all(note.startswith(words) for note, words in zip(found.notes, notes, strict=True))


def sparse_vector(data, size, rng):
    """Truly 1-DP: a threshold with half of the budget, and queries until one is above it."""
    threshold = 1000 + add_noise(0, Laplace(2.0), size, rng, query="threshold", sensitivity=0)
    above = []
    for place in range(6):
        noisy = add_noise(data[0], Laplace(4.0), size, rng, query=f"query {place}", sensitivity=1)
        above.append(bool((noisy >= threshold)[0]))
        if above[-1]:
            break
    return above


def noisy_scores(data, size, rng):
    return add_noise(data, Laplace(2.0), size, rng, query="scores", sensitivity=(3, 2))


@pytest.mark.parametrize("inside", [None, lambda noisy: noisy.argmax(axis=1), np.sort], ids=["SVT", "largest", "sort"])
def test_answers_that_stay_inside_lose_nothing_that_is_proved(inside):
    pair, mechanism = ADDED, sparse_vector
    if inside:
        pair = NeighborPair.declared(np.array([50, 3, 7]), np.array([51, 4, 8]), "add_remove")
        mechanism = lambda data, size, rng: inside(noisy_scores(data, size, rng))  # noqa: E731
    for released in (None, False):
        found = replay(mechanism, pair, PureDP(1.0), released=released)
        assert (found.violations, found.verdict) == ((), "no power")
        assert found.notes[0].startswith("all queries together lose epsilon 1.5 ")
        assert "a violation if these answers are published" in str(found)
    assert kinds(replay(mechanism, pair, PureDP(1.0), released=True)) == ["loss"]


def test_of_some_answers_that_are_released_only_those_count():
    def partly(shown):
        def mechanism(data, size, rng):
            noisy = [add_noise(data.sum(), Laplace(1.0), size, rng, query=f"q{place}") for place in range(3)]
            return {"answers": noisy[:shown], "more": 2 * noisy[2]}

        return mechanism

    assert replay(partly(1), ADDED, PureDP(1.0)).verdict == "no power"
    [found] = replay(partly(2), ADDED, PureDP(1.0)).violations
    assert "the queries whose answers are released together lose epsilon 2 on this pair" in str(found)


@pytest.mark.parametrize("coin", [lambda: random.random() < 0.5, lambda: np.random.default_rng().random() < 0.5])
def test_random_numbers_from_elsewhere_are_no_evidence(coin):
    """20 runs on each database agree by chance with probability 1e-12; the answers stay the same."""

    def beside(data, size, rng):
        return add_noise(data, Laplace(1.0), size, rng, sensitivity=1), coin()

    def within(data, size, rng):
        return add_noise(data[0] + 5 * coin(), Laplace(1.0), size, rng, sensitivity=1)

    for mechanism in (beside, within):
        assert [replay(mechanism, ADDED, PureDP(1.0), rng=seed).violations for seed in range(12)] == [()] * 12


def test_values_that_are_random_on_one_database_only():
    def sampled(data, size, rng):
        value = data[0] if data[0] <= 50 else data[0] - 3 * rng.integers(2)
        return add_noise(value, Laplace(1.0), size, rng, query="c", sensitivity=1)

    assert [replay(sampled, ADDED, PureDP(1.0), rng=seed).violations for seed in range(10)] == [()] * 10


def test_queries_that_depend_on_answers():
    def adaptive(data, size, rng):
        first = add_noise(data[0], Laplace(2.0), size, rng, query="a", sensitivity=1)
        return first, add_noise(data[0 if first[0] > 50 else 1], Laplace(2.0), size, rng, query="b", sensitivity=1)

    # Five runs are on one side with probability 1/16.
    known = sum(replay(adaptive, ADDED, PureDP(1.0), rng=seed).known for seed in range(30))
    assert known <= stats.binom.ppf(1 - 1e-6, 30, 1 / 16)


def test_leaks_are_seen_beside_random_post_processing():
    def leaking(data, size, rng):
        rng.random()
        return add_noise(data, TwoTailedGeometric(1.0), size, rng) * (data[0] > 50)

    assert kinds(replay(leaking, ADDED)) == kinds(replay(lambda data, size, rng: data[None], ADDED)) == ["output"]


def test_values_that_are_random_themselves_have_no_change():
    def sampled(data, size, rng):
        first = rng.permutation(data)[:1].sum()
        return add_noise(first, TwoTailedGeometric(1.0), size, rng, query="s", sensitivity=0.1)

    pair = NeighborPair.declared([50, 3, 7, 1, 9], [51, 3, 7, 1, 9], "add_remove")
    for seed in range(10):  # all 21 runs agree with chance 1e-14
        found = replay(sampled, pair, rng=seed)
        assert (found.violations, found.exact_loss) == ((), None)
        assert found.notes == ("random numbers are drawn outside of the primitives",)


def test_noise_by_itself_is_the_same_and_its_values_are_not_seen():
    law = Laplace(1.0)
    found = replay(lambda data, size, rng: data + law.sample((size, data.size), rng), ADDED)
    assert (found.verdict, found.exact_loss, found.violations) == ("no power", None, ())
    [query] = found.queries
    assert (query.name, query.l1_change, query.l2_change, query.declared) == ("noise by itself", None, None, None)
    assert found.notes[0] == "noise is drawn by itself: what it is added to is not seen"
    unused = replay(lambda data, size, rng: law.sample(size, rng), ADDED)
    assert (unused.verdict, unused.exact_loss) == ("no power", None)


def test_nothing_after_noise_by_itself_is_evidence():
    """The same noise is not the same noisy value: sound code goes on otherwise."""

    def until_small(data, size, rng):
        law, level = TwoTailedGeometric(1.0), int(data[0])
        while (level + law.sample(1, rng))[0] > 50:
            pass
        return add_noise(min(level, 50), law, size, rng, sensitivity=0.1)

    found = replay(until_small, ADDED, size=20)
    assert found.violations == ()
    assert found.verdict == "no power"
    assert any("number" in note or "order" in note for note in found.notes)


def test_to_end_the_program_is_an_exception():
    def leaving(data, size, rng):
        if data[0] == 51:
            raise SystemExit(3)
        return add_noise(data, TwoTailedGeometric(1.0), size, rng, sensitivity=1)

    found = replay(leaving, ADDED, PureDP(1.0))
    assert "exception" in kinds(found)


def test_a_mechanism_that_sometimes_raises_does_not_release_all_its_answers():
    """20 other runs raise nothing with probability 1e-6."""

    def refusing(data, size, rng):
        noisy = add_noise(data.sum(), Laplace(1.0), size, rng, query="sum", sensitivity=1)
        if noisy[0] < 60:
            raise ValueError("too small")
        return noisy

    found = [replay(refusing, ADDED, PureDP(0.5), rng=seed) for seed in range(4)]
    assert {one.violations for one in found} == {()}
    assert "no power" in {one.verdict for one in found}
    ended = [one for one in found if any("ValueError" in note for note in one.notes)]
    assert ended
    assert {one.exact_loss for one in ended} == {None}


# Running times as outputs


def slow_on_y(data, size, rng):
    """Enumerate people of the first cell one by one if they are more than 50."""
    total = sum(1 for _ in range(60_000)) if data[0] > 50 else 60_000
    return add_noise(data + total - 60_000, TwoTailedGeometric(1.0), size, rng, query="counts", sensitivity=1)


def test_running_time_is_an_output():
    found = replay(slow_on_y, ADDED, PureDP(1.0), observe="time", size=100)
    assert (kinds(found), found.size) == (["time"], 100)
    assert "runs, by chance with probability" in str(found.violations[0])
    assert found.exact_loss.maximum == 1
    assert replay(slow_on_y, ADDED, PureDP(1.0)).verdict == "not refuted"


def test_sound_mechanisms_take_no_telling_time():
    # By the guarantee a false accusation has probability 1e-6.
    found = replay(GDPC(1.0), ADDED, observe="time")
    assert (found.verdict, found.size) == ("not refuted", 200)


def test_times_of_runs_that_part_are_not_compared():
    found = replay(lambda data, size, rng: Laplace(1.0).sample(int(data[0]), rng), ADDED, observe="time")
    assert kinds(found) == ["shape"]
    assert found.notes[-1] == "times were not compared, as the runs part or noise is not recorded"


def test_times_that_noise_decides_are_none_of_the_data():
    """With noise that is not recorded the noisy value, and whatever is done so many times, differs on x and y."""

    def counted(noisy):
        def mechanism(data, size, rng):
            total = noisy(data[0], rng)
            return sum(1 for _ in range(5_000 * (total % 2))) * 0 + total

        return mechanism

    law = TwoTailedGeometric(1.0)
    for noisy in (lambda n, rng: n + law.sample(1, rng)[0], lambda n, rng: n + rng.geometric(0.5) - rng.geometric(0.5)):
        found = replay(counted(noisy), ADDED, observe="time", size=60)
        assert (found.verdict, found.violations) == ("no power", ())
        assert found.notes[-1] == "times were not compared, as the runs part or noise is not recorded"
    recorded = counted(lambda n, rng: int(add_noise(n, law, None, rng)))
    assert replay(recorded, ADDED, PureDP(1.0), observe="time", size=60).verdict == "not refuted"


def test_times_without_a_clock():
    [found] = played(lambda on_y: 5_000_000 if on_y else 1_000_000)
    assert "in 140 of 140 runs, by chance with probability 7.2e-43 (median 1 ms on x, 5 ms on y)" in str(found)
    assert played(lambda on_y: 1 if on_y else 5)[0].kind == "time"
    assert played(lambda on_y: 5) == [None]
    # 20 right guesses in 21 have probability 1e-5 by chance: too few runs for anything but perfection.
    assert played(lambda on_y: 1 + on_y, size=30)[0].kind == "time"
    numbers = itertools.count(1)
    assert played(lambda on_y: 1 + (on_y ^ (next(numbers) == 4 + 30)), size=30) == [None]


def test_what_is_guessed_from_is_chosen_on_runs_that_do_not_count(monkeypatch):
    """70 of 140 guesses are right by chance: the mean of 200 games is beyond 72 with probability 1e-6."""
    monkeypatch.setattr("audit.replay.replaying.FALSE_ALARM", 1.0)
    times = np.random.default_rng(3)
    words = [str(found) for found in played(lambda on_y: times.integers(1000), games=200)]
    assert np.mean([int(re.search(r"in (\d+) of 140 runs", one)[1]) for one in words]) < 72
