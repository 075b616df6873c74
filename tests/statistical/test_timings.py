"""How often the running time accuses a mechanism by chance."""

import numpy as np
import pytest
from scipy import stats

from algorithms.flaxman import GDPC
from audit.replay import replay, replaying
from tests.audit.replay.cases import ADDED, played


@pytest.mark.parametrize("games", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_coins_and_not_the_machine_decide(monkeypatch, games):
    """At a false alarm of 5% more accusations than the limit have probability 1e-6: times drift, jump, and remember."""
    monkeypatch.setattr(replaying, "FALSE_ALARM", 0.05)
    limit = int(stats.binom.ppf(1 - 1e-6, games, 0.05))
    rng = np.random.default_rng(7)
    state = {"now": 0.0, "before": False}

    def take(on_y):
        state["now"] += 1
        nanoseconds = (
            1e6 + 1e3 * state["now"] + 1e5 * rng.standard_normal() + 5e5 * state["before"] + 1e7 * (rng.random() < 0.05)
        )
        state["before"] = on_y
        return int(nanoseconds)

    accused = sum(found is not None for found in played(take, games=games))
    assert 0 < accused <= limit < 0.15 * games
    slower = [
        replaying.timing(lambda on_y: take(on_y) + 600_000 * on_y, 200, np.random.default_rng(9)) for _ in range(20)
    ]
    assert all(slower)


@pytest.mark.slow
def test_two_hundred_sound_timings_accuse_nobody():
    # All together accuse with probability 2e-4 at most.
    found = [replay(GDPC(1.0), ADDED, observe="time", size=100, rng=seed) for seed in range(200)]
    assert [one for one in found if one.violations] == []
