"""Sentences on the losses that an audit would have detected or may have missed; all views use them."""

from __future__ import annotations

import math
from typing import Any

from audit.results.formatting import at_least, at_most

__all__ = ["is_far", "largest_bound", "power", "reach"]

# In units of the excess of the minimum detectable loss over the promise: if the loss equalled the promise, a bound this
# far below it would occur with probability 0.01.
FAR = 1.6
LITTLE = 0.1  # of the promise: a smaller bound always counts as far below it
BELOW = "May be missed (power below 0.8)"
SCATTERED = (
    "Others (scattered, new each time, of another type or in changing places) may occur more often and be missed."
)


def is_far(measured: float, promised: float, detectable: float) -> bool:
    """Return whether a bound is so far below the promise that its event can hardly have that loss; all are budgets."""
    return detectable < math.inf and measured < max(promised - FAR * (detectable - promised), LITTLE * promised)


def power(result: Any) -> tuple[str, ...]:
    """Return sentences on losses that an audit without a violation could have missed."""
    sentences = [reach(result)]
    if math.isfinite(result.rare):
        rare = "not in every run" if result.rare < 2 else f"less than once in {math.floor(result.rare):,} runs"
        value = "a value, word or failure that only one database gives"
        sentences.append(f"{BELOW}: {value}, if it occurs {rare}. {SCATTERED}")
    return tuple(sentences)


def reach(result: Any) -> str:
    """Return what is said of the loss that an audit would have detected, and in which event."""
    if result.detectable == math.inf:
        most = largest_bound(result)
        why = f"they prove at most {most}, whatever they show" if most else "they are too few for this event"
        return f"No loss is found with probability 0.8 by these runs: {why}."
    if result.far_below_claim:
        share = at_least(100 * (result.measured.budget / result.claim.budget), 2)
        return (
            f"Nothing near the promise was found: the bound is {share}% of it. A loss elsewhere than in the counted "
            "event may be larger, so no minimum detectable loss is announced."
        )
    return f"{BELOW}: a loss below {at_most(result.detectable)} in {_where(result)}."


def _where(result: Any) -> str:
    """Describe the event with the minimum detectable loss; in old files, the one with the largest share of error."""
    if result.redacted:
        return "the counted event"
    events = [(result.basis, result.counts), *((one["basis"], one["counts"]) for one in result.others)]
    event = max(events, key=lambda one: (one[0].get("detects", False), float(one[0].get("share", 1.0))))
    sides = event[1].values()
    runs = sum(side.get("runs", 0) for side in sides)
    hits = sum(number for side in sides for key, number in side.items() if key != "runs")
    if "bets" in event[0]:
        return "the guesses that were bet on"
    which = "the counted event" if event is events[0] else "another event that was counted"
    return f"{which}, met by {100 * hits / runs if runs else 0:.3g}% of the runs"


def largest_bound(result: Any) -> str:
    """Return the largest bound that the runs could give if it cannot exceed the promise, else an empty string."""
    if not result.ceiling <= result.claim.budget:
        return ""
    steps = result.distance**result.claim.growth
    shared = result.distance > 1 and not result.claim.forgiven
    return at_most(result.ceiling) + (f" ({at_most(result.ceiling * steps)} / {steps:g})" if shared else "")
