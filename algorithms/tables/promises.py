"""The total promise of a system on its sheet of the explorer: under two relations, and as epsilon at a delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from algorithms.tables.accountant import conversions
from audit.claims import ZCDP, PureDP
from audit.explorer.sheet import Result, Total

__all__ = ["promised", "totals"]

WAYS = ("epsilon_tight", "epsilon_simple", "epsilon_gaussian")
NUMBERS = ("rho", "epsilon", *WAYS)


def promised(system: str, claims: Mapping[str, PureDP | ZCDP], delta: float) -> dict[str, Result]:
    """Return every number of `totals`: of each claim, by the prefix of its keys, the budget, and epsilon at delta."""
    results: dict[str, Result] = {}
    for prefix, claim in claims.items():
        numbers = {claim.parameter: claim.budget}
        numbers |= {f"epsilon_{way.lower()}": epsilon for way, epsilon in conversions(claim, delta).items()}
        results |= {f"{system}/total/all/{prefix}{name}": numbers.get(name) for name in NUMBERS}
    return results


def totals(system: str, prefixes: Sequence[str]) -> tuple[Total, ...]:
    """Return what a sheet shows of its promises; the simple and the Gaussian conversion are beside the tight one."""
    return tuple(
        Total(
            key=f"{system}/total/all/{prefix}{name}",
            label=f"{system}.total.{prefix}{name}",
            shown="epsilon" if name in WAYS else "budget",
            main=name not in WAYS[1:],
        )
        for name in NUMBERS
        for prefix in prefixes
    )
