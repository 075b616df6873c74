"""Exact shares of a budget."""

from __future__ import annotations

import pytest

from algorithms.tables.shares import exact_share


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
    ],
)
def test_shares_are_exact(value, error, words):
    with pytest.raises(error, match=words):
        exact_share("level 0", value)
