"""Counts of one event in two audits: whether they can be of one law, and whether the loss of the event grew."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audit.methods.method import method_named
from audit.results import AuditResult
from audit.results.formatting import nearest

__all__ = ["MOST", "CountTest", "count_changes", "is_binned", "is_weighed"]

Floats = NDArray[np.float64]

MOST = 10**10  # runs up to which the exact law is short enough to be summed
REACH = 15  # standard deviations, and
FAR = 50  # runs, beyond which that law has less than 1e-25
# Of all runs, at which an event with many bins is cut into two: the heavier bins, and the others.
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.997, 0.999)


@dataclass(frozen=True)
class CountTest:
    """Tests of the counts of one event in two audits; both p-values are multiplied by the number of tests."""

    p_value: float  # of no change
    p_growth: float  # of no growth: to be looked at where `p_value` is small
    changed: str  # old and new shares of what changed most
    grown: str  # and of what grew most


def count_changes(name: str, old: AuditResult, new: AuditResult) -> CountTest:
    """Test whether two audits counted the same event under the same law.

    Guarantee: if all runs are independent and both audits have one law, P(p_value <= a) <= a. A rule that guesses a
    database has a region of outputs for each; a rule that weighs bins is cut at given shares of all runs. The hits in
    each region on each database are tested. So are the right guesses among all in a game with a fair coin, else the
    difference between the hits on both. Given their sums, counts are hypergeometric (Fisher, "The Logic of Inductive
    Inference", 1935). Growth means more right guesses, whose log-odds are the measured loss; without a coin, a larger
    difference between the probabilities of a region, the delta that it shows at epsilon 0.
    """
    for result in (old, new):
        _check_counts(name, result)
    regions = list(_cuts(old, new) if is_binned(old) or is_binned(new) else _guesses(old, new))
    tested = [(tables, words) for words, *pair in regions for tables in ([pair[0]], [pair[1]], pair)]
    grown = [(pair, words) for words, *pair in regions]
    method = method_named(new.bound)
    if method is not None and method.coins:
        right = _right_guesses(old, new)
        tested = [(tables, words) for tables, words in tested if len(tables) == 1]
        grown = [([right], f"right among all guesses {right.shares}")]
        tested += grown
    change = min(((_two_sided(*tables), words) for tables, words in tested), default=(1.0, "nothing was ever guessed"))
    growth = min(((_tails(*tables)[1], words) for tables, words in grown), default=(1.0, "nothing was ever guessed"))
    factors = max(1, len(tested)), max(1, len(grown))
    return CountTest(min(1.0, factors[0] * change[0]), min(1.0, factors[1] * growth[0]), change[1], growth[1])


def is_binned(result: AuditResult) -> bool:
    """Tell whether an event was counted by the bins of a likelihood ratio."""
    return any(key.startswith("bin ") for side in result.counts.values() for key in side)


def is_weighed(result: AuditResult) -> bool:
    """Tell whether the weights of all bins are known; those of files of the first schema are not."""
    weights = result.basis.get("weights")
    numbers = isinstance(weights, list) and all(isinstance(w, int | float) and -1e300 < w < 1e300 for w in weights)
    return numbers and bool(weights) and result.basis.get("toward") in ("x", "y")


@dataclass(frozen=True)
class _Table:
    """Hits among runs, in two audits: given the sums and no change, the new hits are hypergeometric."""

    old: int
    old_runs: int
    new: int
    new_runs: int

    @property
    def hits(self) -> int:
        return self.old + self.new

    @property
    def shares(self) -> str:
        before, after = self.old / max(1, self.old_runs), self.new / max(1, self.new_runs)
        return f"{nearest(100 * before)}% -> {nearest(100 * after)}%"

    def law(self) -> tuple[int, Floats]:
        """Return the least number that is possible, or all but impossible, and the probabilities from it on."""
        hits, runs, total = self.hits, self.new_runs, max(1, self.old_runs + self.new_runs)
        mean = runs * hits / total
        reach = math.ceil(REACH * math.sqrt(mean * (1 - hits / total) * (1 - runs / total)) + FAR)
        least = max(0, hits - self.old_runs, math.floor(mean) - reach)
        most = min(runs, hits, math.ceil(mean) + reach)
        k = np.arange(least, most, dtype=np.float64)
        steps = np.log((hits - k) / (k + 1) * ((runs - k) / (self.old_runs - hits + k + 1)))
        logs = np.concatenate([[0.0], np.cumsum(steps)])
        weights = np.exp(logs - logs.max())
        return least, weights / weights.sum()


def _guesses(old: AuditResult, new: AuditResult) -> Iterator[tuple[str, _Table, _Table]]:
    """Yield for either database what is said of naming it: in words, where it is right, and where it is wrong."""

    def table(side: str, key: str) -> _Table:
        before, after = old.counts[side], new.counts[side]
        return _Table(before[key], before["runs"], after[key], after["runs"])

    always = all(sum(side.values()) == 2 * side["runs"] for audit in (old, new) for side in audit.counts.values())
    for guess, other in (("y", "x"), ("x", "y"))[: 1 if always else 2]:  # without abstentions one tells the other
        right, wrong = (table(side, f"guessed_{guess}") for side in (guess, other))
        if right.hits or wrong.hits:
            yield f"{guess} named on {guess} {right.shares}, on {other} {wrong.shares} of runs", right, wrong


def _cuts(old: AuditResult, new: AuditResult) -> Iterator[tuple[str, _Table, _Table]]:
    """Yield the same of an event with bins: of those that weigh most, down to given shares of all runs."""
    weights, toward = np.array(new.basis["weights"], dtype=np.float64), new.basis["toward"]
    order = np.argsort(-weights, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(weights[order])), weights.size - 1)  # of bins that weigh the same
    sums, runs = {}, {}
    for audit, result in (("old", old), ("new", new)):
        for side, counts in result.counts.items():
            hits = np.array([counts.get(f"bin {k}", 0) for k in order], dtype=np.int64)
            sums[audit, side], runs[audit, side] = np.cumsum(hits)[ends], counts["runs"]
    rate = sum(sums.values()) / max(1, sum(runs.values()))
    for place in sorted({int(np.searchsorted(rate, share)) for share in SHARES}):
        if place < ends.size - 1:  # the last is all runs
            sides = (toward, "x" if toward == "y" else "y")
            heavy, other = (
                _Table(
                    int(sums["old", side][place]), runs["old", side], int(sums["new", side][place]), runs["new", side]
                )
                for side in sides
            )
            least = weights[order[ends[place]]]
            shares = f"on {sides[0]} {heavy.shares}, on {sides[1]} {other.shares} of runs"
            yield f"a weight of {least:.3g} or more {shares}", heavy, other


def _right_guesses(old: AuditResult, new: AuditResult) -> _Table:
    """Return right guesses among all: of runs whose database a fair coin picked, their odds are the loss shown."""
    numbers = []
    for result in (old, new):
        right = result.counts["x"]["guessed_x"] + result.counts["y"]["guessed_y"]
        wrong = result.counts["x"]["guessed_y"] + result.counts["y"]["guessed_x"]
        numbers += [right, right + wrong]
    return _Table(*numbers)


def _two_sided(*tables: _Table) -> float:
    return min(1.0, 2 * min(_tails(*tables)))


def _tails(table: _Table, against: _Table | None = None) -> tuple[float, float]:
    """Return how likely new hits are to be as few and as many as they are, or their difference to those of another."""
    least, law = table.law()
    least_other, other = (0, np.ones(1)) if against is None else against.law()
    difference = table.new - (0 if against is None else against.new)
    below = np.concatenate([[0.0], np.cumsum(law)])  # of fewer hits than each number
    above = np.concatenate([np.cumsum(law[::-1])[::-1], [0.0]])  # of as many or more
    place = difference + least_other + np.arange(other.size) - least
    few = other @ below[np.clip(place + 1, 0, law.size)]
    many = other @ above[np.clip(place, 0, law.size)]
    return float(few), float(many)


def _check_counts(name: str, result: AuditResult) -> None:
    """Refuse counts that no runs give, as a file may hold them."""
    binned = is_binned(result)
    kinds = {f"bin {k}" for k in range(len(result.basis["weights"]))} if binned else {"guessed_x", "guessed_y"}
    for side in ("x", "y"):
        counts = result.counts.get(side, {})
        parts = {key: number for key, number in counts.items() if key != "runs"}
        complete = parts.keys() <= kinds if binned else parts.keys() == kinds
        if not complete or min(parts.values(), default=0) < 0 or sum(parts.values()) > counts.get("runs", -1):
            raise ValueError(f"{name}: counts on {side} must be parts of its runs, got {counts}")
