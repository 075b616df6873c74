"""What a replay found: the exact change of every noisy query, what it costs, and what is proved."""

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

ROUNDING = 1e-9  # of changes and losses, relative: what floats may add to a sound one


@dataclass(frozen=True, eq=False)
class Query:
    """Values that noise was added to, on both databases.

    Attributes
    ----------
    name, law : str
        What the values are, "noise by itself" for a draw without a value; the law of the noise on `x`, in words.
    l1_change, l2_change : float or None
        How much the values differ between the databases, exactly.
    declared : Sensitivity or None
        How much they may differ in one step between neighbors, as the mechanism declares.
    losses, exact : tuple of LossDistribution or None, bool
        The loss of the change, in independent parts, None if unknown; exact as a whole, or only in the maximum.
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
        """Law of the privacy loss of this query by itself, or None if it is not known."""
        return None if self.losses is None else _composed(self.losses)

    @property
    def epsilon(self) -> float | None:
        """Largest loss of this query by itself, in nats."""
        return None if self.losses is None else math.fsum(loss.maximum for loss in self.losses)

    @property
    def rho(self) -> float | None:
        """Half its Renyi divergence of order 2: for Gaussian noise, all of the rho that it spends."""
        return half_divergence(self.losses) if self.losses is not None and self.exact else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, ready for strict JSON: infinity is the string "inf"."""
        numbers = {name: getattr(self, name) for name in ("l1_change", "l2_change", "epsilon", "rho")}
        plain = {name: None if value is None else plain_number(float(value)) for name, value in numbers.items()}
        declared = None if self.declared is None else str(self.declared)
        return {"query": self.name, "draws": self.draws, "noise": self.law, "declared": declared, **plain}


@dataclass(frozen=True, eq=False)
class Replay(ReplayRecord):
    """What a pair of runs with the same answers shows: a `ReplayRecord` whose `queries` have their laws.

    If the two runs diverge, `queries` are the draws before. `known` also needs 4 runs with other answers that ask the
    same queries: as far as those runs show, the queries are then fixed beforehand.
    """

    queries: tuple[Query, ...]  # type: ignore[assignment]
    violations: tuple[Violation, ...]  # type: ignore[assignment]

    @cached_property
    def exact_loss(self) -> LossDistribution | None:
        """Law of the joint loss of all queries, the same in both orders because noise is symmetric; None if unknown.

        It does not cover what is released without noise. If answers stay inside the mechanism, it is an upper bound.
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
        """Return the record that a file keeps, with its provenance."""
        values = {one.name: getattr(self, one.name) for one in fields(ReplayRecord)} | {"provenance": provenance}
        values["queries"] = tuple(query.to_dict() for query in self.queries)
        values["violations"] = tuple({"kind": one.kind, "sentence": one.sentence} for one in self.violations)
        return ReplayRecord(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and words, ready for strict JSON: infinity is the string "inf"."""
        return self.record().to_dict()


def excess(claim: Claim, queries: Sequence[Query], names: str = "all queries") -> Violation | None:
    """Tell whether queries lose more together than is promised for the pair, each with noise of its own.

    Queries of unknown loss, or of a loss that is not exact under another promise than a pure one, count as no loss.
    Guarantee: no promise that is kept is accused, if all answers are published. For Gaussian and zero-concentrated
    privacy the Renyi divergence of order 2 is compared, which bounds what noise of that kind spends; for approximate
    privacy the hockey-stick divergence, less the spacing of a grid once for every part where one had to be used.
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
    except ValueError:  # losses that span more than floats do
        return None
