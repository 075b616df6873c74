"""A saved audit held against itself: bound and verdict, computed again from its counts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.events import Event, ThresholdRule, WeightRule, cell
from audit.methods import AnytimeGame, Counts, Divergence, Game, Method, Rectangle, Region
from audit.one_run import one_run_numbers
from audit.results import ONE_RUN, AuditResult, check_counts, verdict_of

__all__ = ["recomputed", "verify_result"]

TOLERANCE = 1e-6  # relative: other versions of scipy round otherwise


def verify_result(result: AuditResult) -> AuditResult:
    """Compute what an audit says from its counts alone, and refuse one that says otherwise.

    Parameters
    ----------
    result : AuditResult
        As saved.

    Returns
    -------
    AuditResult
        The same with numbers just computed. A witness of an unbounded loss is the exact law's and stands as it is.

    Raises
    ------
    ValueError
        If bound, ceiling, detectable loss or verdict do not follow from the counts, the counts are impossible, or what
        is needed was redacted or is not in files of its schema.
    """
    again = recomputed(result)
    pairs = {
        "measured": (result.measured.budget, again.measured.budget),
        "ceiling": (result.ceiling, again.ceiling),
        "detectable": (result.detectable, again.detectable),
    }
    for name, (said, found) in pairs.items():
        if not math.isclose(said, found, rel_tol=TOLERANCE, abs_tol=1e-9):
            raise ValueError(f"{name} must follow from the counts: {found:.9g}, got {said:.9g}")
    if again.verdict != result.verdict:
        raise ValueError(f"the verdict must follow from the counts: {again.verdict!r}, got {result.verdict!r}")
    return again


def recomputed(result: AuditResult) -> AuditResult:
    """Return a saved audit with bound, ceiling, detectable loss and verdict computed from its counts.

    Parameters
    ----------
    result : AuditResult
        As saved.

    Returns
    -------
    AuditResult
        With numbers of now.

    Raises
    ------
    ValueError
        If the counts are impossible, or what is needed was redacted or is not in files of its schema.
    """
    if result.redacted:
        raise ValueError("a redacted audit has no counts to compute its bound from: verify the original")
    check_counts(result.counts)
    _check_whole(result)
    try:
        if result.bound == ONE_RUN:
            most, sides = result.basis["most"], result.counts.values()
            guessed = sum(side["guessed_x"] + side["guessed_y"] for side in sides)
            if most not in (guessed, sum(side["runs"] for side in sides)):
                raise ValueError(f"most must be the guesses or the canaries, got {most!r}")
            numbers = one_run_numbers(result.claim, result.distance, result.counts, result.confidence, most)
        else:
            method, event = _method(result), _event(result)
            numbers = (
                method.lower(event, result.counts),
                method.ceiling(event, result.counts),
                method.detectable(event, result.counts),
            )
    except (KeyError, TypeError, AttributeError) as error:
        missing = str(error).strip("'") if isinstance(error, KeyError) else "something else"
        raise ValueError(
            f"an audit by {result.bound!r} must have {missing} in its basis or counts, which files of schema 1 lack"
        ) from None
    measured, ceiling, detectable = result.claim.at(numbers[0]), numbers[1], numbers[2]
    verdict = verdict_of(result.claim, measured, detectable, result.support is not None)
    return replace(result, measured=measured, ceiling=ceiling, detectable=detectable, verdict=verdict)


def _check_whole(result: AuditResult) -> None:
    """Refuse an audit whose parts do not belong together, whatever each of them says."""
    counts, basis = result.counts, result.basis
    runs = sum(side["runs"] for side in counts.values())
    one_run = result.bound == ONE_RUN
    if (result.size != 1) if one_run else (result.selection < 0 or result.selection + runs > result.size):
        raise ValueError(
            f"runs must be those that choose and those that count, got {result.selection} and {runs} of {result.size}"
        )
    stop = result.provenance.get("parameters", {}).get("stop")
    early = result.bound == AnytimeGame.bound or basis.get("look", 0) > 0
    if stop in ("fixed", "early") and early != (stop == "early"):
        raise ValueError(
            f"the bound must be for an audit with stop={stop!r}, got {result.bound!r}, look {basis.get('look')}"
        )
    if stop == "fixed" and result.selection + runs != result.size:
        raise ValueError(f"all {result.size} runs must choose or count, got {result.selection} and {runs}")
    if "weights" in basis:
        beyond = [
            key for side in counts.values() for key in side if key != "runs" and _bin(key) >= len(basis["weights"])
        ]
        if beyond or any(sum(side.values()) != 2 * side["runs"] for side in counts.values()):
            raise ValueError(f"every run must be in one of {len(basis['weights'])} bins, got {beyond[:3] or counts}")
    elif basis.get("regions") == 1 and min(_guessed(counts, name) for name in ("guessed_x", "guessed_y")) > 0:
        raise ValueError("the regions must be those that were named, got 1, and guesses of both databases")


def _bin(key: str) -> int:
    return int(key.removeprefix("bin ")) if key.startswith("bin ") else 0


def _guessed(counts: Counts, name: str) -> int:
    return sum(side.get(name, 0) for side in counts.values())


def _method(result: AuditResult) -> Method:
    claim, distance, confidence, basis = result.claim, result.distance, result.confidence, result.basis
    found: Method | None = None
    if isinstance(claim, PureDP | ApproxDP):
        if result.bound == Game.bound:
            found = Game(claim, distance, confidence)
        elif result.bound == AnytimeGame.bound:
            expected = basis["expected"]
            found = AnytimeGame(claim, distance, confidence, None if expected is None else (expected[0], expected[1]))
        elif result.bound == Rectangle.bound:
            found = Rectangle(claim, distance, confidence)
    elif isinstance(claim, GaussianDP) and result.bound == Region.bound:
        found = _at_look(Region(claim, distance, confidence), basis)
    elif isinstance(claim, ZCDP) and result.bound == Divergence.bound:
        found = _at_look(Divergence(claim, distance, confidence), basis)
    if found is None:
        raise ValueError(f"the bound must be one of plaudit's for a promise of {claim}, got {result.bound!r}")
    return found


def _at_look(method: Region | Divergence, basis: dict[str, Any]) -> Region | Divergence:
    return method.after(basis["look"]) if basis["look"] else method


def _event(result: AuditResult) -> Event:
    """Return an event that has of the one counted what a bound reads: how many regions there are, or the weights."""
    basis = result.basis
    if "weights" in basis:
        weights = np.array(basis["weights"], dtype=np.float64)
        edges = np.arange(weights.size - 1, dtype=np.float64)  # where the bins were is in their counts already
        return Event(cell(), WeightRule(edges, weights, basis["order"], basis["toward"]))
    both = basis["regions"] == 2 if result.bound in (Region.bound, Divergence.bound) else True
    return Event(cell(), ThresholdRule(-1.0 if both else -math.inf, 1.0))
