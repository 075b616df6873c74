"""The events that an audit counts: chosen on selection runs, or registered; and their counts on fresh runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from audit.attacks import Attack
from audit.attacks.attack import candidate_statistics
from audit.attacks.selection import distinct, never
from audit.events import Event, Statistic
from audit.mechanism import Mechanism
from audit.methods.method import Basis, Counts, Floats, Method, guesses
from audit.sampling.independence import check_calls
from audit.sampling.runs import Runs, scores
from audit.sampling.streams import Phase
from audit.values import LARGEST, unlike_numbers

__all__ = ["REGISTERED", "UNSEEN", "Choice", "Counted", "Selected", "add_counts", "choose_event", "count", "count_all"]

LENT = 1 / 3  # share of the counting runs that attacks may spend where they still learn
ENOUGH = 10_000  # counting runs from which they may: of fewer, those left may not show twice the promise
UNSEEN = 0.9  # share of counted runs unlike all that selection saw, above which they have no power
REGISTERED = "registered"  # in the place of an attack's name, where an event was given


@dataclass(frozen=True)
class Counted:
    """One event of an audit: in words, by which attack, what was counted, what its bound reads besides, and notes."""

    event: str
    attack: str
    counts: Counts
    basis: Basis
    notes: tuple[str, ...] = ()


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
    """The events that an audit counts, where fresh outputs come from, and in the end the counts."""

    events: tuple[Selected, ...]  # the first promises most
    runs: Any
    searched: str = "one event, registered beforehand"
    tried: tuple[str, ...] = (REGISTERED,)
    new: Statistic | None = None  # whether an output has a part unlike all that selection saw
    impossible: str = ""  # what the mechanism's own likelihood says of outputs of one database alone
    borrowed: int = 0  # runs that should have counted and that attacks have spent before
    strange: bool = False  # whether there was more than numbers among what was taken for numbers
    unlike: list[float] = field(default_factory=lambda: [0.0, 0.0])  # counted runs, and those with such a part
    counts: Sequence[Counts] = ()  # of each event, once they are counted
    bases: Sequence[Basis] = ()  # what the bound of each reads besides
    size: int = 0  # runs that were made
    selection: int = 0  # and those of them that chose events

    def unseen(self) -> Basis:
        """Return the share of counted runs that are unlike all that selection saw, where that is asked."""
        return {} if self.new is None else {"unseen": self.unlike[1] / max(self.unlike[0], 1.0)}

    def counted(self) -> list[Counted]:
        """Return the events in words, with what was counted."""
        return [
            Counted(str(one.event), one.attack, of, basis, one.notes)
            for one, of, basis in zip(self.events, self.counts, self.bases, strict=True)
        ]

    def notes(self) -> list[str]:
        """Return what a reader should know besides the numbers, whichever event proves most."""
        notes, share = [self.impossible] if self.impossible else [], self.unseen().get("unseen", 0.0)
        if share > UNSEEN:
            notes.append(
                f"{share:.0%} of the counted runs show words that selection never saw: what they tell is not known"
            )
        return notes


def choose_event(
    runs: Runs,
    method: Method,
    attack: Attack,
    choosing: int,
    counting: int,
    *,
    mechanism: Mechanism | None = None,
    lending: bool = False,
) -> Choice:
    """Spend the selection runs: find candidate statistics, then choose the events that promise most.

    Where runs are `lending`, attacks that learn may take a third of those that should count, of 10,000 or more.
    """
    lent = int(LENT * counting) if lending and counting >= ENOUGH else 0
    known = candidate_statistics(runs, attack, choosing, mechanism, lent=lent)
    choosing, counting = choosing + known.borrowed, counting - known.borrowed
    statistics, reading = known.statistics, known.reading
    sizes = known.runs.rest(choosing, known.spent)
    scored = scores(known.runs, sizes, [*statistics, Statistic("more than numbers", unlike_numbers)], Phase.SELECT)
    x, y = (side[:, :-1] for side in scored)

    def chosen(among: Sequence[int]) -> list[Event]:
        several = tuple(statistics[column] for column in among)
        return method.choose(several, x[:, among], y[:, among], families=attack.families, counting=counting)

    events = chosen(range(len(statistics))) or [never(statistics[0])]
    if advice := known.advice(events[0].statistic):  # the kind of event may hide a fault that shows without it, too
        ordinary = [column for column, one in enumerate(statistics) if known.advice(one) != advice]
        events = distinct([*events, *(chosen(ordinary)[:1] if ordinary else [])])
    selected, calls = [], known.runs.calls(sizes)
    for place in sorted({0, *(statistics.index(event.statistic) for event in events)}):
        check_calls(statistics[place].name, [x[:, place], y[:, place]], calls)
    for number, event in enumerate(events):
        column = statistics.index(event.statistic)
        selected.append(
            Selected(
                known.counted(event),
                known.found_by(event.statistic),
                event.share if number else 1 - sum(one.share for one in events[1:]),
                tuple(filter(None, [known.advice(event.statistic)])),
                len(x) + len(y),
                expected_guesses(count_event(event, x[:, column], y[:, column]), counting),
            )
        )
    names = ", ".join(known.name_of(one) for one in statistics[:3]) + (", ..." if len(statistics) > 3 else "")
    return Choice(
        tuple(selected),
        known.runs if reading is None else runs,
        searched=f"{method.searched(attack.families)}, to 9 decimals, of {len(statistics)} statistics ({names})",
        tried=known.tried,
        new=None if reading is None else Statistic("parts never seen", reading.new),
        impossible=impossible(statistics, x, y),
        borrowed=known.borrowed,
        strange=reading is None and any(side[:, -1].any() for side in scored),
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


def count_all(chosen: Choice, method: Method, sizes: Sequence[int], size: int, selection: int) -> Choice:
    """Return a choice with its counts on so many fresh runs, where `size` are made and `selection` of them choose."""
    counts = count(chosen, sizes)
    bases = [one.basis(method) | chosen.unseen() for one in chosen.events]
    return replace(chosen, counts=counts, bases=bases, size=size, selection=selection)


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
