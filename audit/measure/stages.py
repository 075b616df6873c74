"""Audits that may stop early: they choose and count events in stages, each twice as long as the last."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from audit.measure.choice import Choice, Counted
from audit.measure.evaluation import detectable_loss
from audit.methods.method import Basis, Method

__all__ = ["count_in_stages"]

FIRST_STAGE, FEWEST = 1000, 100  # runs of the first stage; more if fewer than FEWEST would choose or count
LAST = 8  # stages: if fewer runs than theirs remain, the next stage takes them all
FIRST_LOOK = 1000  # most counting runs before the first look
PLACES, SHARE = 4, 0.05  # most events counted at a time, and the error share of each but the first
SETTLED = 1.1  # times the promise: an audit that could detect this loss stops early


def count_in_stages(
    method: Method,
    choose: Callable[[int, int, int], Choice],
    count: Callable[[Choice, tuple[int, int], int], list[Counted]],
    *,
    size: int,
    share: float,
    coins: np.random.Generator,
) -> Choice:
    """Choose and count in stages; stop when the runs show a violation, or would have shown a small one."""
    # A `share` of each stage chooses new events, none if the event is registered. A bound for all looks together keeps
    # the guesses of earlier events, as the rule may change before the coin of a run is tossed. Other bounds use only
    # the last events, and all looks share the error probability equally.
    going_on, limit = method.cumulative or share == 0, SETTLED * method.claim.budget
    stages = list(_stages(size, share))
    looks = _looks([counting for _, counting in stages], method.between_looks, going_on=going_on)
    shared: Basis = {} if method.cumulative else {"looks": sum(map(len, looks))}
    expected: list[tuple[float, float] | None] = []
    counted, look, runs_made, spent, selection = [Counted()], 0, 0, 0, 0
    for stage, (choosing, counting) in enumerate(stages):
        chosen = choose(stage, choosing, counting)
        if share:
            chosen = _in_places(chosen)
        selection += choosing
        if stage == 0:
            every, counted = sum(counting for _, counting in stages) / counting, [Counted()] * len(chosen.events)
            expected = [one.expected and (one.expected[0] * every, one.expected[1]) for one in chosen.events]
        if not going_on:
            counted, runs_made = [Counted()] * len(chosen.events), 0
        for upto in looks[stage]:
            look += 1
            fresh = count(chosen, method.sizes(upto - runs_made, coins), look)
            counted = [before + now for before, now in zip(counted, fresh, strict=True)]
            runs_made, spent = upto, spent + upto - runs_made
            bases = [
                one.basis_for(method, of, look, guesses) | shared | chosen.unseen()
                for one, of, guesses in zip(chosen.events, counted, expected, strict=True)
            ]
            known = [(of.counts, basis) for of, basis in zip(counted, bases, strict=True)]
            # Check the cheap condition first: as if the best event was registered.
            has_power = detectable_loss(method, known[:1], 0)[0] <= limit
            if not going_on:
                for basis in bases:
                    basis["choosing"] = choosing
                has_power = has_power and detectable_loss(method, known[:1], selection)[0] <= limit
            if has_power or any(method.lower(*one) > method.claim.budget for one in known):
                return chosen.counted(counted, bases, size=selection + spent, selection=selection)
    return chosen.counted(counted, bases, size=selection + spent, selection=selection)


def _in_places(chosen: Choice) -> Choice:
    """Return `PLACES` events at every stage, each with its error share, so that counts of a place add up."""
    main, *others = chosen.events
    filled = (main, *others, *[main] * (PLACES - len(chosen.events)))[:PLACES]
    shares = (1 - SHARE * (PLACES - 1), *[SHARE] * (PLACES - 1))
    return replace(chosen, events=tuple(replace(one, share=share) for one, share in zip(filled, shares, strict=True)))


def _stages(size: int, share: float) -> Iterator[tuple[int, int]]:
    """Yield how many runs choose and how many count in each stage; the last stage takes all that remain."""
    stage = max(FIRST_STAGE, math.ceil(FEWEST / min(share, 1 - share))) if share else size
    while size:
        runs = stage if size >= LAST * stage else size
        choosing = round(runs * share)
        yield choosing, runs - choosing
        size, stage = size - runs, 2 * stage


def _looks(counted: list[int], growth: float, *, going_on: bool) -> list[list[int]]:
    """Return the numbers of counting runs, of each stage or in all, at which an audit looks; they grow by `growth`."""
    sizes, most = [], 0
    for upto in itertools.accumulate(counted) if going_on else counted:
        steps = math.ceil(math.log(max(upto / FIRST_LOOK, 1.0)) / math.log(growth))
        looks = {math.ceil(upto / growth**back) for back in range(steps + 1)}
        sizes.append(sorted(look for look in looks if look > most))
        most = upto
    return sizes
