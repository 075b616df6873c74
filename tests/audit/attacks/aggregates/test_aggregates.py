"""Outputs as a whole: who is among rows in random order is found, and nothing where laws are equal."""

from __future__ import annotations

import numpy as np
import pytest

from audit.attacks.aggregates import candidates
from audit.values import NAN
from tests.audit.attacks.cases import exploration

RUNS = 2000


def found(x, y):
    """Names of what the attack finds in outputs, all of which it may look at."""
    return [one.name for one in candidates(exploration(x, y, "whole"))]


def codes(rng, runs=RUNS):
    return rng.integers(0, 1000, (runs, 20))


def shuffled(rng, ages):
    """Twenty people in random order, one of whom is known."""
    outputs = codes(rng, len(ages))
    outputs[:, 0] = ages
    return rng.permuted(outputs, axis=1)


def test_a_value_at_any_place_is_found():
    rng = np.random.default_rng(1)
    x, y = shuffled(rng, np.full(RUNS, 499)), shuffled(rng, np.full(RUNS, 501))
    assert sorted(found(x, y)) == ["entries that are 499", "entries that are 501"]
    assert found(x, shuffled(rng, np.full(RUNS, 499))) == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda outputs: outputs.__setitem__((slice(None), 3), 2000), "largest of all entries"),
        (lambda outputs: outputs.__setitem__((slice(None), 3), -1), "smallest of all entries"),
        (lambda outputs: outputs.__setitem__((slice(None), 3), outputs[:, 7]), "different values"),
        (lambda outputs: outputs.__setitem__((slice(None), 0), -outputs[:, 1:].sum(axis=1)), "sum of all entries"),
    ],
)
def test_what_only_all_entries_tell_is_found(change, name):
    rng = np.random.default_rng(2)
    x, y = codes(rng), codes(rng)
    change(y)
    assert name in found(x, rng.permuted(y, axis=1))


def test_equal_laws_give_nothing():
    """False alarm: 4 statistics, 40 times, 7e-6 each."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        assert found(codes(rng, 200), codes(rng, 200)) == []
        assert found(rng.laplace(size=(200, 5)), rng.laplace(size=(200, 5))) == []


def test_a_value_that_one_entry_shows_is_left_to_it():
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 9, (2, RUNS, 4))
    y[:, 2] = 5
    assert not any(name.startswith("entries that are") for name in found(x, y))


def test_what_is_no_number_has_no_part():
    rng = np.random.default_rng(5)
    x, y = rng.laplace(size=(2, RUNS, 5))
    x[:, 3], y[:, 3] = np.inf, NAN
    assert found(x, y) == []
