"""Compare two sets of saved audits: which got worse, which lost power, and which changed from the same seed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from audit.results import AuditResult
from audit.results.formatting import row
from audit.review.verify import TOLERANCE

__all__ = ["Change", "Comparison", "Counted", "compare_results"]

Row = dict[str, str]  # an audit as readers see it

# Identical and changed: runs of the same seed and settings. Bounds only: other runs, whose bounds differ by chance too.
Counted = Literal["identical", "changed", "bounds only", "missing", "new"]

DETECTED = "the known bug is detected now: its test expects the violation"
POWER_LOST = 1.1  # times the minimum detectable loss of before, relative to the promise
SETTINGS = ("seed_entropy", "claim", "pair", "relation", "unit", "distance", "confidence", "size")


@dataclass(frozen=True, eq=False)
class Change:
    """What became of one audit; old or new is None if there is none."""

    name: str
    old: AuditResult | None
    new: AuditResult | None
    counts: Counted
    regressions: tuple[str, ...] = ()  # what got worse
    weaknesses: tuple[str, ...] = ()  # where power was lost
    notes: tuple[str, ...] = ()  # what else is other than before; each with old and new values


@dataclass(frozen=True, eq=False)
class Comparison:
    """What became of all audits, in the order of their names."""

    changes: tuple[Change, ...]

    @property
    def compared(self) -> int:
        """Number of audits that are there both before and after."""
        return sum(change.old is not None and change.new is not None for change in self.changes)

    @property
    def repeated(self) -> int:
        """Number of those audits with the same seed and settings."""
        return sum(change.counts in ("identical", "changed") for change in self.changes)

    @property
    def regressed(self) -> bool:
        """Whether anything got worse."""
        return any(change.regressions for change in self.changes)

    @property
    def weakened(self) -> bool:
        """Whether any audit has less power than before, or none."""
        return any(change.weaknesses for change in self.changes)

    @property
    def confidential(self) -> bool:
        """Whether any of the databases are confidential."""
        return any(one is not None and one.confidential for change in self.changes for one in (change.old, change.new))


def compare_results(
    old: Sequence[tuple[str, AuditResult]], new: Sequence[tuple[str, AuditResult]], *, known_bugs: Collection[str] = ()
) -> Comparison:
    """Compare audits by name; each set must have each name once.

    The same seed and settings give the same runs, so any difference between them comes from parameters, code, software
    or platform. That is a note: other runs have a smaller or larger bound by chance, too.

    An audit is worse if its verdict became "violated" or it is new and violated, it is gone, its promise got weaker or
    cannot be compared, or its adjacency is no longer computed. It has less power if its verdict is newly "no power", or
    its minimum detectable loss is more than 10% larger than before, relative to the promise. It is not worse if a known
    bug is newly detected.
    """
    before, after = _named(old), _named(new)
    names = sorted(before.keys() | after.keys())
    return Comparison(tuple(_change(name, before.get(name), after.get(name), name in known_bugs) for name in names))


def _named(results: Sequence[tuple[str, AuditResult]]) -> dict[str, AuditResult]:
    named = dict(results)
    if len(named) < len(results):
        raise ValueError(f"names must differ, got {len(results)} audits with {len(named)} names")
    return named


def _change(name: str, old: AuditResult | None, new: AuditResult | None, known_bug: bool) -> Change:
    if new is None:
        return Change(name, old, None, "missing", regressions=("the audit is gone",))
    if old is None:
        violated = ("a new audit, and its promise is violated",) if new.verdict == "violated" and not known_bug else ()
        powerless = ("a new audit, and it has no power",) if new.verdict == "no power" else ()
        expected = (DETECTED,) if new.verdict == "violated" and known_bug else ()
        return Change(name, None, new, "new", regressions=violated, weaknesses=powerless, notes=expected)
    rows = row(old.summary()), row(new.summary())
    notes, regressions = list(_notes(old, new, *rows)), list(_regressions(old, new, *rows))
    newly_violated = new.verdict == "violated" and old.verdict != "violated"
    worse = notes if newly_violated and known_bug else regressions
    if newly_violated:
        worse.insert(0, DETECTED if known_bug else _violated(old, *rows))
    counts: Counted = "bounds only"
    if _same_settings(old, new) and _same_answer(old, new):
        counts = "identical"
    elif _same_settings(old, new) and _from_seed(new):
        counts = "changed"
        notes.append("the same seed gave other runs: parameters, code, software or platform are not what they were")
    else:
        notes.append("these are other runs: only the bounds stand side by side")
    weaknesses = tuple(_weaknesses(old, new, *rows))
    return Change(name, old, new, counts, tuple(regressions), weaknesses, tuple(notes))


def _same_settings(old: AuditResult, new: AuditResult) -> bool:
    """Tell whether two audits have the same seed, and the same settings but for parameters of the mechanism."""
    parameters = [{**one.parameters, "mechanism": None} for one in (old, new)]
    same = parameters[0] == parameters[1] and all(getattr(old, one) == getattr(new, one) for one in SETTINGS)
    return same and old.seed_entropy is not None


def _from_seed(result: AuditResult) -> bool:
    """Tell whether the seed decides the runs: not of outputs from elsewhere, nor of noise from the operating system."""
    return result.design != "outputs" and result.parameters.get("seedable") is not False


def _same_answer(old: AuditResult, new: AuditResult) -> bool:
    """Tell whether the same event has the same counts, by the same theorem, and so the same bound."""
    fields = ("event", "bound", "selection", "counts", "basis")
    same = all(getattr(old, field) == getattr(new, field) for field in fields)
    return same and math.isclose(old.measured.budget, new.measured.budget, rel_tol=TOLERANCE)


def _violated(old: AuditResult, before: Row, after: Row) -> str:
    promise, witness = after["promised"], f"; {after['witness']}" if after["witness"] else ""
    was = f"{before['measured']}, {old.verdict}"
    return f"the verdict became violated: lower bound {after['measured']} of a promised {promise}, was {was}{witness}"


def _regressions(old: AuditResult, new: AuditResult, before: Row, after: Row) -> Iterator[str]:
    promises = f"{before['promised']} ({old.claim.relation}) -> {after['promised']} ({new.claim.relation})"
    order = new.claim.weaker_than(old.claim)
    if order is None:
        yield f"the promise is of another kind, and may be weaker: {promises}"
    elif order:
        yield f"the promise got weaker: {promises}"
    if old.unit != new.unit:
        yield f"the promise is for another unit, and may be weaker: one {old.unit} -> one {new.unit}"
    if (old.adjacency, new.adjacency) == ("verified", "declared"):
        yield "the distance of the databases was verified, and is now declared: verified -> declared"


def _weaknesses(old: AuditResult, new: AuditResult, before: Row, after: Row) -> Iterator[str]:
    if new.verdict == "no power" != old.verdict:
        yield f"no power: not even twice the promise can be detected ({old.verdict} -> no power)"
    if type(old.claim) is type(new.claim) and _reach(new) > POWER_LOST * _reach(old):
        losses = " -> ".join(f"{cells['detectable']} ({cells['promised']})" for cells in (before, after))
        yield f"the minimum detectable loss grew, relative to the promise: {losses}"


def _reach(result: AuditResult) -> float:
    return result.detectable / result.claim.budget if result.claim.budget > 0 else math.inf


def _notes(old: AuditResult, new: AuditResult, before: Row, after: Row) -> Iterator[str]:
    if new.claim != old.claim and new.claim.weaker_than(old.claim) is False:
        yield f"the promise got stronger: {before['promised']} -> {after['promised']}"
    if new.verdict != old.verdict and new.verdict == "not refuted":
        yield f"the verdict became not refuted, was {old.verdict}"
    for title in ("mechanism", "confidence", "pair", "witness"):
        if before[title] != after[title]:
            yield f"{title}: {before[title] or 'none'} -> {after[title] or 'none'}"
    if old.distance != new.distance:
        yield f"steps between the databases: {old.distance} -> {new.distance}"
    if (old.adjacency, new.adjacency) == ("declared", "verified"):
        yield "the distance of the databases is now verified: declared -> verified"
    if old.confidential != new.confidential:
        yield "the databases are now confidential" if new.confidential else "the databases are confidential no longer"
