"""Parity, remainders, zeros, fractions and parities of sums: where they tell, and that they tell nothing else."""

import math

import numpy as np
import pytest

from audit.attacks.digits import candidates, comb, parity, readings
from tests.audit.attacks.cases import exploration, names

RUNS = 2000


def found(x, y):
    """What the attack finds in outputs, all of which it may look at."""
    return tuple(candidates(exploration(x, y, "digits", times=20)))


@pytest.mark.parametrize(
    ("reading", "values", "read"),
    [
        ("remainder by 2 of", [4, 7, -1, -2, 0], [0, 1, 1, 0, 0]),
        ("remainder by 10 of", [4.0, 17.9, -1.0, 2.0**60, math.inf], [4, 7, 9, 6, 0]),
        ("trailing zeros to base 10 of", [0, 7, 100, -2500, 10**18], [0, 0, 2, 2, 18]),
        ("trailing zeros to base 2 of", [0, 7, 12, -8, 2**62], [0, 0, 2, 3, 62]),
        ("trailing zeros to base 2 of", [96.5, -np.inf, 2.0**40], [5, 0, 40]),
    ],
)
def test_readings_of_whole_parts(reading, values, read):
    assert readings()[reading](np.array(values)).tolist() == read


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint32])
def test_the_parity_of_large_numbers_is_found(dtype):
    rng = np.random.default_rng(1)
    x, y = 2 * rng.integers(0, 50_000, (2, RUNS))
    statistics = found(x.astype(dtype), (y + 1).astype(dtype))
    assert any("remainder by 2 of output" in name or "zeros to base 2" in name for name in names(statistics))
    digits = statistics[0]
    assert not set(digits(x.astype(dtype))) & set(digits((y + 1).astype(dtype)))


@pytest.mark.parametrize(("teeth", "unit"), [(1000, 1.0), (1000, 1e-3), (300, math.pi), (1500, 1e6)])
def test_a_comb_is_found_whatever_its_unit(teeth, unit):
    rng = np.random.default_rng(2)
    x, y = ((rng.integers(0, teeth, RUNS) + (rng.random(RUNS) + half) / 2) * unit - 7 * unit for half in (0, 1))
    by, frequency, _ = comb(x, y)
    assert by > 10
    assert frequency * unit == pytest.approx(1, abs=1e-3)
    (wave, *_) = found(x, y)
    assert (wave(y) > 0).mean() > 0.9
    assert (wave(x) < 0).mean() > 0.9


def test_equal_laws_give_nothing():
    """False alarm: 3 standard deviations of 23 statistics, in four laws; the largest of all waves is allowed for."""
    rng = np.random.default_rng(3)
    for law in (
        lambda: rng.laplace(size=(RUNS, 2)),
        lambda: rng.integers(0, 10**6, (RUNS, 2)),
        lambda: rng.integers(0, 2, (RUNS, 30)),
        lambda: rng.normal(scale=1e5, size=(RUNS, 5)),
    ):
        assert names(found(law(), law())) == []


def test_parities_of_sums_are_found_that_no_entry_shows():
    rng = np.random.default_rng(4)
    for entries in ((7, 40), (3, 11, 50)):
        sides = []
        for secret in (0, 1):
            bits = rng.integers(0, 2, (RUNS, 60))
            bits[:, entries[-1]] = (bits[:, entries[:-1]].sum(axis=1) + secret) % 2
            sides.append(bits)
        best = found(*sides)[0]
        assert best.name == f"parity of the sum of output{', '.join(f'[{entry}]' for entry in entries)}"
        assert set(best(sides[0])) == {0}
        assert set(best(sides[1])) == {1}


def test_the_parity_of_all_entries_is_found():
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 1000, (2, RUNS, 5))
    x[:, 4] += x.sum(axis=1) % 2
    y[:, 4] += 1 - y.sum(axis=1) % 2
    assert names(found(x, y)) == ["parity of the sum of output[0], [1], [2], ... (5 entries)"]


def test_a_parity_reads_whole_parts_of_entries_in_their_places():
    outputs = np.array([[[1.5, 2.0], [3.0, 4.0]], [[-1.0, 2.0], [2.0, np.inf]]])
    assert parity((0, 3), (2, 2)).name == "parity of the sum of output[0, 0], [1, 1]"
    assert parity((0, 3), (2, 2))(outputs).tolist() == [1, 1]


def test_signs_of_zeros_are_found():
    x, y = np.zeros((2, RUNS, 2))
    y[np.random.default_rng(7).random(RUNS) < 0.5, 1] = -0.0
    assert names(found(x, y)) == ["sign of zero of output[1]", "sign of zero of output[0]", "negative zeros of output"]
    assert found(x, y)[0](y[:5]).tolist() == (1 - 2 * np.signbit(y[:5, 1])).tolist()
