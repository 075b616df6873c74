"""The events that an audit counts: chosen on selection runs, or registered; and their counts on fresh runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from audit.attacks import Attack
from audit.attacks.protocol import Exploration, candidate_statistics, with_columns
from audit.attacks.selection import distinct, empty_event
from audit.events import Event, Guesses, Rule, Statistic, WeightRule
from audit.methods.method import Basis, Counts, Floats, Method
from audit.sampling.independence import CLEAR, Spread, check_calls, check_order
from audit.sampling.progress import progress_bar
from audit.sampling.runs import MORE, GivenRuns, Runs, scores
from audit.sampling.streams import Phase, stream
from audit.values import LARGEST, unlike_numbers

__all__ = [
    "REGISTERED",
    "UNSEEN",
    "Choice",
    "Counted",
    "Selected",
    "choose_event",
    "compare_calls",
    "count",
    "count_all",
    "points",
    "registered_choice",
]

EXTRA = 1 / 3  # share of the counting runs that attacks may spend if more training helps
ENOUGH = 10_000  # fewest counting runs for this: with fewer, the rest may have no power
UNSEEN = 0.9  # share of counted runs with parts that selection runs never had, above which there is no power
SUSPICIOUS = 2.33  # standard errors of excess variance between calls that 1 in 100 audits of independent runs has
SURE = 1e-7  # significance level of the test of independence on the runs that are then made
REGISTERED = "registered"  # stands for an attack's name if an event was given


@dataclass(frozen=True)
class Counted:
    """Counts of one event on fresh runs, and their spread between calls; those of several sets of runs add up."""

    counts: Counts = field(default_factory=lambda: {"x": {"runs": 0}, "y": {"runs": 0}})
    spreads: tuple[Spread, ...] = (Spread(),)  # one for each way to group the runs

    def __add__(self, other: Counted) -> Counted:
        counts = {
            name: {key: side.get(key, 0) + other.counts[name].get(key, 0) for key in side | other.counts[name]}
            for name, side in self.counts.items()
        }
        return Counted(counts, tuple(one + two for one, two in zip(self.spreads, other.spreads, strict=True)))

    @property
    def inflation(self) -> float:
        """Ratio of the variance of counts to that of independent runs: the largest that is clear, else 1."""
        clear = CLEAR * math.sqrt(len(self.spreads))
        return math.ceil(100 * max(spread.inflation(clear) for spread in self.spreads)) / 100


@dataclass(frozen=True)
class Selected:
    """One event of an audit, its share of the error probability and, once it is counted, its counts."""

    event: Any  # an Event; in an audit of one run, its rule in words
    attack: str = REGISTERED  # name of the attack that found it
    share: float = 1.0
    notes: tuple[str, ...] = ()  # remarks on it for the reader
    rated: int = 0  # selection runs that chose it
    counts: Counts = field(default_factory=dict)  # of fresh runs
    basis: Basis = field(default_factory=Basis)  # inputs of its bound besides the counts
    excess: float = 0.0  # standard errors by which counts vary more between calls than those of independent runs

    def basis_for(self, method: Method, counted: Counted) -> Basis:
        """Return the inputs of its bound besides the counts."""
        basis = method.basis(self.event)
        if self.share < 1:
            basis["share"] = self.share
        if counted.inflation > 1:
            basis["inflation"] = counted.inflation
        return basis | {"hits": self.event.hits, "rated": self.rated} if self.event.hits else basis


@dataclass(frozen=True)
class Choice:
    """The events that an audit counts, and where fresh outputs come from."""

    events: tuple[Selected, ...]  # the first has the largest expected bound
    runs: Any = None
    searched: str = "one event, registered beforehand"
    tried: tuple[str, ...] = (REGISTERED,)
    new: Statistic | None = None  # whether an output has a part that selection runs never had
    skipped: tuple[str, ...] = ()  # attacks that got no runs
    impossible: str = ""  # note on outputs that only one database gives, by the mechanism's likelihood
    extra_used: int = 0  # counting runs that attacks have spent
    unlike: list[float] = field(default_factory=lambda: [0.0, 0.0])  # counted runs, and those with such a part
    guessed: dict[int, list[Guesses]] = field(default_factory=dict)  # guesses of each event on the last counted runs
    size: int = 0  # runs that were made
    selection: int = 0  # runs that chose events

    def unseen(self) -> Basis:
        """Return the share of counted runs with parts that selection runs never had; empty for numeric outputs."""
        return {} if self.new is None else {"unseen": self.unlike[1] / max(self.unlike[0], 1.0)}

    def counted(self, counted: Sequence[Counted], bases: Sequence[Basis], *, size: int, selection: int) -> Choice:
        """Return the choice with counts and basis of each event; `selection` of the `size` runs chose events."""
        events = [
            replace(one, counts=of.counts, basis=basis, excess=max(spread.excess for spread in of.spreads))
            for one, of, basis in zip(self.events, counted, bases, strict=True)
        ]
        return replace(self, events=tuple(events), size=size, selection=selection)

    def notes(self) -> list[str]:
        """Return remarks for the reader that hold whichever event has the largest bound."""
        notes, share = [self.impossible] if self.impossible else [], self.unseen().get("unseen", 0.0)
        if share > UNSEEN:
            notes.append(
                f"{share:.0%} of the counted runs show words that selection never saw: what they tell is not known"
            )
        for name in self.skipped:
            notes.append(
                f"the attack {name} got no runs, as those before it spent them: Attack.without leaves others out"
            )
        return notes


def registered_choice(event: Event, runs: Runs) -> Choice:
    """Return the choice of an event that was fixed beforehand, with columns by their names."""
    statistic = replace(event.statistic, name=with_columns(event.statistic.name, runs.columns))
    return Choice((Selected(replace(event, statistic=statistic)),), runs.as_given())


def choose_event(
    runs: Runs, method: Method, attack: Attack, choosing: int, counting: int, *, extra: bool = False
) -> Choice:
    """Spend the selection runs: find candidate statistics, then choose the events with the largest expected bounds.

    If outputs have to be read as text, which a selection run may show, it takes as many runs again from those to count.
    """
    extra_allowed = int(EXTRA * counting) if extra and counting >= ENOUGH else 0
    exploration = candidate_statistics(runs, attack, choosing, extra_allowed=extra_allowed)
    statistics, reading = exploration.statistics, exploration.reading
    sizes = exploration.runs.rest(choosing + exploration.extra_used, exploration.spent)
    fresh = sizes if isinstance(exploration.runs, GivenRuns) else exploration.runs.to_make(sizes, Phase.SELECT)
    with_strange = [*statistics, Statistic("more than numbers", unlike_numbers)]
    scored = scores(exploration.runs, sizes, with_strange, Phase.SELECT)
    # If a selection run is not the expected numbers, all outputs are read as text.
    if reading is None and not isinstance(runs, GivenRuns) and any(side[:, -1].any() for side in scored):
        again, counting = min(choosing, counting // 2), counting - exploration.extra_used
        chosen = choose_event(runs.in_writing(), method, attack, again, counting - again, extra=extra)
        return replace(chosen, extra_used=chosen.extra_used + exploration.extra_used + again)
    x, y = (side[:, :-1] for side in scored)
    counting -= exploration.extra_used
    events = _chosen_events(exploration, method, attack, x, y, counting)
    looked_at = {0, *(statistics.index(event.statistic) for event in events)}
    for place in () if isinstance(runs, GivenRuns) else sorted(looked_at):
        check_calls(
            exploration.name_of(statistics[place]),
            [side[len(side) - made :, place] for side, made in zip((x, y), fresh, strict=True)],
            exploration.runs.groups(fresh, Phase.SELECT)[0],
        )
    selected = []
    for number, event in enumerate(events):
        selected.append(
            Selected(
                exploration.counted(event),
                exploration.attack_of(event.statistic),
                event.share if number else 1 - sum(one.share for one in events[1:]),
                tuple(filter(None, [exploration.advice(event.statistic)])),
                len(x) + len(y),
            )
        )
    names = ", ".join(exploration.name_of(one) for one in statistics[:3]) + (", ..." if len(statistics) > 3 else "")
    return Choice(
        tuple(selected),
        exploration.runs if reading is None else runs,
        searched=f"{method.searched(attack.families)}, to 9 decimals, of {len(statistics)} statistics ({names})",
        tried=exploration.tried,
        skipped=exploration.skipped,
        new=None if reading is None else Statistic("parts never seen", reading.new),
        impossible=impossible(statistics, x, y),
        extra_used=exploration.extra_used,
    )


def _chosen_events(
    exploration: Exploration, method: Method, attack: Attack, x: Floats, y: Floats, counting: int
) -> list[Event]:
    """Return the events that selection scores choose; if the first has advice, also another, as it may hide faults."""
    statistics = exploration.statistics

    def chosen(among: Sequence[int]) -> list[Event]:
        several = tuple(statistics[column] for column in among)
        return method.choose(several, x[:, among], y[:, among], families=attack.families, counting=counting)

    events = chosen(range(len(statistics))) or [empty_event(statistics[0])]
    if advice := exploration.advice(events[0].statistic):
        ordinary = [column for column, one in enumerate(statistics) if exploration.advice(one) != advice]
        events = distinct([*events, *(chosen(ordinary)[:1] if ordinary else [])])
    for known in exploration.registered_events:
        if events[0].statistic is not known.statistic:
            events = [*(one for one in events if one.statistic is not known.statistic), known]
    return events


def count(chosen: Choice, sizes: Sequence[int]) -> list[Counted]:
    """Count all events on the same fresh runs."""
    statistics = [selected.event.statistic for selected in chosen.events] + ([] if chosen.new is None else [chosen.new])
    x, y = scores(chosen.runs, sizes, statistics, Phase.COUNT)
    if chosen.new is not None:
        chosen.unlike[0] += len(x) + len(y)
        chosen.unlike[1] += float(x[:, -1].sum() + y[:, -1].sum())
    groups, counted = chosen.runs.groups(sizes, Phase.COUNT), []
    for column, selected in enumerate(chosen.events):
        sides = [x[:, column], y[:, column]]
        chosen.guessed[column] = [selected.event.rule.guess(side) for side in sides]
        counts, shares = count_event(selected.event, *sides), [1.0, 1.0]
        if isinstance(chosen.runs, GivenRuns):  # all given outputs show more than the counted ones
            sides = chosen.runs.scored(selected.event.statistic)
            check_order("the guess", [selected.event.rule.guess(side) for side in sides])
            shares = [size / len(side) for size, side in zip(sizes, sides, strict=True)]
        else:
            check_calls("the guess", chosen.guessed[column], groups[0])
        evidence = points(selected.event.rule, *sides)
        counted.append(Counted(counts, tuple(Spread.of(evidence, each, shares) for each in groups)))
    return counted


def points(rule: Rule, x: Floats, y: Floats) -> list[Floats]:
    """Return the evidence of each run for a loss: its weight, or above 0 for a right guess and below for a wrong."""
    if isinstance(rule, WeightRule):
        return [rule.weights[rule.bins(side)] for side in (x, y)]
    right = [-rule.guess(x), rule.guess(y)]
    share = (sum(int(np.sum(side > 0)) for side in right) + 0.5) / (sum(map(np.count_nonzero, right)) + 1)
    return [np.where(side > 0, 1 - share, share * side) for side in right]


def count_all(chosen: Choice, method: Method, sizes: Sequence[int], size: int, selection: int) -> Choice:
    """Return a choice with its counts on `sizes` fresh runs; `size` runs are made, and `selection` of them choose."""
    counted = count(chosen, sizes)
    bases = [one.basis_for(method, of) | chosen.unseen() for one, of in zip(chosen.events, counted, strict=True)]
    for basis in bases:
        if "weights" in basis:
            basis["lots"] = int(stream(chosen.runs.root, Phase.LOTS).generate_state(1)[0])
    return chosen.counted(counted, bases, size=size, selection=selection)


def compare_calls(chosen: Choice, *, visible: bool | None) -> list[str]:
    """If counts of the first event look dependent, test fresh runs: refuse dependent ones, or return a note."""
    main = chosen.events[0]
    if main.excess < SUSPICIOUS:
        return []
    sizes = [math.ceil(MORE * side["runs"]) for side in main.counts.values()]
    what = f"{chosen.runs.name}: calls are compared"
    with progress_bar(what, sum(sizes), visible=visible) as advance:
        runs = replace(chosen.runs, advance=advance)
        sides = scores(runs, sizes, [main.event.statistic], Phase.COMPARE)
    guesses = [main.event.rule.guess(side[:, 0]) for side in sides]
    check_calls("the guess", guesses, runs.groups(sizes, Phase.COMPARE)[0], SURE)
    return [
        "counts varied between calls as in 1 of 100 audits of independent runs: "
        f"{sum(sizes):,} more runs were compared, and show no dependence"
    ]


def count_event(event: Event, scores_x: Floats, scores_y: Floats) -> Counts:
    """Count the guesses or bins of an event, from scores of shape (runs,) on either database."""
    return {
        name: {"runs": scores.size, **event.rule.counts(scores)} for name, scores in (("x", scores_x), ("y", scores_y))
    }


def impossible(statistics: Sequence[Statistic], x: Floats, y: Floats) -> str:
    """Return a note on selection runs that only one database can give, by the mechanism's likelihood; else empty."""
    # It is a note and no proof: if a density is too small for a float, its logarithm is -inf as well.
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
