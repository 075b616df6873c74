"""The verdict: counts become a bound, and the bound is held against the promise."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks import Attack
from audit.bounds import check_confidence, guessing_game_lower, two_sample_lower
from audit.claims import PureDP, Relation
from audit.events import Event
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.planning import game_ceiling, game_detectable, rectangle_ceiling, rectangle_detectable
from audit.results import AuditResult, verdict_of

__all__ = ["GAME", "RECTANGLE", "check_question", "judge", "support_witness"]

GAME, RECTANGLE = "guessing game", "Clopper-Pearson rectangle"


def check_question(
    claim: PureDP, relation: Relation, attack: str | Attack, event: Event | None, confidence: float
) -> Attack:
    """Refuse what cannot be asked, before anything runs.

    Parameters
    ----------
    claim, relation, attack, event, confidence
        As given to `measure_loss`.

    Returns
    -------
    Attack
        What will be searched.

    Raises
    ------
    ValueError
        If the claim is empty, its relation is not that of the pair, or a number is out of range.
    TypeError
        If an argument is of the wrong kind.
    """
    if not isinstance(claim, PureDP):
        raise TypeError(f"claim must be a PureDP, got {type(claim).__name__}")
    if not 0 < claim.epsilon < math.inf:
        raise ValueError(f"a claim that is audited must have a positive and finite epsilon, got {claim.epsilon}")
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
    if isinstance(attack, str):
        return Attack.named(attack)
    if not isinstance(attack, Attack):
        raise TypeError(f"attack must be a name or an Attack, got {type(attack).__name__}")
    return attack


def judge(
    begun: float,
    claim: PureDP,
    guesses_x: NDArray[np.int8],
    guesses_y: NDArray[np.int8],
    *,
    bound: str,
    support: dict[str, Any] | None,
    distance: int,
    confidence: float,
    **rest: Any,
) -> AuditResult:
    """Count, bound, and hold the bound against the promise.

    Parameters
    ----------
    begun : float
        Time of `time.perf_counter` when the audit began.
    claim : PureDP
        The promise.
    guesses_x, guesses_y : ndarray of int, shape (runs,)
        What the event guessed on counting runs of either database: -1 for `x`, 1 for `y`, 0 for neither.
    bound : {"guessing game", "Clopper-Pearson rectangle"}
        The theorem. The first needs a fair coin to have picked the database of each run.
    support : dict or None
        The witness of an unbounded loss.
    distance : int
        Steps between the two databases.
    confidence : float
        One-sided, in (0, 1).
    **rest
        Further fields of the result.

    Returns
    -------
    AuditResult
        With the verdict.
    """
    counts = {
        name: {"runs": guesses.size, "guessed_x": int(np.sum(guesses < 0)), "guessed_y": int(np.sum(guesses > 0))}
        for name, guesses in (("x", guesses_x), ("y", guesses_y))
    }
    x, y = counts["x"], counts["y"]
    if bound == GAME:
        correct = x["guessed_x"] + y["guessed_y"]
        guessed = correct + x["guessed_y"] + y["guessed_x"]
        loss = float(guessing_game_lower(correct, guessed, confidence=confidence))
        ceiling = game_ceiling(x["runs"] + y["runs"], confidence=confidence, distance=distance)
        detectable = game_detectable(claim.epsilon, guessed, confidence=confidence, distance=distance)
    else:
        half = 1 - (1 - confidence) / 2  # two regions, each may show the loss
        loss = max(
            float(two_sample_lower(y["guessed_y"], y["runs"], x["guessed_y"], x["runs"], confidence=half)),
            float(two_sample_lower(x["guessed_x"], x["runs"], y["guessed_x"], y["runs"], confidence=half)),
        )
        ceiling = rectangle_ceiling(x["runs"], y["runs"], confidence=half, distance=distance)
        detectable = min(  # the region that sees farther tells
            rectangle_detectable(
                claim.epsilon,
                rare["runs"],
                likely["runs"],
                confidence=half,
                distance=distance,
                share=sum(side[guess] / max(1, side["runs"]) for side in (x, y)),
            )
            for rare, likely, guess in ((x, y, "guessed_y"), (y, x, "guessed_x"))
        )
    measured = PureDP(loss / distance, claim.relation)
    return AuditResult(
        claim=claim,
        measured=measured,
        verdict=verdict_of(claim, measured, detectable, support is not None),
        counts=counts,
        distance=distance,
        bound=bound,
        confidence=confidence,
        ceiling=ceiling,
        detectable=detectable,
        support=support,
        seconds=time.perf_counter() - begun,
        **rest,
    )


def support_witness(mechanism: Mechanism, pair: NeighborPair) -> dict[str, Any] | None:
    """Look for an output that is possible on one database only.

    Parameters
    ----------
    mechanism : Mechanism
        Asked for its exact law, if it has one.
    pair : NeighborPair
        The two databases.

    Returns
    -------
    dict or None
        ``order`` and ``probability`` of the witness, if the law is known and holds one.
    """
    exact = getattr(mechanism, "exact_loss", None)
    law = exact(pair) if callable(exact) else None
    if law is None or max(law.infinite_mass, law.missing_mass) == 0:
        return None
    order, mass = ("x", law.infinite_mass) if law.infinite_mass >= law.missing_mass else ("y", law.missing_mass)
    return {"order": f"possible on {order} only", "probability": mass}
