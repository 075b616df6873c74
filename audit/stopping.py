"""When an audit that may stop early chooses an event, counts it, and ends: in stages, each twice as long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from audit.events import Event
from audit.methods.evaluation import add_counts, detectable_loss
from audit.methods.method import Basis, Counts, Method

__all__ = ["Stopped", "count_in_stages"]

FIRST_STAGE, FEWEST = 1000, 100  # runs of the first stage, or as many as let so many choose and count
FIRST_LOOK = 1000  # counting runs before the first look at an event that was registered
SETTLED = 1.1  # of the promise: an audit that may stop early does so where it could detect as much


class Chosen(Protocol):
    """An event that was chosen or registered."""

    @property
    def event(self) -> Event:
        """What is counted."""

    @property
    def expected(self) -> tuple[float, float] | None:
        """How many guesses are to be expected, and the share that is right."""

    def seen(self) -> Basis:
        """Return what counting has shown besides counts."""


Choice = TypeVar("Choice", bound=Chosen)


@dataclass(frozen=True)
class Stopped(Generic[Choice]):
    """Where an audit has ended: its last event, what was counted, and how many runs were made and chose events."""

    chosen: Choice
    basis: Basis
    counts: Counts
    size: int
    selection: int


def count_in_stages(
    method: Method,
    choose: Callable[[int, int, int], Choice],
    count: Callable[[Choice, tuple[int, int], int], Counts],
    *,
    size: int,
    share: float,
    coins: np.random.Generator,
) -> Stopped[Choice]:
    """Choose and count in stages, and stop where a violation is shown, or a small one would have been.

    A `share` of each stage chooses an event anew, so that an obvious violation costs little. A bound for all looks at
    once goes on with the guesses at earlier events: a rule may change before the coin of a run is tossed. Any other
    bound is of the last event alone, with a share of the error for each look. With no share the event is registered.

    `choose` takes the number of a stage and its runs that choose and count; `count` the runs on `x` and on `y` and the
    number of the look.
    """
    going_on, budget = method.cumulative or share == 0, method.claim.budget
    counting_in_all = sum(counting for _, counting in _stages(size, share))
    expected: tuple[float, float] | None = None
    counts, look, looked, made, spent, selection = _nothing(), 0, 0, 0, 0, 0
    for stage, (choosing, counting) in enumerate(_stages(size, share)):
        chosen = choose(stage, choosing, counting)
        selection += choosing
        if stage == 0 and chosen.expected:
            guesses, right = chosen.expected
            expected = guesses * counting_in_all / counting, right
        if not going_on:
            counts, made = _nothing(), 0
        for upto in _looks(looked, made + counting, method.between_looks):
            look, looked = look + 1, upto
            counts = add_counts(counts, count(chosen, method.sizes(upto - made, coins), look))
            made, spent = upto, spent + upto - made
            basis = {**method.basis(chosen.event, look=look, expected=expected), **chosen.seen()}
            if not going_on:
                basis["choosing"] = choosing
            shown = method.lower(counts, basis) > budget
            if shown or detectable_loss(method, counts, basis, selection) <= SETTLED * budget:
                return Stopped(chosen, basis, counts, selection + spent, selection)
    return Stopped(chosen, basis, counts, selection + spent, selection)


def _nothing() -> Counts:
    return {"x": {"runs": 0}, "y": {"runs": 0}}


def _stages(size: int, share: float) -> Iterator[tuple[int, int]]:
    """Yield how many runs choose and how many count in each stage; the last one takes all that are left."""
    stage = max(FIRST_STAGE, math.ceil(FEWEST / min(share, 1 - share))) if share else size
    while size:
        runs = stage if size >= 3 * stage else size
        choosing = round(runs * share)
        yield choosing, runs - choosing
        size, stage = size - runs, 2 * stage


def _looks(looked: int, upto: int, growth: float) -> list[int]:
    """Return after how many counting runs an audit looks, more than ever: each time after `growth` times as many."""
    steps = math.ceil(math.log(max(upto / FIRST_LOOK, 1.0)) / math.log(growth))
    looks = {math.ceil(upto / growth**back) for back in range(steps + 1)}
    return sorted(look for look in looks if look > looked)
