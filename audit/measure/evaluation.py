"""The start and the end of every audit: checks of its arguments, and the verdict from its counts."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.attacks import Attack
from audit.bounds.limits import check_confidence
from audit.claims import Claim, Relation
from audit.claims.families import FAMILIES
from audit.events import Event, Guesses
from audit.exact.roots import brentq
from audit.measure.choice import UNSEEN, Choice
from audit.mechanism import Mechanism
from audit.methods.method import POWER, Basis, Counts, Method, fewest, method_for
from audit.neighbors import NeighborPair
from audit.results import AuditResult, is_far, verdict_of
from audit.results.formatting import at_least
from audit.sampling.anew import runs_anew
from audit.sampling.runs import GivenRuns
from audit.sampling.streams import seed_sequence
from audit.values import raised

__all__ = ["check_again", "check_question", "detectable_loss", "evaluate", "rare_runs", "support_witness"]

FALSE = 1e-6  # largest probability with which a real leak is refused
RUNS = 50  # runs on either database in a new process; at most a quarter of the counting runs if these are few
SHARE, WRONG = 1 / 4, 1 / 20  # least share of right guesses, and largest ratio of wrong to right ones
AGREE = 1 / 4  # largest probability that two random values, one per database, come out as before
SECONDS = 60  # seconds that new processes may take, besides the duration of the audit
KEPT = "A number, cache or format that the process keeps for each data set looks like this and may be no loss: "
UNKNOWN = f"The event was seen in one process, which saw x first. {KEPT}run plaudit again with the databases swapped, "
UNKNOWN += "in a new process."
GIVEN = f"The event tells the databases apart in every run. {KEPT}record outputs anew, in a process that sees y first."
ROUNDING = 1e-9  # relative error that the masses of an exact law may have


def check_question(
    claim: object, relation: Relation, attack: str | Attack, event: Event | None, confidence: float
) -> Attack:
    """Refuse arguments that do not go together, before anything runs; return the attack."""
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
    """Turn counts into bounds and compare the largest with the promise; `facts` are the other fields of the result."""
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
    if best_notes and usual:  # the notes on an event may not hold for another one that also shows a loss
        bound, event = max(usual)
        best_notes.append(f"an event of another kind proves {at_least(bound)} ({event})")
    return AuditResult(
        **best,
        claim=claim,
        measured=measured,
        verdict=verdict_of(claim, measured, detectable, support is not None),
        others=tuple(events),
        notes=(*(best_notes if measured.budget else ()), *chosen.notes(), *notes),  # none if the bound is 0
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
    """Return the minimum detectable loss of several events together, and the place of the event that has it."""
    # An event far below the promise is used only if no other has power.
    events_with_power, losses = [], [(math.inf, 0)]
    for place, (counts, basis) in enumerate(known):
        if basis.get("unseen", 0.0) > UNSEEN:
            continue
        loss, promised = method.detectable(counts, basis, choosing=choosing), method.claim.budget
        losses.append((loss, place))
        if loss <= 2 * promised and not is_far(method.lower(counts, basis), promised, loss):
            events_with_power.append((loss, place))
    return min(events_with_power or losses)


def rare_runs(method: Method, known: Sequence[tuple[Counts, Basis]]) -> float:
    """Return N: a value of only one database that comes once in N runs is detected with power 0.8; else infinity."""
    # Each search has one such event. The one with the largest share of the error probability represents all.
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

    return 1 / brentq(power, 0.0, 1.0) if power(1.0) > 0 else math.inf


def support_witness(mechanism: Mechanism, pair: NeighborPair, claim: Claim) -> dict[str, Any] | None:
    """Return the exact probability of outputs that only one database can give, if the promise does not allow it."""
    if claim.parameter == "delta":  # total variation is at most 1, and runs can show all of it
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


def check_again(result: AuditResult, chosen: Choice) -> AuditResult:
    """Refuse a violation that is due to state that a process keeps for each data set; add a note if that is unknown."""
    # Only events that hardly ever guess wrong are tried, such as values that never vary. A random value comes out as
    # before in all new processes with at most the error probability of the audit.
    if result.measured <= result.claim or result.support is not None:
        return result
    place = [(str(one.event), one.counts) for one in chosen.events].index((result.event, result.counts))
    event, here = chosen.events[place].event, _tally(chosen.guessed[place])
    right, wrong, fewest = here[[0, 1], [0, 2]].sum(), here[[0, 1], [2, 0]].sum(), int(here.sum(axis=1).min())
    if isinstance(chosen.runs, GivenRuns):
        return replace(result, notes=(*result.notes, GIVEN)) if right == here.sum() else result
    if right < SHARE * here.sum() or wrong > WRONG * right:
        return result
    times = max(1, math.ceil(math.log(1 - result.confidence) / math.log(AGREE)))
    level = FALSE / (4 * times)
    telling = next((runs for runs in range(1, RUNS) if level * math.comb(fewest + runs, runs) > 10), RUNS)
    runs, data = max(min(RUNS, fewest // 4), telling), ((chosen.runs.pair.x, chosen.runs.pair.y), chosen.runs.kind)
    before, root = chosen.runs.before, seed_sequence(result.seed_entropy)
    read, unknown = chosen.runs.read or (lambda outputs: outputs), not before
    for mechanism in before:
        answers = runs_anew(mechanism, data, runs, root, times, SECONDS + result.seconds)
        others = [one for one in answers if _differs(here, _tally([event.guess(read(side)) for side in one]), level)]
        # New processes may lack state that the program has set up. An earlier mechanism may differ on purpose.
        missing = any(raised(side).all() for one in others for side in one) or mechanism != before[0]
        unknown = unknown or not answers or (bool(others) and missing)
        if others and not missing:
            raise ValueError(
                f"runs must not depend on what the process keeps: {event.statistic.name} tells the databases apart in "
                "this process, which saw x first, but not in a new one that sees y first: make ids, caches and formats "
                "anew in each run, or leave them out"
            )
    return replace(result, notes=(*result.notes, UNKNOWN)) if unknown else result


def _tally(guesses: Sequence[Guesses]) -> NDArray[np.intp]:
    """Return how many runs on each database have the guess `x`, no guess and the guess `y`, shape (2, 3)."""
    return np.array([np.bincount(side + 1, minlength=3) for side in guesses])


def _differs(here: NDArray[np.intp], there: NDArray[np.intp], level: float) -> bool:
    """Tell whether right guesses are fewer in new processes, or wrong ones more, than chance explains at a level."""
    sides, guesses = np.array([0, 1, 0, 1]), np.array([0, 2, 2, 0])  # the right ones first
    both, hits = here + there, there[sides, guesses]
    from scipy.stats import hypergeom  # slow to import, and rarely needed

    law = hypergeom(both.sum(axis=1)[sides], both[sides, guesses], there.sum(axis=1)[sides])
    return bool((np.where([1, 1, 0, 0], law.cdf(hits), law.sf(hits - 1)) < level).any())
