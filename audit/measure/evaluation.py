"""The beginning and the end of every audit: what may be asked, and the verdict that counts give."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import scipy  # loads its parts where they are used, some of which take long
from scipy import special

from audit.attacks import Attack
from audit.bounds.limits import check_confidence
from audit.claims import Claim, Relation
from audit.claims.families import FAMILIES
from audit.events import Event
from audit.measure.choice import UNSEEN, Choice
from audit.mechanism import Mechanism
from audit.methods.method import POWER, Basis, Counts, Method, fewest, method_for
from audit.neighbors import NeighborPair
from audit.results import AuditResult, is_far, verdict_of
from audit.results.formatting import at_least

__all__ = ["check_question", "detectable_loss", "evaluate", "rare_runs", "support_witness"]

ROUNDING = 1e-9  # relative error that the masses of an exact law may have


def check_question(
    claim: object, relation: Relation, attack: str | Attack, event: Event | None, confidence: float
) -> Attack:
    """Refuse arguments that do not go together, before anything runs; return what will be searched."""
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


def evaluate(
    begun: float,
    method: Method,
    chosen: Choice,
    *,
    notes: Sequence[str] = (),
    support: dict[str, Any] | None = None,
    **facts: Any,
) -> AuditResult:
    """Turn counts into bounds and compare the largest with the promise; `facts` are the other fields of the result.

    `begun` is the start of the audit, by `time.perf_counter`; `support` is the witness of an unbounded loss.
    """
    claim, known = method.claim, [(one.counts, one.basis) for one in chosen.events]
    bounds = [method.lower(*one) for one in known]
    events: list[dict[str, Any]] = [
        {
            "event": str(one.event),
            "attack": one.attack,
            "counts": one.counts,
            "basis": one.basis,
            "notes": list(one.notes),
            "measured": bound,
        }
        for one, bound in zip(chosen.events, bounds, strict=True)
    ]
    detectable, place = detectable_loss(method, known, chosen.selection)
    if len(events) > 1:
        events[place]["basis"] = {**events[place]["basis"], "detects": True}
    best = events.pop(bounds.index(max(bounds)))
    best_notes, measured = best.pop("notes"), claim.at(best.pop("measured"))
    usual = [(other["measured"], other["event"]) for other in events if not other["notes"]]
    if best_notes and usual:  # what is to be known of an event may not be so of another, which shows a fault, too
        bound, event = max(usual)
        best_notes.append(f"an event of another kind proves {at_least(bound)} ({event})")
    return AuditResult(
        **best,
        claim=claim,
        measured=measured,
        verdict=verdict_of(claim, measured, detectable, support is not None),
        others=tuple(events),
        notes=(*(best_notes if measured.budget else ()), *chosen.notes(), *notes),  # no event tells that proves nothing
        searched=chosen.searched,
        tried=chosen.tried,
        distance=method.distance,
        bound=method.bound,
        confidence=method.confidence,
        size=chosen.size,
        selection=chosen.selection,
        ceiling=max(method.ceiling(*one) for one in known),
        detectable=detectable,
        rare=rare_runs(method, known),
        support=support,
        seconds=time.perf_counter() - begun,
        **facts,
    )


def detectable_loss(method: Method, known: Sequence[tuple[Counts, Basis]], choosing: int) -> tuple[float, int]:
    """Return the minimum detectable loss of several events together, and the place of the event that has it.

    An event far below the promise is used only if no other has power. The loss is infinite if nearly all runs are
    unlike those of selection.
    """
    events_with_power, losses = [], [(math.inf, 0)]
    for place, (counts, basis) in enumerate(known):
        if basis.get("unseen", 0.0) > UNSEEN:
            continue
        loss, promised = method.detectable(counts, basis, choosing=basis.get("choosing", choosing)), method.claim.budget
        losses.append((loss, place))
        if loss <= 2 * promised and not is_far(method.lower(counts, basis), promised, loss):
            events_with_power.append((loss, place))
    return min(events_with_power or losses)


def rare_runs(method: Method, known: Sequence[tuple[Counts, Basis]]) -> float:
    """Return N: a value of only one database that comes once in N runs is detected with power 0.8.

    Enough selection runs must meet it to choose it, and enough counting runs to prove it. Infinity means that none is
    frequent enough, or that the events were registered.
    """
    # Each search has one such event. The one with most of the error probability stands for all, whatever their order.
    searched = [one for one in known if "hits" in one[1]]
    main = max(searched, key=lambda one: (one[1].get("share", 1.0), one[1]["hits"]), default=None)
    if main is None or main[1].get("unseen", 0.0) > UNSEEN:
        return math.inf
    shares = [basis.get("share", 1.0) for _, basis in known]
    basis = main[1] | {"regions": 1, "share": min(shares)}
    basis.pop("weights", None)
    runs = {side: main[0][side]["runs"] for side in "xy"}
    no_guesses = {"guessed_x": 0, "guessed_y": 0}

    def is_violation(hits: int) -> bool:
        counts = {"x": {"runs": runs["x"], **no_guesses}, "y": {"runs": runs["y"], **no_guesses, "guessed_y": hits}}
        return method.lower(counts, basis) > method.claim.budget

    most = min(runs.values())
    if (needed := fewest(is_violation, most, 0)) > most:
        return math.inf
    each = max(basis["rated"] // 2, 1)

    def power(rate: float) -> float:
        return float(special.bdtrc(basis["hits"] - 1, each, rate) * special.bdtrc(needed - 1, most, rate)) - POWER

    return 1 / float(scipy.optimize.brentq(power, 0.0, 1.0)) if power(1.0) > 0 else math.inf


def support_witness(mechanism: Mechanism, pair: NeighborPair, claim: Claim) -> dict[str, Any] | None:
    """Return the exact probability of outputs that only one database can give, if the promise does not allow it."""
    if claim.parameter == "delta":  # total variation has a limit, and runs show all of it
        return None
    exact = getattr(mechanism, "exact_loss", None)
    if (law := exact(pair) if callable(exact) else None) is not None:
        on_x, on_y = law.infinite_mass, law.missing_mass
    else:
        masses = getattr(mechanism, "support_masses", None)
        on_x, on_y = masses(pair) if callable(masses) else (0.0, 0.0)
    if max(on_x, on_y) <= claim.group(pair.distance).forgiven * (1 + ROUNDING):
        return None
    order, mass = ("x", on_x) if on_x >= on_y else ("y", on_y)
    return {"order": f"possible on {order} only", "probability": mass}
