"""The budget of every query of a TopDown release, and its promise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from algorithms.noise import DiscreteGaussian
from algorithms.release.frames import Frame
from algorithms.release.ledger import Promises
from algorithms.topdown.budget import Claim
from algorithms.topdown.plan import Plan
from audit.claims import PureDP

__all__ = ["Ledger", "noise_table"]

COLUMNS = ("LEVEL", "QUERY", "AREAS", "SHARE", "BUDGET", "SCALE", "VARIANCE")


def noise_table(plan: Plan) -> Frame:
    """Tabulate the noise of all measurements: a row for each level and query, and each distinct share of its areas.

    Columns: ``LEVEL`` (0 is the root), ``QUERY``, ``AREAS`` (their number), ``SHARE`` of the whole budget that a query
    spends in an area (text, an exact fraction), ``BUDGET`` (rho, or epsilon in nats, under the promise's relation),
    ``SCALE`` (sigma, in people, for discrete Gaussian noise; epsilon for two-sided geometric noise) and ``VARIANCE``
    (squared people).
    """
    rows = list(_rows(plan))
    return Frame({name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)})


def _rows(plan: Plan) -> Iterator[tuple[int, str, int, str, float, float, float]]:
    budget = Fraction(plan.budget.promise.budget)
    for level in range(plan.tree.depth + 1):
        first = plan.tree.level(level).start
        for name, part in plan.budget.measured(level):
            for areas, law in plan.laws(level, name):
                share = plan.shares[first + areas[0]] * part
                scale = law.scale if isinstance(law, DiscreteGaussian) else law.epsilon
                yield level, name, areas.size, str(share), float(budget * share), scale, law.variance


@dataclass(frozen=True, eq=False)
class Ledger(Promises):
    """The promise of a release: the noise of every query, the total under both relations, and epsilon at a delta.

    Guarantee: shares are added up exactly, along every path from the root to a leaf; the promise is relative to the
    invariants. An invariant partitions all people, so an added or removed person changes one of its answers: with
    invariants, only the promise about a replaced record covers anybody. The other one is the loss of the noise alone.
    """

    plan: Plan
    listed: bool = True  # whether the areas are from a public list, not read from the data
    settings: str = ""  # one sentence: the published settings of the run, and differences from them

    @property
    def noise(self) -> Frame:
        """The noise of all measurements: see `noise_table`."""
        return noise_table(self.plan)

    @property
    def replaced(self) -> Claim:
        """The promise when one person's record is replaced (bounded neighbors)."""
        return self.plan.budget.under("replace_one")

    @property
    def added(self) -> Claim:
        """The promise of the noise when one person is added or removed (unbounded neighbors): half the budget."""
        return self.plan.budget.under("add_remove")

    @property
    def claims(self) -> dict[str, Claim]:
        """Both promises by neighbor relation."""
        return {"replaced": self.replaced, "added": self.added}

    @property
    def relative_to(self) -> str:
        """One sentence on exactly published or publicly known answers, which the promise does not cover."""
        exact = "; ".join(str(invariant).removesuffix(" (invariant)") for invariant in self.plan.invariants)
        known = "; ".join(str(bounds) for bounds in self.plan.bounds)
        text = "The promise is relative to no invariant: no answer is published exactly"
        if exact:
            text = (
                f"The promise is relative to the invariants, which are published exactly ({exact}): it covers a record "
                "that is replaced by one that leaves them as they are, and none added or removed, which changes them"
            )
        areas = "" if self.listed else "; which areas there are was read from the data, and is taken as public"
        return f"{text}{f'; bounds taken as public: {known}' * bool(known)}{areas}."

    def __str__(self) -> str:
        parameter = self.replaced.parameter
        scale = "noise epsilon" if isinstance(self.replaced, PureDP) else "sigma"
        words = [("level", "query", "areas", f"{parameter} spent", scale, "deviation")]
        for level, query, areas, _, budget, value, variance in self.noise.rows():
            words.append((str(level), query, f"{areas:,}", f"{budget:.6f}", f"{value:.4g}", f"{variance**0.5:.4g}"))
        wide = max(len(row[1]) for row in words)
        lines = [
            f"{level:<6} {query:<{wide}} {areas:>9} {budget:>13} {value:>13} {deviation:>10}"
            for level, query, areas, budget, value, deviation in words
        ]
        lines += ["", *self.lines("one record", [(parameter, self.replaced.budget, self.added.budget)])]
        fitted = "Deviations are of the measurements. Tables are fitted to them: rare groups are too large."
        return "\n".join([*lines, "", fitted, self.relative_to, *filter(None, [self.settings])])
