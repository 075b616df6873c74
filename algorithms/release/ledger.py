"""Budget of a release in exact shares, and its promise in the conversions to epsilon that the field uses."""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

from algorithms.release.frames import Frame
from audit.claims import ZCDP, GaussianDP, PureDP

__all__ = ["Promises", "Share", "conversions", "exact_share", "exact_shares"]

Share = Fraction | int | str
"""An exact share: a fraction, a whole number, or text such as ``"104/4099"``."""
LONGEST, LARGEST_EXPONENT = 100, 300  # limits of a share as text: "1e999999999" has a billion digits


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
    """Return shares as fractions; refuse shares that do not add up to 1."""
    exact = {name: exact_share(f"{name}{where}", share) for name, share in shares.items()}
    if (total := sum(exact.values(), Fraction())) != 1:
        off = f"{abs(total - 1)} too {'much' if total > 1 else 'little'}"
        raise ValueError(f"shares of {what}{where} must add up to 1, got {total}: {off}")
    return exact


def conversions(claim: PureDP | ZCDP, delta: float) -> dict[str, float]:
    """Return the epsilons (nats) at a delta by the field's conversions of a promise; for `PureDP` only the tight one.

    ``tight``: Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, corollary 13.
    ``simple``: Bun and Steinke, "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds",
    2016, proposition 1.3. ``Gaussian``: Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy",
    2018, theorem 8.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must be between 0 and 1, got {delta}")
    if not isinstance(claim, PureDP | ZCDP):
        raise TypeError(f"claim must be PureDP or ZCDP, got {type(claim).__name__}")
    tight = {"tight": claim.epsilon_at(delta)}
    if isinstance(claim, PureDP):
        return tight
    simple = claim.rho + 2 * math.sqrt(claim.rho * -math.log(delta))
    return {"simple": simple, **tight, "Gaussian": GaussianDP(math.sqrt(2 * claim.rho)).epsilon_at(delta)}


@dataclass(frozen=True, kw_only=True)
class Promises(ABC):
    """Budget and promise of a run under two neighbor relations, and their epsilon at `delta`."""

    delta: float = 1e-10

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must be between 0 and 1, got {self.delta}")

    @property
    @abstractmethod
    def claims(self) -> Mapping[str, PureDP | ZCDP]:
        """The promises, by neighbor relation."""

    @property
    def epsilons(self) -> Frame:
        """Epsilon in nats at delta, one row for each of `conversions`: ``CONVERSION``, and a column for each claim."""
        ways = {name: conversions(claim, self.delta) for name, claim in self.claims.items()}
        columns = {name.upper(): list(epsilons.values()) for name, epsilons in ways.items()}
        return Frame({"CONVERSION": list(next(iter(ways.values()))), **columns})

    def lines(self, title: str, spent: Iterable[tuple[str, float, float]]) -> list[str]:
        """Return the lines of a table with a title: the budget spent under both relations, and epsilon."""
        rows = [f"{title:<28}" + "".join(f" {name:>12}" for name in self.claims)]
        rows += [f"{name:<28} {one:12.6f} {other:12.6f}" for name, one, other in spent]
        for way, one, other in self.epsilons.rows():
            name = f"epsilon at {self.delta:g}, {way}"
            rows.append(f"{name:<28} {one:12.3f} {other:12.3f}")
        return rows
