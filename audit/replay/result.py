"""Result of a replay: the exact change of every noisy query, its loss, and proved violations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from audit.claims import Claim
from audit.claims.profiles import half_divergence
from audit.exact import LossDistribution, compose_losses
from audit.replay.recording import Sensitivity
from audit.replay.violations import Violation
from audit.results import ReplayRecord, plain_number

__all__ = ["ROUNDING", "Query", "Replay", "excess"]

ROUNDING = 1e-9  # relative tolerance of changes and losses, for rounding of floats


@dataclass(frozen=True, eq=False)
class Query:
    """Values to which noise was added, on both databases.

    Attributes
    ----------
    name, law : str
        Name of the values, or "noise by itself" for noise without a value; description of the law of the noise on `x`.
    l1_change, l2_change : float or None
        Exact difference of the values between the databases.
    declared : Sensitivity or None
        Largest change by one step between neighbors, as the mechanism declares.
    losses, exact : tuple of LossDistribution or None, bool
        Losses of independent parts of the change, None if unknown; whether all of them is exact, or the maximum only.
    """

    name: str
    shape: tuple[int, ...]
    law: str
    l1_change: float | None
    l2_change: float | None
    declared: Sensitivity | None
    losses: tuple[LossDistribution, ...] | None
    exact: bool

    @property
    def draws(self) -> int:
        """Number of values drawn."""
        return math.prod(self.shape)

    @cached_property
    def exact_loss(self) -> LossDistribution | None:
        """Law of the privacy loss of this query alone, or None if unknown."""
        return None if self.losses is None else _composed(self.losses)

    @property
    def epsilon(self) -> float | None:
        """Largest loss of this query alone, in nats."""
        return None if self.losses is None else math.fsum(loss.maximum for loss in self.losses)

    @property
    def rho(self) -> float | None:
        """Half of its Renyi divergence of order 2; for Gaussian noise, its rho."""
        return half_divergence(self.losses) if self.losses is not None and self.exact else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings for strict JSON; infinity becomes the string "inf"."""
        numbers = {name: getattr(self, name) for name in ("l1_change", "l2_change", "epsilon", "rho")}
        plain = {name: None if value is None else plain_number(float(value)) for name, value in numbers.items()}
        declared = None if self.declared is None else str(self.declared)
        return {"query": self.name, "draws": self.draws, "noise": self.law, "declared": declared, **plain}


@dataclass(frozen=True, eq=False)
class Replay(ReplayRecord):
    """The result of pairs of runs with the same answers: a `ReplayRecord` whose `queries` have their laws.

    If the two runs diverge, `queries` has only the draws before. `known` also requires that 4 runs with other answers
    make the same queries, as evidence that the queries do not depend on answers.
    """

    queries: tuple[Query, ...]  # type: ignore[assignment]
    violations: tuple[Violation, ...]  # type: ignore[assignment]

    @cached_property
    def exact_loss(self) -> LossDistribution | None:
        """Law of the joint loss of all queries, or None if unknown; the same in both orders, as noise is symmetric.

        It does not include values released without noise. If answers are not released, it is an upper bound.
        """
        parts = [query.losses for query in self.queries]
        if not self.known or None in parts:
            return None
        return _composed([loss for part in parts for loss in part or ()])

    def __str__(self) -> str:
        return str(self.record())

    def _repr_html_(self) -> str:
        return self.record()._repr_html_()

    def record(self, **provenance: Any) -> ReplayRecord:
        """Return the record for a file, with its provenance."""
        values = {one.name: getattr(self, one.name) for one in fields(ReplayRecord)} | {"provenance": provenance}
        values["queries"] = tuple(query.to_dict() for query in self.queries)
        values["violations"] = tuple({"kind": one.kind, "sentence": one.sentence} for one in self.violations)
        return ReplayRecord(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and strings for strict JSON; infinity becomes the string "inf"."""
        return self.record().to_dict()


def excess(claim: Claim, queries: Sequence[Query], names: str = "all queries") -> Violation | None:
    """Return a violation if the joint loss of queries with independent noise exceeds the promise for the pair.

    Queries whose loss is unknown count as no loss. So do queries whose loss is not exact, unless the promise is pure.
    Guarantee: if all answers are published, a promise that holds is never reported. For Gaussian and zero-concentrated
    privacy, the Renyi divergences of order 2 are compared, a lower bound on the budget spent. For approximate privacy,
    the hockey-stick divergences are compared, less one grid spacing for each part that is computed on a grid.
    """
    known = [query for query in queries if query.losses is not None]
    parts = [loss for query in known if query.exact for loss in query.losses or ()]
    losses = claim.excess(math.fsum(query.epsilon or 0.0 for query in known), parts)
    if losses is None:
        return None
    return Violation("loss", f"{names} together lose {losses[0]} on this pair, and {losses[1]} is promised")


def _composed(parts: Sequence[LossDistribution]) -> LossDistribution | None:
    try:
        return compose_losses(parts)
    except ValueError:  # the range of losses exceeds that of floats
        return None
