"""Audits that may stop early: every run counts, teaches the rule of the next ones, and may be the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks import Attack
from audit.bounds.betting import Bet, rates
from audit.events import Event, Rule, WeightRule
from audit.measure.choice import UNSEEN, Choice, Counted, Selected, choose_event, points, registered_choice
from audit.methods.betting import FIRST, SCORED, Bets, block_size, shares
from audit.methods.method import Basis, Floats
from audit.outputs import read_outputs
from audit.results.audit_result import STOPPED
from audit.sampling.independence import Spread, check_calls
from audit.sampling.runs import GivenRuns, Runs, fresh_outputs
from audit.sampling.streams import Phase, stream
from audit.values import unlike_numbers

__all__ = ["bet_on_runs"]

TEACHING, KEPT = 20_000, 2**25  # runs after which the rule stays, and numbers of outputs that are kept to choose it
LARGEST_SCORE = 30.0  # nats
AGAIN = 1.3  # ratio of runs between two such questions


@dataclass
class _Past:
    """Outputs on `x` and on `y` from which rules are chosen."""

    runs: Runs
    outputs: list[NDArray[Any]]
    seen: list[NDArray[Any]]  # the same, as the last rule reads them

    def given(self, number: int) -> GivenRuns:
        """Return these outputs as a source for the choice of a rule."""
        root = stream(self.runs.root, Phase.BET, number, 2)
        given = GivenRuns.shuffled(self.runs.pair, root, self.runs.kind, self.outputs)
        return replace(given, mechanism=self.runs.mechanism)

    @property
    def teaches(self) -> bool:
        """Whether more outputs fit, and may improve the rule."""
        return sum(map(len, self.outputs)) < min(TEACHING, KEPT // self.cells)

    @property
    def cells(self) -> int:
        """How many numbers take as much memory as one output."""
        kind = self.runs.kind
        return max(1, kind.letters if kind.shape is None else math.prod(kind.shape))

    def add(self, fresh: list[NDArray[Any]], *, in_words: bool) -> None:
        """Keep more outputs; if they are not the expected numbers, all later ones are read as text, if `in_words`."""
        self.seen = self.outputs = [np.concatenate(both) for both in zip(self.outputs, fresh, strict=True)]
        unlike = [unlike_numbers(side) for side in fresh] if self.runs.kind.shape is not None else []
        if not (in_words and self.teaches and any(side.any() for side in unlike)):
            return
        kind = replace(self.runs.kind, shape=None)
        if isinstance(self.runs, GivenRuns):
            texts = [read_outputs(side, kind) for side in self.runs.given]
            self.runs = replace(self.runs, kind=kind, outputs=texts)
            self.outputs = [side[:used] for side, used in zip(texts, self.runs.used, strict=True)]
        else:  # codes of words do not tell them
            self.runs = replace(self.runs, kind=kind)
            known = [side[unlike_numbers(side) == 0] for side in self.outputs]
            self.outputs = [read_outputs(side, kind) for side in known]


def bet_on_runs(
    runs: Runs,
    method: Bets,
    attack: Attack,
    event: Event | None,
    *,
    first: list[NDArray[Any]],
    size: int,
    made: int,
    say: Callable[[str], None],
) -> tuple[Choice, list[str]]:
    """Bet on blocks of runs until the promise is refuted, a small violation would have been, or `size` runs are made.

    The `first` outputs choose the first rule; `made` runs were made so far, theirs included. Return the rule of the
    last bet, with the counts of all, and remarks.

    Given outputs are bet on in their order, in whole blocks, so that a longer file goes on with the same bets. No coin
    picked their databases, so each block takes equally many of either: money grows by a factor with a mean for either
    database, and if the mean of both is at most 1, so is their product.
    """
    past, coins = _Past(runs, first, first), np.random.default_rng(stream(runs.root, Phase.COINS))
    chosen, last_question, notes, bettors, betted = Choice(()), made, list[str](), list[_Bettor](), 0
    while made < size:
        block = min(block_size(made, size), max(FIRST, KEPT // past.cells))
        if isinstance(past.runs, GivenRuns):
            on_y = block // 2
            sizes = (on_y, on_y)
            if min(past.runs.left) < on_y:
                break
        else:
            on_y = int(coins.binomial(block, 0.5))
            sizes = (block - on_y, on_y)
        try:
            again = not bettors or (event is None and past.teaches)
            following = _choice(past, method, attack, event, bettors, max(block, made)) if again else chosen
            fresh = fresh_outputs(past.runs, sizes, Phase.BET, betted)
        except KeyboardInterrupt:  # elsewhere it would leave half a bet
            if not betted:
                raise
            notes.append(f"{STOPPED} {made:,} runs: the bound holds")
            break
        if again:
            following.unlike[:] = chosen.unlike
            chosen, bettors = following, bettors or [_Bettor() for _ in following.events]
            for bettor, tally in zip(bettors, _tallies(chosen, past.outputs), strict=True):
                bettor.tally = tally
        calls = past.runs.groups(sizes, Phase.BET)[0]
        for bettor, one, now in zip(bettors, chosen.events, _tallies(chosen, fresh), strict=True):
            bettor.bet(one.event.rule, now, _spread(chosen, one.event, fresh, calls))
        if chosen.new is not None:
            chosen.unlike[0] += sum(sizes)
            chosen.unlike[1] += sum(float(side.sum()) for side in chosen.runs.scored(chosen.new, fresh))
        if past.teaches:
            past.add(fresh, in_words=event is None)
        made, betted = made + sum(sizes), betted + 1
        totals = [
            (bettor.counted.counts, bettor.basis(one)) for bettor, one in zip(bettors, chosen.events, strict=True)
        ]
        evidence = max(method.evidence(basis) for _, basis in totals)
        odds, decide = (math.exp(min(log, 700.0)) for log in (evidence, method.needed))
        say(f"odds of {odds:,.3g} to 1 against the promise, {decide:,.3g} decide")
        if evidence >= method.needed and max(method.lower(*one) for one in totals) > method.claim.budget:
            break
        if made >= AGAIN * last_question:
            last_question = made
            if chosen.unseen().get("unseen", 0.0) <= UNSEEN and method.settled(*totals[0]):
                break
    for place, one in enumerate(chosen.events):
        sides = [one.event.rule.guess(side) for side in chosen.runs.scored(one.event.statistic, past.seen)]
        check_calls("the guess", sides, [np.ones(len(side), int) for side in sides])  # calls may depend on each other
        chosen.guessed[place] = sides
    bases = [bettor.basis(one) | chosen.unseen() for bettor, one in zip(bettors, chosen.events, strict=True)]
    chosen = replace(chosen, runs=replace(past.runs, read=chosen.runs.read, read_shape=chosen.runs.read_shape))
    counted = [bettor.counted for bettor in bettors]
    runs_bet = sum(side["runs"] for side in counted[0].counts.values())
    return chosen.counted(counted, bases, size=made, selection=0 if event else made - runs_bet), notes


def _choice(
    past: _Past, method: Bets, attack: Attack, event: Event | None, bettors: Sequence[_Bettor], counting: int
) -> Choice:
    """Return the registered event, or those that all outputs so far choose for the next bet."""
    rows = bettors[0].rows if bettors else []
    given = past.given(len(rows))
    if event is not None:
        return registered_choice(event, given)
    last = tuple(Bet(**row) for row in rows[-1:])
    choosing = 2 * min(map(len, past.outputs))
    chosen = choose_event(given, replace(method, last=last), attack, choosing, counting)
    first = chosen.events[0]
    if method.places == 1:
        return replace(chosen, events=(replace(first, share=1.0),))
    nothing = Selected(Event(first.event.statistic, WeightRule(np.array([]), np.zeros(1))))
    score = next((one for one in chosen.events if isinstance(one.event.rule, WeightRule)), nothing)
    return replace(chosen, events=(replace(first, share=0.5), replace(score, share=0.5)))


def _tallies(chosen: Choice, outputs: Sequence[NDArray[Any]]) -> list[Floats]:
    """Return how many outputs on `x` and on `y` have each guess of an event (`x`, none, `y`), or are in each bin."""
    tallies = []
    for one in chosen.events:
        rule, sides = one.event.rule, chosen.runs.scored(one.event.statistic, outputs)
        if isinstance(rule, WeightRule):
            tallies.append([np.bincount(rule.bins(side), minlength=rule.weights.size) for side in sides])
        else:
            tallies.append([np.bincount(rule.guess(side) + 1, minlength=3) for side in sides])
    return [np.array(tally, float) for tally in tallies]


def _spread(chosen: Choice, event: Event, outputs: Sequence[NDArray[Any]], calls: list[NDArray[np.intp]]) -> Spread:
    """Return how counts vary between calls, if calls have several runs; refuse runs that depend on each other."""
    if max(int(sizes.max(initial=0)) for sizes in calls) <= 1:
        return Spread()
    sides = chosen.runs.scored(event.statistic, outputs)
    check_calls("the guess", [event.rule.guess(side) for side in sides], calls)
    return Spread.of(points(event.rule, *sides), calls)


@dataclass
class _Bettor:
    """The bets on one event after another, each chosen from earlier runs."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    counted: Counted = field(default_factory=Counted)
    tally: Floats = field(default_factory=lambda: np.zeros((2, 3)))  # of the rule in use, on all earlier outputs

    def bet(self, rule: Rule, now: Floats, spread: Spread) -> None:
        """Add a bet on the tallies of fresh outputs."""
        runs = [int(side.sum()) for side in now]
        if isinstance(rule, WeightRule):
            sides = [0, 1] if rule.toward == "y" else [1, 0]
            expected = [np.round(rates(self.tally[side]), 9).tolist() for side in sides]
            score = np.clip(rule.weights, -LARGEST_SCORE, LARGEST_SCORE).tolist()  # of a user it may be infinite
            values = [score, *expected, *(now[side].astype(int).tolist() for side in sides)]
            row: dict[str, Any] = dict(zip(SCORED, values, strict=True))
            counts = {name: {"runs": number} for name, number in zip("xy", runs, strict=True)}
        else:
            frequencies = self.tally / np.maximum(self.tally.sum(axis=1, keepdims=True), 1.0)
            regions, outputs = rule.parameters()["regions"], float(self.tally.sum())
            right, wrong = int(now[0, 0] + now[1, 2]), int(now[0, 2] + now[1, 0])
            bet = Bet(regions, *shares(frequencies, outputs), sum(runs), right, wrong)
            row = bet._asdict()
            counts = {
                name: {"runs": number, "guessed_x": int(side[0]), "guessed_y": int(side[2])}
                for name, number, side in zip("xy", runs, now, strict=True)
            }
        self.rows, self.counted, self.tally = (
            [*self.rows, row],
            self.counted + Counted(counts, (spread,)),
            self.tally + now,
        )

    def basis(self, one: Selected) -> Basis:
        """Return the inputs of the bound besides the counts."""
        basis = Basis(bets=self.rows)
        if one.share < 1:
            basis["share"] = one.share
        if self.counted.inflation > 1:
            basis["inflation"] = self.counted.inflation
        return basis
