"""Shares of a budget, as exact fractions."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from fractions import Fraction
from numbers import Rational

__all__ = ["Share", "exact_share", "exact_shares"]

Share = Fraction | int | str
"""An exact share: a fraction, a whole number, or text such as ``"104/4099"``."""
LONGEST, LARGEST_EXPONENT = 100, 300  # of a share as text: "1e999999999" has a billion digits


def exact_share(where: str, value: Share) -> Fraction:
    """Return a share as a fraction."""
    if isinstance(value, bool) or not isinstance(value, Rational | str):
        raise TypeError(f'share of {where} must be exact, a Fraction or text such as "1/3", got {value!r}')
    try:
        if isinstance(value, str):
            exponent = value.lower().partition("e")[2]
            if len(value) > LONGEST or abs(int(exponent or 0)) > LARGEST_EXPONENT:
                raise ValueError("too long")
        share = Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"share of {where} must be a fraction from 0 to 1, got {reprlib.repr(value)}") from None
    if not 0 <= share <= 1:
        raise ValueError(f"share of {where} must be a fraction from 0 to 1, got {value}")
    return share


def exact_shares(what: str, shares: Mapping[str, Share], where: str = "") -> dict[str, Fraction]:
    """Return shares of a whole as fractions, or refuse those that do not add up to 1."""
    exact = {name: exact_share(f"{name}{where}", share) for name, share in shares.items()}
    if (total := sum(exact.values(), Fraction())) != 1:
        off = f"{abs(total - 1)} too {'much' if total > 1 else 'little'}"
        raise ValueError(f"shares of {what}{where} must add up to 1, got {total}: {off}")
    return exact
