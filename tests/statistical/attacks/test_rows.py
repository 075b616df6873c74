"""Rows of synthetic tables: leaks in any order are found, and sound twins are not accused."""

from functools import partial

import numpy as np
import pytest

from algorithms.nist.system import NIST
from audit.claims import PureDP
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair

NONE_OR_ONE = NeighborPair.declared(np.array([0]), np.array([1]), "add_remove")
ALL, ROWS = 12, 60  # combinations of values, and rows of a table
CODES = np.delete(np.random.default_rng(0).integers(0, ALL, ROWS), 0) % (ALL - 1)  # none in the last one


def drawn(codes, size, rng, *, scale):
    """DataSynthesizer's issue 34 has a scale of 2 / n, as if it were added to shares: rows drawn from noisy counts."""
    noisy = np.bincount(codes, minlength=ALL) + rng.laplace(0, scale, (size, ALL))
    shares = np.maximum(noisy, 1e-9).cumsum(axis=1)
    places = rng.random((size, ROWS)) * shares[:, -1:]
    return np.stack(np.unravel_index((places[:, :, None] > shares[:, None]).sum(axis=2), (3, 4)), axis=2)


def copied(secret, size, rng, *, share, levels):
    """Random rows, into one of which the person's is copied in a share of the tables."""
    rows = np.stack([rng.integers(0, level, (size, 100)) for level in levels], axis=2)
    where = np.flatnonzero((rng.random(size) < share) & (secret[0] == 1))
    rows[where, rng.integers(0, 100, where.size)] = np.array(levels) // 2
    return rows


@pytest.mark.slow
def test_rows_from_counts_with_too_little_noise_are_refuted():
    pair = NeighborPair.declared(CODES, np.append(CODES, ALL - 1), "add_remove")
    verdicts = [
        measure_loss(partial(drawn, scale=2 / ROWS), pair, PureDP(1.0), size=4000, rng=seed) for seed in range(16)
    ]
    assert sum(result.verdict == "violated" for result in verdicts) >= 15
    sound = [measure_loss(partial(drawn, scale=1.0), pair, PureDP(1.0), size=4000, rng=seed) for seed in range(16)]
    assert max(result.measured.epsilon for result in sound) < 1  # false alarm: 5% an audit at most, of a loss of 1


@pytest.mark.slow
def test_a_copy_in_one_of_a_hundred_tables_is_found_among_a_million_rows():
    leak = partial(copied, share=0.01, levels=(10,) * 6)
    result = measure_loss(leak, NONE_OR_ONE, PureDP(1.0), size=200_000, rng=1)
    assert (result.attack, result.measured.epsilon > 3.5) == ("rows", True)


@pytest.mark.slow
def test_equal_laws_of_rows_prove_next_to_nothing():
    """False alarm: bounds hold at 99.9%, so that one of 40 exceeds 0 with probability 0.04 at most."""
    sound = partial(copied, share=0.0, levels=(8, 8, 10, 12))
    audits = [
        measure_loss(sound, NONE_OR_ONE, PureDP(1.0), size=2000, confidence=0.999, rng=seed) for seed in range(40)
    ]
    assert all(result.measured.epsilon == 0 for result in audits)


@pytest.mark.slow
def test_rows_of_nist_show_a_budget_that_is_spent_fifty_times():
    result = measure_loss(NIST.build(epsilon=50.0), NIST.pairs["joined"](), PureDP(1.0), size=20_000, rng=2)
    assert (result.verdict, result.attack) == ("violated", "rows")
