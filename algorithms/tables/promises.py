"""The total promise of a system on its sheet of the explorer: under two relations, as a risk, as epsilon at a delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from algorithms.tables.accountant import conversions
from audit.claims import ZCDP, PureDP
from audit.explorer.sheet import Result, Shown, Total

__all__ = ["promised", "totals"]

SHOWN: dict[str, Shown] = {"rho": "budget", "epsilon": "budget", "guessed": "guess", "epsilon_tight": "epsilon"}
ASIDE: dict[str, Shown] = {"epsilon_simple": "epsilon", "epsilon_gaussian": "epsilon"}
NUMBERS = SHOWN | ASIDE


def promised(system: str, claims: Mapping[str, PureDP | ZCDP], delta: float) -> dict[str, Result]:
    """Return every number of `totals`: of each claim, by the prefix of its keys, budget, risk, and epsilon at delta."""
    results: dict[str, Result] = {}
    for prefix, claim in claims.items():
        numbers = {claim.parameter: claim.budget, "guessed": claim.guessed_right}
        numbers |= {f"epsilon_{way.lower()}": epsilon for way, epsilon in conversions(claim, delta).items()}
        results |= {f"{system}/total/all/{prefix}{name}": numbers.get(name) for name in NUMBERS}
    return results


def totals(system: str, prefixes: Sequence[str]) -> tuple[Total, ...]:
    """Return what a sheet shows of its promises; the simple and the Gaussian conversion are beside the tight one."""
    return tuple(
        Total(
            key=f"{system}/total/all/{prefix}{name}",
            label=f"{system}.total.{prefix}{name}",
            shown=shown,
            main=name in SHOWN if prefix == prefixes[0] else name == "guessed",
        )
        for prefix in prefixes
        for name, shown in NUMBERS.items()
    )
