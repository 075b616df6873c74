"""RAPPOR: filters, rates of the reported bits, and losses by enumeration."""

import hashlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from algorithms.benchmarks.rappor import RAPPOR, OneTimeRAPPOR
from tests.helpers import refuses

SMALL = [OneTimeRAPPOR(0.6, 2, 6), RAPPOR(0.6, 2, 6, p=0.2, q=0.7)]


def responses(mechanism, bit):
    """How often a bit is reported as 1, by the steps of the paper: permanent response first, then the instantaneous."""
    permanent = mechanism.f / 2 + (1 - mechanism.f) * bit
    if isinstance(mechanism, RAPPOR):
        return permanent * mechanism.q + (1 - permanent) * mechanism.p
    return permanent


def largest_loss(mechanism, x, y):
    """Of either filter as it is: every bit that differs then says the most."""
    reports = np.stack([mechanism.bloom(x), mechanism.bloom(y)])
    return np.abs(mechanism.log_likelihood(reports, x) - mechanism.log_likelihood(reports, y)).max()


def test_the_filter_is_the_digest():
    for value in (0, 1, -7, 123456):
        digest = hashlib.md5(str(value).encode()).digest()
        expected = {digest[i] % 20 for i in range(4)}
        assert set(np.flatnonzero(RAPPOR().bloom(value)).tolist()) == expected
        np.testing.assert_array_equal(RAPPOR().bloom([value]), RAPPOR().bloom(value))
    assert (RAPPOR().bloom([1]) != RAPPOR().bloom([0])).sum() == 6  # the tested pair


@pytest.mark.parametrize("mechanism", [*SMALL, RAPPOR(), OneTimeRAPPOR()])
def test_every_bit_has_its_rate(mechanism):
    """Binomial a bit, false alarm 1e-6 together; the rate of the other state is rejected."""
    runs = 60_000
    totals = mechanism([3], runs, np.random.default_rng(7)).sum(axis=0, dtype=int)
    right, wrong = (
        [stats.binomtest(int(n), runs, responses(mechanism, b)).pvalue for n, b in zip(totals, states, strict=True)]
        for states in (mechanism.bloom([3]), 1 - mechanism.bloom([3]))
    )
    assert min(right) * len(right) > 1e-6
    assert max(wrong) < 1e-12


@pytest.mark.parametrize("mechanism", SMALL)
def test_likelihood_and_loss_by_enumeration(mechanism):
    x, y = next(
        (x, y) for x, y in itertools.combinations(range(50), 2) if (mechanism.bloom(x) != mechanism.bloom(y)).sum() == 4
    )
    outputs = np.array(list(itertools.product((0, 1), repeat=6)))
    for value in (x, y):
        rates = [responses(mechanism, bit) for bit in mechanism.bloom(value)]
        law = [math.prod(r if bit else 1 - r for r, bit in zip(rates, row, strict=True)) for row in outputs]
        np.testing.assert_allclose(np.exp(mechanism.log_likelihood(outputs, [value])), law, rtol=1e-12)
    # Four bits are as many as two hash functions can tell apart: the promise is reached.
    assert largest_loss(mechanism, x, y) == pytest.approx(mechanism.claim.epsilon, rel=1e-12)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.floats(0.05, 0.95), st.integers(1, 16))
def test_no_two_values_break_the_promise(x, y, f, hashes):
    for mechanism in (OneTimeRAPPOR(f, hashes, 32), RAPPOR(f, hashes, 32)):
        assert largest_loss(mechanism, x, y) <= mechanism.claim.epsilon * (1 + 1e-9)


def test_reports_are_bits():
    reports = RAPPOR()([1], 500, np.random.default_rng(1))
    assert reports.dtype == np.int8
    assert set(np.unique(reports)) == {0, 1}
    assert np.isneginf(RAPPOR().log_likelihood(np.full((1, 20), 2), [1])).all()


def test_bad_input_is_refused_in_one_line():
    refuses(ValueError, "f must be between 0 and 1, got 0.0", OneTimeRAPPOR, f=0.0)
    refuses(ValueError, "hashes must be at most 16, got 17", RAPPOR, hashes=17)
    refuses(ValueError, "bits must be at least 1, got 0", RAPPOR, bits=0)
    refuses(ValueError, "p and q must have 0 <= p < q <= 1, got 0.6 and 0.5", RAPPOR, p=0.6, q=0.5)
    for value in ([1.0, 2.0], [0.5]):
        refuses(ValueError, f"value must be one whole number, got {value}", RAPPOR().bloom, value)
