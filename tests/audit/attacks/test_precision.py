"""The last bits of float noise: textbook noise is refuted, and whole or rounded noise is not looked at."""

import math

import numpy as np
import pytest

from audit.attacks import Attack
from audit.attacks.precision import NO_NUMBER, ZERO, lowest_bit, significant_bits
from audit.claims import PureDP
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.neighbors import NeighborPair

NONE_OR_ONE = NeighborPair.declared(np.array([0]), np.array([1]), "add_remove")
SURE = 1 - 1e-6


@pytest.mark.parametrize(
    ("value", "lowest", "bits"),
    [
        *[(1.0, 0, 1), (-1.0, 0, 1), (12.0, 2, 2), (0.375, -3, 2), (2.0**60, 60, 1), (-5e-324, -1074, 1)],
        *[(0.1, -55, 52), (1 / 3, -54, 53), (1 + 2**-52, -52, 53), (1.7976931348623157e308, NO_NUMBER, 0)],
        *[(0.0, ZERO, 0), (math.inf, NO_NUMBER, 0), (-math.inf, NO_NUMBER, 0)],
    ],
)
def test_bits_of_a_number(value, lowest, bits):
    assert (lowest_bit(np.array([value])).item(), significant_bits(np.array([value])).item()) == (lowest, bits)


def laplace(data, size, rng):
    return data[0] + rng.laplace(size=size)


def test_textbook_noise_on_a_count_of_none_or_one_is_refuted():
    """The largest bounds that as many runs can show are about 6.5; normal noise: `tests.statistical`."""
    options = {"size": 20_000, "confidence": SURE, "rng": 1}
    result = measure_loss(laplace, NONE_OR_ONE, PureDP(1), attack="precision", **options)
    assert result.measured.epsilon > 3
    assert "bit" in result.event
    sound = measure_loss(laplace, NONE_OR_ONE, PureDP(1), attack=Attack.without("precision"), **options)
    assert sound.verdict == "not refuted"  # false alarm 1e-6


@pytest.mark.parametrize(
    ("rounding", "looked_at"),
    [
        (np.rint, False),
        (lambda values: np.round(values, 9), False),
        (lambda values: np.rint(values * 2**20) / 2**20, True),
    ],
    ids=["whole", "nine decimals", "a grid of powers of two"],
)
def test_rounded_noise_and_large_counts_are_not_accused(rounding, looked_at):
    """Negative control; false alarm 1e-6."""

    def rounded(data, size, rng):
        return rounding(laplace(data, size, rng))

    wide = NeighborPair.declared(np.array([100]), np.array([101]), "add_remove")
    result = measure_loss(rounded, wide, PureDP(1), confidence=SURE, size=20_000, rng=2)
    assert result.verdict == "not refuted"
    assert ("bit of" in result.searched) == looked_at


def test_bits_that_prove_nothing_tell_nothing():
    x, y = np.random.default_rng(1).laplace(size=(2, 2000))
    result = measure_loss_from_outputs(x, y, PureDP(1.0), relation="add_remove", attack="precision", rng=1)
    assert (result.attack, result.measured.epsilon, result.notes) == ("precision", 0.0, ())
