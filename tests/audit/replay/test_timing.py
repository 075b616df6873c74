"""Running times as outputs."""

from __future__ import annotations

from algorithms.flaxman import GDPC
from algorithms.noise import Laplace, TwoTailedGeometric, add_noise
from audit.claims import PureDP
from audit.replay import replay
from tests.audit.replay.cases import ADDED, kinds, played


def slow_on_y(data, size, rng):
    """Enumerate people of the first cell one by one if they are more than 50."""
    total = sum(1 for _ in range(20_000)) if data[0] > 50 else 20_000
    return add_noise(data + total - 20_000, TwoTailedGeometric(1.0), size, rng, query="counts", sensitivity=1)


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
    recorded = replay(
        counted(lambda n, rng: int(add_noise(n, law, None, rng))), ADDED, PureDP(1.0), observe="time", size=60
    )
    assert recorded.verdict == "not refuted"


def test_times_without_a_clock():
    [found] = played(lambda on_y: 5_000_000 if on_y else 1_000_000)
    assert str(found) == (
        "time: the time tells the database in 140 of 140 runs, by chance with probability 7.2e-43 "
        "(median 1 ms on x, 5 ms on y)"
    )
    assert played(lambda on_y: 1 if on_y else 5)[0].kind == "time"
    assert played(lambda on_y: 5) == [None]
    # 20 right guesses in 21 have probability 1e-5 by chance: too few runs for anything but perfection.
    assert played(lambda on_y: 1 + on_y, size=30)[0].kind == "time"
