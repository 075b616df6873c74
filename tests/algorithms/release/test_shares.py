"""Exact shares of a budget."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algorithms.release.ledger import exact_share


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0.1, TypeError, "must be exact"),
        (True, TypeError, "must be exact"),
        (None, TypeError, "must be exact"),
        ("a third", ValueError, "fraction from 0 to 1"),
        ("1/0", ValueError, "fraction from 0 to 1"),
        ("5/4", ValueError, "fraction from 0 to 1, got 5/4"),
        (-1, ValueError, "fraction from 0 to 1, got -1"),
        # Endless digits are refused at once, and told in short.
        *(
            (text, ValueError, r"^share of level 0 must be a fraction from 0 to 1, got '.{1,40}'$")
            for text in ("1e999999999", "1e-999999999", "1E-9_999", "0." + "0" * 98 + "1", "1/" + "3" * 99)
        ),
    ],
)
def test_shares_are_exact(value, error, words):
    with pytest.raises(error, match=words):
        exact_share("level 0", value)
    assert exact_share("level 0", "25e-2") == Fraction(1, 4)
