"""Scores that are set apart: certain tails whose values do not repeat, and values that repeat where none should."""

from __future__ import annotations

import numpy as np
import pytest

from audit.attacks.selection.apart import FEWEST
from audit.events import ThresholdRule
from tests.audit.attacks.cases import select


def tails(rng, x_far, y_far, size=20_000):
    """Laplace noise on both databases, so many of whose scores lie far below on x and far above on y."""
    x, y = rng.laplace(size=(2, size))
    x[rng.choice(size, x_far, replace=False)] = -1000 - rng.random(x_far)
    y[rng.choice(size, y_far, replace=False)] = 1000 + rng.random(y_far)
    return x, y


@pytest.mark.parametrize(("x_far", "y_far"), [(10, 10), (0, 20), (20, 0)])
def test_a_rare_and_certain_tail_is_an_event_of_its_own(x_far, y_far):
    event = select(*tails(np.random.default_rng(1), x_far, y_far), confidence=1 - 1e-6)
    assert event.guess(np.array([-900.0, -20.0, 0.0, 20.0, 900.0])).tolist() == [-(x_far > 0), 0, 0, 0, int(y_far > 0)]


def test_what_is_not_confirmed_is_left_alone():
    rng = np.random.default_rng(2)
    few = select(*tails(rng, 0, FEWEST), confidence=1 - 1e-6)
    assert few.guess(np.array([900.0])) == few.guess(np.array([20.0]))  # no threshold between
    x, y = tails(rng, 10, 10)
    x[0] = 1000.5  # negative control: one exception
    assert select(x, y, confidence=1 - 1e-6).guess(np.array([20.0, 900.0])).tolist() != [0, 1]


def test_values_that_repeat_among_others_that_do_not_are_an_event_of_their_own():
    rng = np.random.default_rng(5)
    x, y = rng.laplace(size=(2, 20_000))
    for side, values, times in ((x, (0.75, 0.125), (8, 4)), (y, (0.25,), (12,))):
        side[: sum(times)] = np.repeat(values, times)
    confident = {"confidence": 1 - 1e-6}
    event = select(x, y, **confident)
    assert event.guess(np.array([0.75, 0.25, 0.5, 0.125])).tolist() == [-1, 1, 0, -1]
    assert isinstance(select(x, y, families=("threshold",), **confident).rule, ThresholdRule)
    y[20] = 0.75  # negative control: one exception
    assert select(x, y, **confident).guess(np.array([0.75, 0.25, 0.125])).tolist() != [-1, 1, -1]


def test_pairs_that_chance_makes_of_many_scores_are_no_event():
    rng = np.random.default_rng(6)
    x, y = rng.laplace(size=(2, 20_000))
    x[:40] = np.repeat(x[:20], 2)
    assert np.mean(select(x, y).guess(np.concatenate([x, y])) != 0) > 0.01


def test_what_is_forgiven_is_no_event():
    event = select(*tails(np.random.default_rng(3), 0, 20), forgiven=0.01, confidence=0.95)
    assert event.guess(np.array([20.0, 900.0])).tolist() != [0, 1]


@pytest.mark.parametrize("scale", [1.0, 1e306])
def test_heavy_tails_of_equal_laws_are_no_event(scale):
    """Gaps are wide there, and both databases lie beyond: chance leaves five on one side once in 16 times."""
    with np.errstate(over="ignore"):
        x, y = np.clip(np.random.default_rng(4).standard_cauchy((2, 5000)) * scale, -1.7e308, 1.7e308)
    event = select(x, y)
    assert np.mean(event.guess(np.concatenate([x, y])) != 0) > 0.01 or str(event) == "never a guess"
