"""Refusals name the argument, the rule and the value."""

import math

import numpy as np
import pytest

from audit.arguments import fraction, positive_number, real_number, real_numbers, whole_number


def test_what_is_right_passes():
    assert whole_number("people", np.int64(3), least=1) == 3
    assert real_number("exact", np.float32(0.5)) == 0.5
    assert positive_number("lag", 2) == 2.0
    assert [fraction("q", end, zero=True, one=True) for end in (0, 1)] == [0.0, 1.0]
    assert real_numbers("at", [1, 2], ndim=(1,)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: whole_number("people", 1.5, least=1), TypeError, "people must be an integer, got 1.5"),
        (lambda: whole_number("people", 0, least=1), ValueError, "people must be at least 1, got 0"),
        (lambda: whole_number("people", 2**53, least=1), ValueError, r"people must be below 2\*\*53, got"),
        (lambda: real_number("exact", "1"), TypeError, "exact must be a number, got '1'"),
        (lambda: positive_number("lag", 0), ValueError, "lag must be positive and finite, got 0"),
        (lambda: fraction("delta", 1, zero=True), ValueError, r"delta must be in \[0, 1\), got 1$"),
        (lambda: fraction("share", 0.0, one=True), ValueError, r"share must be in \(0, 1\], got 0.0$"),
        (lambda: real_numbers("at", ["1"], ndim=(1,)), TypeError, "at must be real numbers, got dtype"),
        (lambda: real_numbers("at", 1.0, ndim=(1, 2)), ValueError, "at must be a filled array of 1 or 2 dimensions"),
        (lambda: real_numbers("at", [], ndim=(1,)), ValueError, r"at must be a filled array .* got shape \(0,\)"),
        (lambda: real_numbers("at", [math.inf], ndim=(1,)), ValueError, "at must be finite and below .* got inf"),
    ],
)
def test_what_is_wrong_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
