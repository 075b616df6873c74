"""Outcomes that one database shows and the other hardly does: one of the events is always the best of them."""

from __future__ import annotations

import numpy as np
import pytest

from audit.attacks.selection.choice import LEAST_HITS
from tests.audit.attacks.cases import select, several
from tests.helpers import geometric

SURE = {"confidence": 1 - 1e-6}


def tails(rng, x_far, y_far, size=20_000):
    """Laplace noise on both databases, so many of whose scores lie far below on x and far above on y."""
    x, y = rng.laplace(size=(2, size))
    x[rng.choice(size, x_far, replace=False)] = -1000 - rng.random(x_far)
    y[rng.choice(size, y_far, replace=False)] = 1000 + rng.random(y_far)
    return x, y


def said(events, *scores):
    return [event.guess(np.array(scores)).tolist() for event in events]


@pytest.mark.parametrize(("x_far", "y_far", "guess"), [(0, 20, 1), (20, 0, -1)])
def test_a_rare_and_certain_tail_is_an_event_of_its_own(x_far, y_far, guess):
    found = said(several(*tails(np.random.default_rng(1), x_far, y_far), **SURE), guess * 1002.0, guess * 15.0, 0.0)
    assert [guess, 0, 0] in found


def test_values_that_repeat_among_others_that_do_not_are_an_event_of_their_own():
    rng = np.random.default_rng(5)
    x, y = rng.laplace(size=(2, 20_000))
    y[:20] = np.repeat([0.25, 0.75], [12, 8])
    assert [1, 1, 0] in said(several(rng.permutation(x), rng.permutation(y), **SURE), 0.25, 0.75, 0.5)


def test_an_outcome_of_few_is_an_event_beside_honest_noise():
    """Seven of 1,400 runs on one database, none on the other, beside a count that tells half a nat in every run."""
    found = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, 7])
        x, y = (geometric(0.5, 1400, rng) + shift for shift in (0, 1))
        y[rng.choice(1400, 7, replace=False)] = 40
        found += [0, 0, 1] in said(several(x, y, counting=14_000), -5.0, 5.0, 40.0)
    assert found >= 8


def test_pairs_that_chance_makes_of_many_scores_are_no_event():
    rng = np.random.default_rng(6)
    x, y = rng.laplace(size=(2, 20_000))
    x[:40] = np.repeat(x[:20], 2)
    assert np.mean(select(x, y).guess(np.concatenate([x, y])) != 0) > 0.01


def test_what_is_forgiven_is_no_event_that_promises_most():
    event = select(*tails(np.random.default_rng(3), 0, 20), forgiven=0.01, confidence=0.95)
    assert event.guess(np.array([20.0, 900.0])).tolist() != [0, 1]


def test_how_many_hits_an_outcome_needs_is_told():
    """Chance gives a rival some tail, which more hits have to beat; where a real one is there, many more."""
    rng = np.random.default_rng(8)
    sound = several(rng.laplace(size=3000), rng.laplace(size=3000))[0].hits
    leaking = several(*tails(rng, 0, 60, 3000))[0].hits
    assert LEAST_HITS <= sound < 20 < leaking
