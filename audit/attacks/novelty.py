"""The attack on new values: numbers in gaps between those of one database, or beyond all that runs have given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import EXACT_ATTACKS, HELD, explore, index_of, is_number, largest
from audit.attacks.protocol import MOST as SPENDABLE
from audit.attacks.protocol import Exploration
from audit.events import DECIMALS, Statistic, cell

__all__ = ["candidates"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Entries = Sequence[int | None]
Ordered = tuple[Floats, Places, Places, Places]  # distinct numbers, their rows, and how often x and y gave them

SHARE = 1 / 4  # share of the selection runs used, unless classifiers have made as many
MOST = 20_000  # most of these runs
GLIMPSE = 2**16  # numbers of either database that are searched
LEAST = 40  # fewest runs on either database
SINGLY = 128  # entries that are searched one by one
SEVERAL = 4  # fewest entries of which all are searched together, too
GAPS = 24  # most gaps that have codes
FEWEST = 4  # fewest numbers of one database in a gap of the other
TRIMMED = 8  # one in so many numbers of a gap is cut at either end, where chance adds some
NEXT = 10.0**-DECIMALS  # least distance of two distinct numbers
AROUND = 16  # numbers on either side from which the usual width of gaps is estimated
WIDE = 1 / 2  # share of their span from which a gap is wide; one in 1e9 equal gaps is by chance
APART = 6.0  # mean gaps around a number in which a value does not count as new
WIDEST = 2 * SINGLY  # most wide gaps
SPANS = 1 / 4, 1, 4, 16  # distances beyond the numbers seen, in spans of these


@dataclass(frozen=True)
class Gap:
    """An open interval of numbers, or of their fractions, of one entry of an output or of any (None)."""

    turn: tuple[int, float]  # sort key: the smaller, the more surprising
    low: float
    high: float
    entry: int | None
    fraction: bool

    def holds(self, numbers: tuple[Floats, Floats]) -> NDArray[np.bool_]:
        """Tell which outputs have a number inside, given their entries and the fractions of these."""
        of = numbers[self.fraction] if self.entry is None else numbers[self.fraction][:, [self.entry]]
        return np.asarray(((of > self.low) & (of < self.high)).any(axis=1))

    def in_words(self, shape: tuple[int, ...]) -> str:
        """Return the gap as reports show it."""
        name = "any entry" if self.entry is None else cell(*index_of(self.entry, shape)).name
        name = f"fraction of {name}" if self.fraction else name
        low = f"{self.low:.10g} < " if math.isfinite(self.low) else ""
        return f"{low}{name} < {self.high:.10g}" if math.isfinite(self.high) else f"{name} > {self.low:.10g}"


def candidates(exploration: Exploration) -> Iterator[Statistic]:
    """Yield two statistics: which gap of one database holds an entry, and how far an entry lies beyond all seen."""
    # Under equal laws, one of n gaps holds about log2(n) numbers of the other database by chance.
    if exploration.statistics_by_attack.keys() & EXACT_ATTACKS:
        return
    x, y = taught(exploration)
    entries = [entry for entry in range(math.prod(exploration.shape)) if entry not in exploration.words]
    if min(len(x), len(y)) < LEAST or not entries:
        return
    ordered = list(_ordered(x, y, entries))
    gaps = sorted((gap for one in ordered for gap in _one_sided(*one)), key=lambda gap: gap.turn)[:GAPS]
    gaps.sort(key=lambda gap: gap.entry is None)  # a gap of one entry is stronger evidence than one of any entry
    if gaps:
        yield _inside(gaps, exploration.shape)
    if len(entries) >= SEVERAL:
        wide = sorted((gap for one in ordered for gap in _wide(*one)), key=lambda gap: gap.turn)[:WIDEST]
        yield _new(wide, *(side.astype(np.float64) for side in (x, y)))


def taught(exploration: Exploration) -> list[NDArray[Any]]:
    """Return the exploring outputs and the training outputs of classifiers, or as many new ones: (runs, entries)."""
    explored = explore(exploration)
    entries = explored.center.size
    if (more := exploration.shared.get("taught")) is None:
        runs = min(int(SHARE * exploration.choosing), MOST) - sum(map(len, explored.held))
        runs = min(runs, HELD // entries, int(SPENDABLE * exploration.choosing) - exploration.spent)
        if runs < 2 * LEAST:
            return list(explored.held)
        more = exploration.outputs(runs, lambda outputs: outputs.reshape(len(outputs), entries))
    most = max(1, GLIMPSE // entries)
    return [np.concatenate([side, *others])[:most] for side, others in zip(explored.held, more, strict=True)]


def _ordered(x: NDArray[Any], y: NDArray[Any], entries: list[int]) -> Iterator[tuple[Ordered, Entries, bool]]:
    """Yield the numbers of each entry in order, and of all entries together; then their fractions."""
    for fraction, sides in enumerate(zip(_numbers(x), _numbers(y), strict=True)):
        on_x, on_y = (np.ascontiguousarray(side[:, entries].T) for side in sides)
        if on_x.any() or on_y.any():
            yield _distinct(on_x[:SINGLY], on_y[:SINGLY]), entries, bool(fraction)
            if len(entries) >= SEVERAL:
                yield _distinct(on_x.reshape(1, -1), on_y.reshape(1, -1)), [None], bool(fraction)


def _distinct(x: Floats, y: Floats) -> Ordered:
    """Return the distinct numbers of each row, shape (rows, numbers), without NaN."""
    both = np.hstack([x, y])  # the last bit of each marks its database, so that one sort orders both
    bits = both.view(np.int64)
    bits &= -2
    bits[:, x.shape[1] :] |= 1
    both.sort(axis=1)
    labels = (bits & 1).ravel()
    bits &= -2
    differs = np.ones(both.shape, bool)
    differs[:, 1:] = both[:, 1:] != both[:, :-1]
    at = np.flatnonzero(differs)
    of_y, values = np.add.reduceat(labels, at), both.ravel()[at]
    known = ~np.isnan(values)
    of_x = np.diff(at, append=both.size) - of_y
    return values[known], (at // both.shape[1])[known], of_x[known], of_y[known]


def _one_sided(of: Ordered, entries: Entries, fraction: bool) -> Iterator[Gap]:
    """Yield the gaps between numbers of one database that hold the most numbers of the other."""
    (values, row, of_x, of_y), rows = of, len(entries)
    on_x, on_y = of_x > 0, of_y > 0
    turns = (on_x[1:] != on_x[:-1]) | (on_y[1:] != on_y[:-1]) | (row[1:] != row[:-1]) | (on_x & on_y)[1:]
    start = np.flatnonzero(np.append(np.full(min(1, row.size), True), turns))
    end = np.append(start[1:], row.size) - 1
    for new, known, of_new, of_known in ((on_y, on_x, of_y, of_x), (on_x, on_y, of_x, of_y)):
        held = np.where((new & ~known)[start], np.add.reduceat(of_new, start), 0)
        totals = [np.maximum(np.bincount(row, counts, rows), 1) for counts in (of_new, of_known)]
        each, chance = np.log2(1 + totals[1] / totals[0]), np.log2(np.bincount(row, known, rows) + 1)
        surprise, before = held * each[row[start]] - chance[row[start]], [0] * rows
        for one in largest(np.where(held >= FEWEST, surprise, -np.inf), 4 * GAPS).tolist():
            first, last, which = start[one], end[one] + 1, int(row[start[one]])
            if held[one] < FEWEST:
                break
            inside, less = np.repeat(values[first:last], of_new[first:last]), held[one] // TRIMMED
            low = float(inside[less]) - NEXT if first and row[first - 1] == which else -math.inf
            high = float(inside[-1 - less]) + NEXT if last < row.size and row[last] == which else math.inf
            # Entries may have different laws, so that the first two gaps of each entry come before others.
            yield Gap((before[which] // 2, -float(surprise[one])), low, high, entries[which], fraction)
            before[which] += 1


def _wide(of: Ordered, entries: Entries, fraction: bool) -> Iterator[Gap]:
    """Yield the gaps of either database that are far wider than those around, which is unlikely by chance."""
    for times in of[2:]:
        values, row = of[0][times > 0], of[1][times > 0]
        first, last = slice(None, 1 - 2 * AROUND), slice(2 * AROUND - 1, None)
        low, high = values[AROUND - 1 : -AROUND], values[AROUND : 1 - AROUND]
        around = np.where(row[first] == row[last], values[last] - values[first], np.inf)
        apart = APART / (2 * AROUND - 2) * (around - (high - low))
        for one in np.flatnonzero(high - low > WIDE * around).tolist():
            ends = float(low[one] + apart[one]), float(high[one] - apart[one])
            yield Gap((0, -float((high - low)[one] / around[one])), *ends, entries[int(row[one])], fraction)


def _numbers(outputs: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the entries of outputs, rounded as scores are (NaN if not a number), and their fractional parts."""
    flat = outputs.reshape(len(outputs), -1)
    with np.errstate(over="ignore"):
        numbers = np.asarray(np.where(is_number(flat), flat, np.nan), np.float64).round(DECIMALS)
    return numbers, (numbers - np.floor(numbers)).round(DECIMALS)


