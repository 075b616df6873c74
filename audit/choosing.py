"""The events that an audit counts: chosen on selection runs, or registered; and their counts on fresh runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from audit.attacks import Attack
from audit.attacks.attack import candidate_statistics
from audit.attacks.selection import distinct, never
from audit.events import Event, Statistic
from audit.mechanism import Mechanism
from audit.methods.evaluation import UNSEEN, Counted, count_event, expected_guesses, impossible
from audit.methods.method import Basis, Counts, Method
from audit.sampling.independence import check_calls
from audit.sampling.runs import Runs, scores
from audit.sampling.streams import Phase
from audit.values import unlike_numbers

__all__ = ["REGISTERED", "Choice", "Selected", "choose_event", "count"]

LENT = 1 / 3  # share of the counting runs that attacks may spend where they still learn
ENOUGH = 10_000  # counting runs from which they may: of fewer, those left may not show twice the promise
REGISTERED = "registered"  # in the place of an attack's name, where an event was given


@dataclass(frozen=True)
class Selected:
    """One event that will be counted, and its share of the error probability."""

    event: Event
    attack: str = REGISTERED  # the name of the one that found it
    share: float = 1.0
    notes: tuple[str, ...] = ()  # what a reader should know of it
    rated: int = 0  # selection runs that chose it
    expected: tuple[float, float] | None = None  # guesses to come, and the share of them that is right

    def basis(self, method: Method, look: int = 0, expected: tuple[float, float] | None = None) -> Basis:
        """Return what its bound reads besides the counts."""
        basis = method.basis(self.event, look=look, expected=expected)
        if self.share < 1:
            basis["share"] = self.share
        return {**basis, "hits": self.event.hits, "rated": self.rated} if self.event.hits else basis


@dataclass(frozen=True)
class Choice:
    """The events that will be counted, and where fresh outputs come from."""

    events: tuple[Selected, ...]  # the first promises most
    runs: Any
    searched: str = "one event, registered beforehand"
    tried: tuple[str, ...] = (REGISTERED,)
    new: Statistic | None = None  # whether an output has a part unlike all that selection saw
    impossible: str = ""  # what the mechanism's own likelihood says of outputs of one database alone
    borrowed: int = 0  # runs that should have counted and that attacks have spent before
    strange: bool = False  # whether there was more than numbers among what was taken for numbers
    unlike: list[float] = field(default_factory=lambda: [0.0, 0.0])  # counted runs, and those with such a part

    def seen(self) -> Basis:
        """Return the share of counted runs that are unlike all that selection saw, where that is asked."""
        return {} if self.new is None else {"unseen": self.unlike[1] / max(self.unlike[0], 1.0)}

    def counted(self, counts: Sequence[Counts], bases: Sequence[Basis]) -> list[Counted]:
        """Return the events in words, with what was counted."""
        return [
            Counted(str(one.event), one.attack, of, basis, one.notes)
            for one, of, basis in zip(self.events, counts, bases, strict=True)
        ]

    def notes(self) -> list[str]:
        """Return what a reader should know besides the numbers, whichever event proves most."""
        notes, share = [self.impossible] if self.impossible else [], self.seen().get("unseen", 0.0)
        if share > UNSEEN:
            notes.append(
                f"{share:.0%} of the counted runs show words that selection never saw: what they tell is not known"
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
    """Spend the selection runs: find candidate statistics, then choose the events that promise most.

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

    def chosen(among: Sequence[int]) -> list[Event]:
        several = tuple(statistics[column] for column in among)
        return method.choose(several, x[:, among], y[:, among], families=searching.families, counting=counting)

    events = chosen(range(len(statistics))) or [never(statistics[0])]
    if advice := found.advice(events[0].statistic):  # the kind of event may hide a fault that shows without it, too
        ordinary = [column for column, one in enumerate(statistics) if found.advice(one) != advice]
        events = distinct([*events, *(chosen(ordinary)[:1] if ordinary else [])])
    selected, calls = [], found.runs.calls(sizes)
    for place in sorted({0, *(statistics.index(event.statistic) for event in events)}):
        check_calls(statistics[place].name, [x[:, place], y[:, place]], calls)
    for number, event in enumerate(events):
        column = statistics.index(event.statistic)
        selected.append(
            Selected(
                found.counted(event),
                found.found_by(event.statistic),
                event.share if number else 1 - sum(one.share for one in events[1:]),
                tuple(filter(None, [found.advice(event.statistic)])),
                len(x) + len(y),
                expected_guesses(count_event(event, x[:, column], y[:, column]), counting),
            )
        )
    names = ", ".join(found.name_of(one) for one in statistics[:3]) + (", ..." if len(statistics) > 3 else "")
    return Choice(
        tuple(selected),
        found.runs if found.reading is None else runs,
        searched=f"{method.searched(searching.families)}, to 9 decimals, of {len(statistics)} statistics ({names})",
        tried=found.tried,
        new=None if found.reading is None else Statistic("parts never seen", found.reading.new),
        impossible=impossible(statistics, x, y),
        borrowed=found.borrowed,
        strange=found.reading is None and any(side[:, -1].any() for side in scored),
    )


def count(chosen: Choice, sizes: Sequence[int], *look: int) -> list[Counts]:
    """Count all events on the same fresh runs."""
    statistics = [one.event.statistic for one in chosen.events] + ([] if chosen.new is None else [chosen.new])
    x, y = scores(chosen.runs, sizes, statistics, Phase.COUNT, *look)
    if chosen.new is not None:
        chosen.unlike[0] += len(x) + len(y)
        chosen.unlike[1] += float(x[:, -1].sum() + y[:, -1].sum())
    found = []
    for column, one in enumerate(chosen.events):
        guesses = [one.event.rule.guess(side[:, column]) for side in (x, y)]
        check_calls("the guess", guesses, chosen.runs.calls(sizes))
        found.append(count_event(one.event, x[:, column], y[:, column]))
    return found
