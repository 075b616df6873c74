"""Compare two sets of saved audits: which got worse, which lost power, and which differ despite the same seed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from audit.results import AuditResult
from audit.results.formatting import row
from audit.review.verify import TOLERANCE

__all__ = ["Change", "Counted", "compare_results", "totals"]

Kind = Literal["regressions", "weaknesses", "notes"]
# "identical" and "changed": same seed and settings. "bounds only": other runs, whose bounds also differ by chance.
Counted = Literal["identical", "changed", "bounds only", "missing", "new"]

ASIDE: dict[Counted, str] = {
    "changed": "the same seed gave other runs: parameters, code, software or platform are not what they were",
    "bounds only": "these are other runs: only the bounds stand side by side",
}
DETECTED = "the known bug is detected now: its test expects the violation"
POWER_LOST = 1.1  # growth of the minimum detectable loss, relative to the promise
ANSWER = ("event", "bound", "selection", "counts", "basis")
SETTINGS = ("seed_entropy", "claim", "pair", "relation", "unit", "distance", "confidence", "size")


@dataclass(frozen=True, eq=False)
class Change:
    """The change of one audit; old is None if it is new, new is None if it is missing."""

    name: str
    old: AuditResult | None
    new: AuditResult | None
    counts: Counted
    regressions: tuple[str, ...] = ()  # changes for the worse
    weaknesses: tuple[str, ...] = ()  # losses of power
    notes: tuple[str, ...] = ()  # other changes, with old and new values


def totals(changes: Sequence[Change]) -> dict[str, bool | int]:
    """Return whether any audit is confidential, got worse or lost power, and the numbers of audits compared."""
    return {
        "confidential": any(one is not None and one.confidential for c in changes for one in (c.old, c.new)),
        "compared": sum(change.old is not None and change.new is not None for change in changes),
        "repeated": sum(change.counts in ("identical", "changed") for change in changes),  # same seed and settings
        "regressed": any(change.regressions for change in changes),
        "weakened": any(change.weaknesses for change in changes),
    }


def compare_results(
    old: Sequence[tuple[str, AuditResult]], new: Sequence[tuple[str, AuditResult]], *, known_bugs: Collection[str] = ()
) -> tuple[Change, ...]:
    """Compare audits by name, in the order of names; each set must have each name once."""
    # With the same seed and settings the runs are the same, so a difference comes from parameters, code, software or
    # platform. It is a note. So is a difference between bounds of other runs, which may be due to chance.
    before, after = dict(old), dict(new)
    for audits, named in ((old, before), (new, after)):
        if len(named) < len(audits):
            raise ValueError(f"names must differ, got {len(audits)} audits with {len(named)} names")
    names = sorted(before.keys() | after.keys())
    return tuple(_change(name, before.get(name), after.get(name), name in known_bugs) for name in names)


def _change(name: str, old: AuditResult | None, new: AuditResult | None, known_bug: bool) -> Change:
    if new is None:
        return Change(name, old, None, "missing", regressions=("the audit is gone",))
    if old is None:
        violated = ("a new audit, and its promise is violated",) if new.verdict == "violated" and not known_bug else ()
        powerless = ("a new audit, and it has no power",) if new.verdict == "no power" else ()
        expected = (DETECTED,) if new.verdict == "violated" and known_bug else ()
        return Change(name, None, new, "new", regressions=violated, weaknesses=powerless, notes=expected)
    differences: dict[Kind, list[str]] = {"regressions": [], "weaknesses": [], "notes": []}
    for kind, sentence in _differences(old, new, known_bug):
        differences[kind].append(sentence)
    if (counts := _counted(old, new)) in ASIDE:
        differences["notes"].append(ASIDE[counts])
    return Change(name, old, new, counts, **{kind: tuple(sentences) for kind, sentences in differences.items()})


def _counted(old: AuditResult, new: AuditResult) -> Counted:
    """Compare the runs of two audits; they have the same seed if all settings agree, except the mechanism's."""
    settings = [
        [*(getattr(one, name) for name in SETTINGS), {**one.parameters, "mechanism": None}] for one in (old, new)
    ]
    if settings[0] != settings[1] or old.seed_entropy is None:
        return "bounds only"
    if all(getattr(old, name) == getattr(new, name) for name in ANSWER) and math.isclose(
        old.measured.budget, new.measured.budget, rel_tol=TOLERANCE
    ):
        return "identical"
    # The seed determines neither outputs of another program nor noise from the operating system.
    return "changed" if new.design != "outputs" and new.parameters.get("seedable") is not False else "bounds only"


def _differences(old: AuditResult, new: AuditResult, known_bug: bool) -> Iterator[tuple[Kind, str]]:
    """Yield each difference with its kind: regression, loss of power, or note."""
    before, after = row(old.summary()), row(new.summary())
    if new.verdict != old.verdict:
        witness = f"; {after['witness']}" if after["witness"] else ""
        bounds = f"lower bound {after['measured']} of a promised {after['promised']}, was {before['measured']}"
        if new.verdict == "violated":
            violated = f"the verdict became violated: {bounds}, {old.verdict}{witness}"
            yield ("notes", DETECTED) if known_bug else ("regressions", violated)
        elif new.verdict == "no power":
            yield "weaknesses", f"no power: not even twice the promise can be detected ({old.verdict} -> no power)"
    promises = f"{before['promised']} ({old.claim.relation}) -> {after['promised']} ({new.claim.relation})"
    weaker = new.claim.weaker_than(old.claim)
    if weaker is None:
        yield "regressions", f"the promise is of another kind, and may be weaker: {promises}"
    elif weaker:
        yield "regressions", f"the promise got weaker: {promises}"
    elif new.claim != old.claim:
        yield "notes", f"the promise got stronger: {before['promised']} -> {after['promised']}"
    if old.unit != new.unit:
        yield "regressions", f"the promise is for another unit, and may be weaker: one {old.unit} -> one {new.unit}"
    if type(old.claim) is type(new.claim) and _reach(new) > POWER_LOST * _reach(old):
        losses = " -> ".join(f"{cells['detectable']} ({cells['promised']})" for cells in (before, after))
        yield "weaknesses", f"the minimum detectable loss grew, relative to the promise: {losses}"
    if new.verdict == "not refuted" != old.verdict:
        yield "notes", f"the verdict became not refuted, was {old.verdict}"
    for title in ("mechanism", "confidence", "pair", "witness"):
        if before[title] != after[title]:
            yield "notes", f"{title}: {before[title] or 'none'} -> {after[title] or 'none'}"
    if old.distance != new.distance:
        yield "notes", f"steps between the databases: {old.distance} -> {new.distance}"
    if old.adjacency != new.adjacency:
        was, change = "the distance of the databases", f"{old.adjacency} -> {new.adjacency}"
        declared = f"{was} was verified, and is now declared: {change}"
        yield (
            ("notes", f"{was} is now verified: {change}") if old.adjacency == "declared" else ("regressions", declared)
        )
    if old.confidential != new.confidential:
        yield "notes", f"the databases are {'now confidential' if new.confidential else 'confidential no longer'}"


def _reach(result: AuditResult) -> float:
    return result.detectable / result.claim.budget if result.claim.budget > 0 else math.inf
