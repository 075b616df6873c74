import math

import numpy as np
import pytest

from audit.attacks.classifiers import entries_to_learn, fitted, scoring
from audit.attacks.movement import explore
from audit.attacks.weak_signals import pick
from audit.neighbors import NeighborPair
from tests.audit.attacks.cases import exploration

RUNS, FRESH = 4000, 20_000


def trained(outputs_x, outputs_y, *, seed=1, entries=None):
    entries = np.arange(math.prod(outputs_x.shape[1:])) if entries is None else np.array(entries)
    return scoring(fitted(pick(outputs_x, entries), pick(outputs_y, entries), seed=seed), entries)


def accuracy(statistic, x, y):
    """Rate of right guesses by the sign of a score, of as many fresh runs on either database."""
    return (np.mean(statistic(x) < 0) + np.mean(statistic(y) > 0)) / 2


def shared_noise(sign, size, rng, rho=0.9):
    """Two entries, each of standard normal law, that share noise: with the same sign or with opposite ones."""
    noise = rng.normal(size=(size, 2))
    return np.column_stack([noise[:, 0], sign * rho * noise[:, 0] + math.sqrt(1 - rho**2) * noise[:, 1]])


def test_a_loss_that_lives_in_a_correlation_is_learned():
    rng = np.random.default_rng(1)
    logistic, boosting = trained(shared_noise(1, RUNS, rng), shared_noise(-1, RUNS, rng))
    x, y = shared_noise(1, FRESH, rng), shared_noise(-1, FRESH, rng)
    # The best guess, by the sign of the product, is right with probability 1/2 + arcsin(0.9) / pi = 0.856. Of 40,000
    # guesses the rate is known to 0.0018: 4 of them are passed with probability 6e-5.
    best = 0.5 + math.asin(0.9) / math.pi
    assert best - 0.03 < accuracy(boosting, x, y) < best + 0.007
    assert accuracy(logistic, x, y) == pytest.approx(0.5, abs=0.06)  # what is linear tells nothing: negative control
    # No entry by itself does either: both laws of each are the same.
    for entry in (0, 1):
        assert np.abs(np.sort(x[:, entry]) - np.sort(y[:, entry]))[200:-200].max() < 0.15


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_infinities_are_learned_from_like_any_number(share):
    rng = np.random.default_rng(7)

    def outputs(end, size):
        values = rng.normal(size=(size, 3))
        values[rng.random(size) < share, 1] = end
        values[rng.random(size) < share] = -math.inf  # on both, in every entry
        values[:, 2] = math.inf
        return values

    for statistic in trained(outputs(0.0, RUNS), outputs(math.inf, RUNS)):
        x, y = outputs(0.0, FRESH), outputs(math.inf, FRESH)
        scores = statistic(y)
        assert np.isfinite(scores).all()
        shown = np.isposinf(y[:, 1])  # impossible on x
        assert np.mean(statistic(x) >= np.median(scores[shown])) < 0.002


def test_entries_are_those_of_a_flattened_output():
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(2, RUNS, 3, 4))
    y[:, 2, 1] += 3
    for statistic in trained(x, y, entries=[1, 9]):
        here, there = np.zeros((2, 1, 3, 4))
        here[0, 2, 1] = 3
        there[0, :2], there[0, 2, [0, 2, 3]] = 9, 9
        there[0, 0, 1] = 0
        assert statistic(here) > statistic(np.zeros((1, 3, 4)))
        assert statistic(there) == statistic(np.zeros((1, 3, 4)))


def test_the_same_seed_learns_the_same():
    rng = np.random.default_rng(10)
    x, y, outputs = rng.normal(size=(3, RUNS, 3))
    y[:, 1] *= 1.3
    first, again = trained(x, y), trained(x, y)
    for one, other in zip(first, again, strict=True):
        assert one.name == other.name
        np.testing.assert_array_equal(one(outputs), other(outputs))
    assert [one.name for one in first] == ["logistic regression on 3 entries", "gradient boosting on 3 entries"]
    assert not np.array_equal(trained(y, x)[1](outputs), first[1](outputs))  # negative control


def test_a_classifier_gets_what_changes_and_what_moves_or_spreads():
    rng = np.random.default_rng(21)
    x, y = rng.normal(size=(2, 500, 40))
    y[:, 25:35] += 1  # 16 standard errors each
    y[:, 36] *= 2
    explored = explore(exploration(x, y))
    data = np.arange(40)
    changed = data.copy()
    changed[[3, 7]] += 1, 2
    entries = entries_to_learn(NeighborPair.declared(data, changed, "add_remove", distance=3), explored)
    assert {3, 7, *range(25, 35), 36} <= set(entries.tolist())
    assert len(entries) in range(16, 20)  # 16 that move most, 10 of them clearly, the one that spreads, and the two
    assert entries.tolist() == sorted(set(entries.tolist()))
    unlike = entries_to_learn(NeighborPair.declared("x", "y", "add_remove"), explored)
    assert {*range(25, 35), 36} <= set(unlike.tolist())
    assert len(unlike) in (16, 17)
    grown = entries_to_learn(NeighborPair.declared(data, data * 2, "add_remove", distance=780), explored)
    assert set(range(24, 40)) <= set(grown.tolist())
