"""The event that an audit counts: chosen on selection runs, or registered; and its counts on fresh runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from audit.attacks import Attack
from audit.attacks.attack import candidate_statistics
from audit.events import Event, Statistic
from audit.mechanism import Mechanism
from audit.methods.evaluation import UNSEEN, count_event, expected_guesses, impossible
from audit.methods.method import Basis, Counts, Method
from audit.sampling.independence import check_calls
from audit.sampling.runs import Runs, scores
from audit.sampling.streams import Phase
from audit.values import unlike_numbers

__all__ = ["REGISTERED", "Choice", "choose_event", "count"]

LENT = 1 / 3  # share of the counting runs that attacks may spend where they still learn
ENOUGH = 10_000  # counting runs from which they may: of fewer, those left may not show twice the promise
REGISTERED = "registered"  # in the place of an attack's name, where an event was given


@dataclass(frozen=True)
class Choice:
    """The event that will be counted, and where fresh outputs come from."""

    event: Event
    runs: Any
    searched: str = "one event, registered beforehand"
    attack: str = REGISTERED
    tried: tuple[str, ...] = (REGISTERED,)
    new: Statistic | None = None  # whether an output has a part unlike all that selection saw
    told: tuple[str, ...] = ()  # what a reader should know of this event
    expected: tuple[float, float] | None = None  # guesses to come, and the share of them that is right
    borrowed: int = 0  # runs that should have counted and that attacks have spent before
    strange: bool = False  # whether there was more than numbers among what was taken for numbers
    unlike: list[float] = field(default_factory=lambda: [0.0, 0.0])  # counted runs, and those with such a part

    def seen(self) -> Basis:
        """Return the share of counted runs that are unlike all that selection saw, where that is asked."""
        return {} if self.new is None else {"unseen": self.unlike[1] / max(self.unlike[0], 1.0)}

    def notes(self, basis: Basis) -> list[str]:
        """Return what a reader should know besides the numbers."""
        notes = list(self.told)
        if basis.get("unseen", 0.0) > UNSEEN:
            notes.append(
                f"{basis['unseen']:.0%} of the counted runs show words that selection never saw: what they tell is not "
                "known"
            )
        return notes


def choose_event(
    runs: Runs,
    method: Method,
    searching: Attack,
    choosing: int,
    counting: int,
    *,
    mechanism: Mechanism | None = None,
    lending: bool = False,
) -> Choice:
    """Spend the selection runs: find candidate statistics, then choose the event that promises most.

    Where runs are `lending`, attacks that learn may take a third of those that should count, of 10,000 or more.
    """
    found = candidate_statistics(
        runs, searching, choosing, mechanism, lent=int(LENT * counting) if lending and counting >= ENOUGH else 0
    )
    choosing, counting = choosing + found.borrowed, counting - found.borrowed
    statistics = found.statistics
    asked = [*statistics, Statistic("more than numbers", unlike_numbers)]
    sizes = found.runs.rest(choosing, found.spent)
    scored = scores(found.runs, sizes, asked, Phase.SELECT)
    x, y = (side[:, :-1] for side in scored)
    event = method.choose(statistics, x, y, families=searching.families, counting=counting)
    column = statistics.index(event.statistic)
    for place in sorted({0, column}):
        check_calls(statistics[place].name, [x[:, place], y[:, place]], found.runs.calls(sizes))
    seen = count_event(event, x[:, column], y[:, column])
    names = ", ".join(found.name_of(one) for one in statistics[:3]) + (", ..." if len(statistics) > 3 else "")
    return Choice(
        found.counted(event),
        found.runs if found.reading is None else runs,
        searched=f"{method.searched(searching.families)}, to 9 decimals, of {len(statistics)} statistics ({names})",
        attack=found.found_by(event.statistic),
        tried=found.tried,
        new=None if found.reading is None else Statistic("parts never seen", found.reading.new),
        told=tuple(filter(None, (found.advice(event.statistic), impossible(statistics, x, y)))),
        expected=expected_guesses(seen, counting),
        borrowed=found.borrowed,
        strange=found.reading is None and any(side[:, -1].any() for side in scored),
    )


def count(chosen: Choice, sizes: Sequence[int], *look: int) -> Counts:
    """Count the event on fresh runs."""
    statistics = [chosen.event.statistic] + ([] if chosen.new is None else [chosen.new])
    x, y = scores(chosen.runs, sizes, statistics, Phase.COUNT, *look)
    if chosen.new is not None:
        chosen.unlike[0] += len(x) + len(y)
        chosen.unlike[1] += float(x[:, 1].sum() + y[:, 1].sum())
    guesses = [chosen.event.rule.guess(side[:, 0]) for side in (x, y)]
    check_calls("the guess", guesses, chosen.runs.calls(sizes))
    return count_event(chosen.event, x[:, 0], y[:, 0])
