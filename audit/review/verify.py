"""Recompute the bound and the verdict of a saved audit from its counts; a difference is an error."""

from __future__ import annotations

import math
from dataclasses import replace

from audit.measure.evaluation import detectable_loss, rare_runs
from audit.methods.betting import Bets
from audit.methods.method import Method, method_named
from audit.results import AuditResult, check_counts, verdict_of
from audit.results.provenance import provenance

__all__ = ["recomputed", "verify_result"]

EARLIER = "looks at the runs otherwise than this one: make the audit again"
TOLERANCE = 1e-6  # relative: versions of scipy round differently


def verify_result(result: AuditResult) -> AuditResult:
    """Recompute an audit from its counts; raise an error if numbers differ. The exact law's witness is not checked."""
    again = recomputed(result)
    pairs = {
        "measured": (result.measured.budget, again.measured.budget),
        "ceiling": (result.ceiling, again.ceiling),
        "detectable": (result.detectable, again.detectable),
        "rare": (result.rare, again.rare),
    }
    for name, (saved, computed) in pairs.items():
        if not math.isclose(saved, computed, rel_tol=TOLERANCE, abs_tol=1e-9):
            got = f"{computed:.9g}, got {saved:.9g}{_writer(result)}"
            raise ValueError(f"{name} must follow from the counts: {got}")
    if again.verdict != result.verdict:
        got = f"{again.verdict!r}, got {result.verdict!r}{_writer(result)}"
        raise ValueError(f"the verdict must follow from the counts: {got}")
    return again


def _writer(result: AuditResult) -> str:
    software, ours = result.provenance.get("software"), provenance()["software"]["plaudit"]
    theirs = software.get("plaudit", ours) if isinstance(software, dict) else ours
    if theirs == ours and result.attack:
        return ""
    lacks = "" if result.attack else ", which did not save the attack"
    which = "an earlier version" if theirs == ours else f"version {theirs}"
    return f"; {which} of plaudit wrote the file{lacks}, and may compute otherwise than {ours}: make the audit again"


def recomputed(result: AuditResult) -> AuditResult:
    """Return a saved audit with its numbers recomputed; missing counts or fields of the basis are an error."""
    if result.redacted:
        raise ValueError("a redacted audit has no counts to compute its bound from: verify the original")
    check_counts(result.counts)
    family = method_named(result.bound, result.claim)
    if result.basis.get("look") or "expected" in result.basis:
        raise ValueError(f"an earlier version stopped this audit early, by {result.bound!r}, which {EARLIER}")
    if family is None:
        raise ValueError(f"no method for a promise of {result.claim} is called {result.bound!r}")
    method = family(result.claim, result.distance, result.confidence)
    _check_runs(result, method)
    events = [(result.counts, result.basis), *((other["counts"], other["basis"]) for other in result.others)]
    shares = [basis.get("share", 1.0) for _, basis in events]
    if min(shares) <= 0 or sum(shares) > 1 + TOLERANCE:
        raise ValueError(f"events must have shares of one error probability, got {', '.join(map(str, shares))}")
    try:
        for event in events:
            method.check(*event)
        measured = result.claim.at(max(method.lower(*event) for event in events))
        ceiling = max(method.ceiling(*event) for event in events)
        (detectable, _), rare = detectable_loss(method, events, result.selection), rare_runs(method, events)
        named = [detectable_loss(method, [one], result.selection)[0] for one in events if one[1].get("detects")]
    except (LookupError, TypeError, AttributeError) as error:
        missing = str(error).strip("'") if isinstance(error, KeyError) else "something else"
        raise ValueError(
            f"an audit by {result.bound!r} must have {missing} in its basis or counts, which files of earlier versions "
            "lack: make the audit again"
        ) from None
    if named not in ([], [detectable]):  # `named` has two entries if two events detect
        raise ValueError(
            f"the minimum detectable loss must be that of the event that is named, {named}, got {detectable}"
        )
    verdict = verdict_of(result.claim, measured, detectable, result.support is not None)
    return replace(result, measured=measured, ceiling=ceiling, detectable=detectable, rare=rare, verdict=verdict)


def _check_runs(result: AuditResult, method: Method) -> None:
    runs = sum(side["runs"] for side in result.counts.values())
    one_run = result.design == "one_run"
    if (result.size != 1) if one_run else (result.selection < 0 or result.selection + runs > result.size):
        raise ValueError(
            f"runs must be those that choose and those that count, got {result.selection} and {runs} of {result.size}"
        )
    stop = result.parameters.get("stop")
    if stop in ("fixed", "early") and isinstance(method, Bets) != (stop == "early"):
        raise ValueError(f"the bound must be for an audit with stop={stop!r}, got {result.bound!r}")
    others = result.parameters.get("probe_runs", result.selection)  # if none chose the event, some look at outputs
    if stop == "fixed" and others != result.size - runs:
        raise ValueError(f"all {result.size} runs must choose or count, got {others} and {runs}")