def _inside(gaps: list[Gap], shape: tuple[int, ...]) -> Statistic:
    """Return the statistic that says which gap holds an entry, the most surprising one if several do."""

    def score(outputs: NDArray[Any]) -> Floats:
        numbers, place = _numbers(outputs), np.zeros(len(outputs))
        for number in range(len(gaps), 0, -1):
            place[gaps[number - 1].holds(numbers)] = 2 * number  # by 2: reports would merge successive values
        return place

    words = {0.0: "none"} | {2.0 * number: gap.in_words(shape) for number, gap in enumerate(gaps, 1)}
    return Statistic("gap that holds an entry", score, labels=words)


def _new(wide: list[Gap], x: Floats, y: Floats) -> Statistic:
    """Return the statistic of how far any entry lies outside the range of both databases, or whether in a wide gap."""
    low, high = np.maximum(x.min(axis=0), y.min(axis=0)), np.minimum(x.max(axis=0), y.max(axis=0))
    with np.errstate(over="ignore", invalid="ignore"):
        span = np.fmax(high - low, NEXT)
    words = ["as seen", *(f"{of:g} spans beyond those seen" for of in SPANS), "in a wide gap"]

    def score(outputs: NDArray[Any]) -> Floats:
        flat, numbers = outputs.reshape(len(outputs), -1).astype(np.float64), _numbers(outputs)
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.nan_to_num(np.maximum(flat - high, low - flat) / span).max(axis=1)
        place = np.searchsorted(SPANS, beyond, side="right")
        for gap in wide:
            place[gap.holds(numbers)] = len(words) - 1
        return np.asarray(2.0 * place)  # by 2: reports would merge successive values

    return Statistic("how new an entry is", score, labels=dict(zip(range(0, 2 * len(words), 2), words, strict=True)))
