"""From a question to a result: what may be asked, what an event counts, and the verdict that the counts give."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from audit.attacks import Attack
from audit.bounds.limits import check_confidence
from audit.claims import Claim, Relation
from audit.claims.families import FAMILIES
from audit.events import Event, Statistic
from audit.mechanism import Mechanism
from audit.methods.method import Basis, Counts, Floats, Method, guesses, method_for
from audit.neighbors import Adjacency, NeighborPair, Unit
from audit.results import AuditResult, verdict_of
from audit.values import LARGEST

__all__ = [
    "UNSEEN",
    "Audited",
    "add_counts",
    "check_question",
    "count_event",
    "detectable_loss",
    "evaluate",
    "expected_guesses",
    "impossible",
    "support_witness",
]

UNSEEN = 0.9  # share of counted runs unlike all that selection saw, above which they have no power
ROUNDING = 1e-9  # relative error that the masses of an exact law may have


@dataclass(frozen=True)
class Audited:
    """What a result says about its audit besides promise, counts and bound; the names are those of `AuditResult`."""

    mechanism: str
    event: str
    searched: str
    pair: str
    relation: Relation
    unit: Unit
    adjacency: Adjacency
    confidential: bool
    size: int
    selection: int
    seed_entropy: int | None
    provenance: dict[str, Any]
    attack: str = ""
    tried: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_question(
    claim: object, relation: Relation, attack: str | Attack, event: Event | None, confidence: float
) -> Attack:
    """Refuse what cannot be asked, before anything runs; return what will be searched."""
    if not isinstance(claim, Claim):
        kinds = ", ".join(kind.__name__ for kind in FAMILIES.values())
        raise TypeError(f"claim must be one of {kinds}, got {type(claim).__name__}")
    if not 0 < claim.budget < math.inf:
        raise ValueError(
            f"a claim that is audited must have a positive and finite {claim.parameter}, got {claim.budget}"
        )
    if not claim.forgiven < 1:
        raise ValueError(f"a claim that is audited must have a delta in [0, 1), got {claim.forgiven}")
    if relation != claim.relation:
        way = (
            'audit claim.under("replace_one"), or pair.under("add_remove") at distance 2'
            if claim.relation == "add_remove"
            else "build the pair with move_people, or state the claim for add_remove"
        )
        raise ValueError(f"the pair is {relation} and the claim {claim.relation}: {way}")
    check_confidence(confidence)
    if event is not None and not isinstance(event, Event):
        raise TypeError(f"event must be an Event, got {type(event).__name__}")
    if event is not None and event.rule.family not in method_for(claim, 1, confidence).rules:
        raise ValueError(f"an event that weighs likelihood ratios bounds a rho, got a claim of {claim.parameter}")
    if isinstance(attack, str):
        return Attack.named(attack)
    if not isinstance(attack, Attack):
        raise TypeError(f"attack must be a name or an Attack, got {type(attack).__name__}")
    return attack


def count_event(event: Event, scores_x: Floats, scores_y: Floats) -> Counts:
    """Count what an event says of scores, shape (runs,) on either database: all that a bound needs."""
    return {
        name: {"runs": scores.size, **event.rule.counts(scores)} for name, scores in (("x", scores_x), ("y", scores_y))
    }


def add_counts(first: Counts, second: Counts) -> Counts:
    """Return the counts of two sets of runs together, of one event."""
    return {
        name: {key: first[name].get(key, 0) + second[name].get(key, 0) for key in first[name] | second[name]}
        for name in first
    }


def expected_guesses(counts: Counts, counting: int) -> tuple[float, float] | None:
    """Return how many guesses to expect and the share that is right, from selection runs; None for other rules."""
    if "guessed_x" not in counts["x"]:
        return None
    right, guessed, runs = guesses(counts)
    return max(1.0, counting * guessed / runs), max(0.5, (right + 0.5) / (guessed + 1))


def evaluate(
    begun: float,
    method: Method,
    counts: Counts,
    basis: Basis,
    audited: Audited,
    *,
    support: dict[str, Any] | None = None,
) -> AuditResult:
    """Turn counts into a bound, and hold the bound against the promise.

    `begun` is the time of `time.perf_counter` when the audit began, `support` the witness of an unbounded loss.
    """
    claim = method.claim
    measured = claim.at(method.lower(counts, basis))
    detectable = detectable_loss(method, counts, basis, audited.selection)
    return AuditResult(
        claim=claim,
        measured=measured,
        verdict=verdict_of(claim, measured, detectable, support is not None),
        counts=counts,
        distance=method.distance,
        bound=method.bound,
        confidence=method.confidence,
        ceiling=method.ceiling(counts, basis),
        detectable=detectable,
        support=support,
        basis=basis,
        mechanism=audited.mechanism,
        event=audited.event,
        searched=audited.searched,
        attack=audited.attack,
        tried=audited.tried,
        notes=audited.notes,
        pair=audited.pair,
        relation=audited.relation,
        unit=audited.unit,
        adjacency=audited.adjacency,
        confidential=audited.confidential,
        size=audited.size,
        selection=audited.selection,
        seed_entropy=audited.seed_entropy,
        provenance=audited.provenance,
        seconds=time.perf_counter() - begun,
    )


def detectable_loss(method: Method, counts: Counts, basis: Basis, choosing: int) -> float:
    """Return the minimum detectable loss: infinite where nearly all runs are unlike what selection saw.

    So many runs were `choosing` events; where the basis says how many of them chose the last one, these matter.
    """
    if basis.get("unseen", 0.0) > UNSEEN:
        return math.inf
    return method.detectable(counts, basis, choosing=basis.get("choosing", choosing))


def support_witness(mechanism: Mechanism, pair: NeighborPair, claim: Claim) -> dict[str, Any] | None:
    """Return an output that is possible on one database only and that the promise does not forgive.

    The mechanism is asked for its exact law, or for what of it has no counterpart, if it knows either.
    """
    if claim.parameter == "delta":  # total variation has a limit, and runs show all of it
        return None
    exact, masses = (getattr(mechanism, name, None) for name in ("exact_loss", "support_masses"))
    law = exact(pair) if callable(exact) else None
    if law is not None:
        on_x, on_y = law.infinite_mass, law.missing_mass
    else:
        on_x, on_y = masses(pair) if callable(masses) else (0.0, 0.0)
    if max(on_x, on_y) <= claim.group(pair.distance).forgiven * (1 + ROUNDING):
        return None
    order, mass = ("x", on_x) if on_x >= on_y else ("y", on_y)
    return {"order": f"possible on {order} only", "probability": mass}


def impossible(statistics: Sequence[Statistic], x: Floats, y: Floats) -> str:
    """Return what the mechanism's likelihood says of selection runs that one database only can give; empty if nothing.

    It is a note and no witness: where a density is too small for a float, its logarithm is -inf as well.
    """
    column = next((number for number, statistic in enumerate(statistics) if statistic.exact), None)
    if column is None:
        return ""
    shares = {"x": float(np.mean(x[:, column] <= -LARGEST)), "y": float(np.mean(y[:, column] >= LARGEST))}
    order = max(shares, key=shares.__getitem__)
    if shares[order] == 0:
        return ""
    return (
        f"log_likelihood calls {shares[order]:.3g} of the outputs on {order} impossible on the other database: if it "
        "is exact, the loss is unbounded; exact_loss or support_masses can confirm it"
    )
