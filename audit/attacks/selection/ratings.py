"""Ratings of events: guesses by the rate of right ones, regions by the shift between two normal laws.

Rates and margins are on the arcsine scale, where the variance of a rate does not depend on it (Anscombe, 1948).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.attacks.selection.choice import Candidate, SelectionRule, best_of
from audit.attacks.selection.tables import ALL, PARTS, Table
from audit.events import Event

__all__ = ["Guessing", "Shifts"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

DOUBT = 1.5  # standard errors subtracted from a rate on held-out runs
WIDENED = 0.5  # standard errors of the difference within which a wider rule counts as no worse
LEAST_RATIO = 3 / 14  # least ratio of selection to counting runs: below it, chance in few hits outweighs a sure loss
TIE = 1e-9  # subtracted from a rating for each threshold that widens a rule: of equal ratings the narrowest wins
RESAMPLES, SEED = 16, 20  # bootstrap resamples of the selection runs, and their seed
RIVALS = 8  # candidates with the highest bounds, among which resamples choose
RARER = 0.5  # rules with fewer guesses than this times those of the best rule are left out
GOOD = 0.9  # quantile of the bounds of all choices that counts as good
_places = functools.cache(np.triu_indices)


@dataclass(frozen=True)
class Guessing:
    """Criterion for guesses: the number of counting runs, the confidence, and the failure probability allowed."""

    counting: int
    confidence: float
    forgiven: float = 0.0

    def rated(self, table: Table, weights: Floats, rule: SelectionRule) -> Floats:
        """Return ratings of all pairs of thresholds, first of those that guess `y` above: angles of expected rates."""
        lower, upper = _pairs(table, rule)
        right, guesses, angle, stray = self._guesses(table, weights, rule, weights)
        above_y = _angle(right, guesses) if table.stated is not None else angle - stray
        ways = [above_y] if table.cells is not None else [above_y, np.pi / 2 - angle - stray]  # later cells favor `y`
        kept = self._kept(np.array(ways), guesses, sum(table.total(weights)), rule.rare)
        return np.hstack(list(kept - TIE * (lower - upper)))

    def counts(self, table: Table, weights: Floats, rule: SelectionRule, by: Floats) -> tuple[Floats, Floats]:
        """Return right and all guesses of all pairs of thresholds."""
        right, guesses, *_ = self._guesses(table, weights, rule, by)
        both = np.hstack([right, guesses - right]), np.hstack([guesses, guesses])
        return both if table.cells is None else (right, guesses)

    def _guesses(self, table: Table, weights: Floats, rule: SelectionRule, by: Floats) -> tuple[Floats, ...]:
        """Return right and all guesses of rules that guess `y` above, the angle of their rate, and its margin."""
        lower, upper = _pairs(table, rule)
        beyond = table.tail_counts(weights, by=by)
        right = beyond.x_below[:, lower] + beyond.y_above[:, upper]
        guesses = right + beyond.y_below[:, lower] + beyond.x_above[:, upper]
        angle, stray = angle_of(right, guesses), rule.caution / 2 / np.sqrt(guesses + 0.75)
        if table.stated is not None:  # a stated log-likelihood ratio is used within the margin of the runs
            says = table.tail_counts(weights, stated=True)
            stated = _angle(says.x_below[:, lower] + says.y_above[:, upper], guesses)
            right = np.square(np.sin(np.clip(stated, angle - stray, angle + stray))) * guesses
        return right, guesses, angle, stray

    def promised(self, counts: tuple[float, ...], table: Table, *, rare: bool = False) -> tuple[float, float]:
        """Return the log-odds that a bound should show for these right and all guesses, and its standard error."""
        right, guesses = counts
        if guesses == 0:
            return -math.inf, 0.0
        off = (DOUBT if table.stated is None else 0.0) / 2 / math.sqrt(guesses + 0.75)
        rate = (right + 0.5) / (guesses + 1)
        promise = self._odds(angle_of(right, guesses) - off, np.array(guesses), table.runs, rare)
        return float(promise), 1 / math.sqrt(guesses * rate * (1 - rate))

    def rare(self, hits: float, runs: float) -> tuple[float, ...]:
        """Return the counts of an outcome that occurs on one database only."""
        return hits, hits

    def event(self, table: Table, rating: Floats, best: int, rule: SelectionRule) -> Event:
        """Return an event, widened while its odds do not fall, as guesses tighten the bound; rare ones stay narrow."""
        lower, upper = _pairs(table, rule)
        named, place = divmod(best, lower.size)
        parts = rating, *self.counts(table, ALL, rule, ALL)
        rated, right, guesses = (part[0, named * lower.size :][: lower.size] for part in parts)
        slacks = (WIDENED,) if table.cells is None else (2 * WIDENED, 2 * WIDENED)  # cells: chance affects their order
        for slack in () if rule.rare else slacks:
            around = np.flatnonzero((lower >= lower[place]) & (upper <= upper[place]) & np.isfinite(rated))
            accuracy, worth = right[around] / guesses[around], right[place] / guesses[place]
            if table.stated is None:
                accuracy = accuracy + slack * _error_of_widening(right, guesses, place, around)
            kept, least = (
                self._kept(_angle(rate, 1.0), of, table.runs)
                for rate, of in ((accuracy, guesses[around]), (worth, guesses[place]))
            )
            no_worse = around[(kept >= least) | (around == place)]
            place = int(no_worse[np.argmax(guesses[no_worse] - TIE * (lower - upper)[no_worse])])
        return Event(table.statistic, table.rule(int(lower[place]), int(upper[place]), "x" if named else "y"))

    def shortfalls(self, candidates: Sequence[Candidate]) -> tuple[float, ...]:
        """Return how far bounds of events that selection runs may choose fall short of a good choice, in nats."""
        # A bootstrap of the parts of the runs: each resample chooses an event, and all runs give its expected bound.
        # Empty if all choices are equally good. Cell events are left out beside thresholds: they are ordered and scored
        # on the same runs, which flatters them.
        draws = np.random.default_rng(SEED).multinomial(PARTS, np.full(PARTS, 1 / PARTS), RESAMPLES)
        weights, every = np.vstack([ALL, draws]), np.tile(ALL, (RESAMPLES + 1, 1))
        best, promised = np.full(len(weights), -np.inf), np.zeros(len(weights))
        main = best_of([candidate for candidate in candidates if not candidate.rule.rare])
        alike = () if main is None else (main.rule, main.table.family)
        alternatives = [candidate for candidate in candidates if (candidate.rule, candidate.table.family) == alike]
        least = 0.0
        for candidate in sorted(alternatives, key=lambda candidate: -candidate.promise)[:RIVALS]:
            rating = self.rated(candidate.table, weights, candidate.rule)
            right, guesses = self.counts(candidate.table, every, candidate.rule, weights)
            if least == 0.0:  # from the best table: rules with far fewer guesses seldom pass cross-validation
                least = RARER * guesses[0, rating[0].argmax()]
            rating = np.where(guesses < least, -np.inf, rating)
            chosen = np.arange(len(weights)), rating.argmax(axis=1)
            better = rating[chosen] > best
            promise = self._odds(angle_of(right[chosen], guesses[chosen]), guesses[chosen], candidate.table.runs)
            best[better], promised[better] = rating[chosen][better], promise[better]
        promised = promised[np.isfinite(best)]  # few runs leave parts empty
        missing = np.maximum(np.quantile(promised, GOOD) - promised, 0.0) if promised.size else np.zeros(0)
        return tuple(missing.round(9).tolist()) if missing.any() else ()

    def _kept(self, angle: Floats, guesses: Floats, runs: Floats | float, rare: bool = False) -> Floats:
        """Return the angle of the rate that a bound should show, after margins and the allowed failures."""
        z = 0.0 if rare else max(float(special.ndtri(self.confidence)), 0.0)
        off = z / 2 * np.sqrt(np.maximum(runs / self.counting, LEAST_RATIO) / (guesses + 0.75))
        kept = np.maximum(angle - off, 0.0)
        if self.forgiven:
            lost = np.minimum(self.forgiven * runs / np.maximum(guesses, 1e-9), 1.0)
            kept = _angle(np.square(np.sin(kept)) - lost, 1 - lost)
        return np.where(guesses > 0, kept, -np.inf)

    def _odds(self, angle: Floats, guesses: Floats, runs: float, rare: bool = False) -> Floats:
        """Return the log-odds that a bound should show for the rate of some guesses."""
        kept = self._kept(angle, guesses, runs, rare)
        rate = np.square(np.sin(np.maximum(kept, 0.0)))
        return np.where(kept < 0, -np.inf, special.logit(np.clip(rate, 1e-15, 1 - 1e-15)))


@dataclass(frozen=True)
class Shifts:
    """Criterion for regions: the number of counting runs, and the joint confidence of the two probabilities."""

    counting: int
    confidence: float

    def rated(self, table: Table, weights: Floats, rule: SelectionRule) -> Floats:
        """Return ratings of regions above and below each threshold, as likelier on `y`, then on `x`."""
        likely, many, rare, few = self.counts(table, weights, rule, weights)
        rating = np.where(likely + rare > 0, self._shift(likely, many, rare, few, rule.caution, rule.rare), -np.inf)
        places = rating.shape[1] // 4
        if table.cells is not None:  # later ones favor `y`, so that half of the regions make no sense
            rating[:, places : 3 * places] = -np.inf
        return rating

    def counts(self, table: Table, weights: Floats, rule: SelectionRule, by: Floats) -> tuple[Floats, ...]:
        """Return hits and runs of the database on which each region is likelier, and of the other one."""
        beyond = table.tail_counts(weights, by=by)
        on_x, on_y = (np.hstack(sides) for sides in (beyond[1::-1], beyond[:1:-1]))
        of_x, of_y = (np.broadcast_to(runs, on_x.shape) for runs in table.total(weights))
        return tuple(map(np.hstack, ((on_y, on_x), (of_y, of_x), (on_x, on_y), (of_x, of_y))))

    def promised(self, counts: tuple[float, ...], table: Table, *, rare: bool = False) -> tuple[float, float]:
        """Return the shift that a bound should show for regions with these counts, and its standard error."""
        likely, many, other, few = counts
        if min(many, few) == 0:
            return -math.inf, 0.0
        arrays = [np.array(one) for one in counts]
        shift = float(self._shift(arrays[0], arrays[1], arrays[2], arrays[3], DOUBT, rare))
        errors = []
        for hits, of in ((likely, many), (other, few)):
            rate = (hits + 0.5) / (of + 1)
            density = math.exp(-(float(special.ndtri(rate)) ** 2) / 2) / math.sqrt(2 * math.pi)
            errors.append(math.sqrt(rate * (1 - rate) / of) / density)
        return shift, math.hypot(*errors)

    def rare(self, hits: float, runs: float) -> tuple[float, ...]:
        """Return the counts of an outcome that occurs on one database only."""
        return hits, runs / 2, 0.0, runs / 2

    def event(self, table: Table, rating: Floats, best: int, rule: SelectionRule) -> Event:
        """Return the event of a region."""
        places = table.values.size + 1
        named, place = divmod(best, 2 * places)
        upward = place < places
        where = (0, place) if upward else (place - places, places - 1)
        return Event(table.statistic, table.rule(*where, "y" if upward == (named == 0) else "x"))

    def _shift(self, likely: Floats, many: Floats, rare: Floats, few: Floats, caution: float, surely: bool) -> Floats:
        """Return the shift that a bound should show for a region, given its hits and the runs of each database."""
        z = 0.0 if surely else float(special.ndtri(1 - (1 - self.confidence) / 2))
        off = caution / 2 / np.sqrt(np.maximum(np.minimum(many, few), 1)) + z / 2 / math.sqrt(self.counting / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = np.square(np.sin(np.maximum(angle_of(likely, many) - off, 0.0)))
            q = np.square(np.sin(np.minimum(angle_of(rare, few) + off, np.pi / 2)))
            return np.asarray(special.ndtri(np.clip(p, 1e-15, 1 - 1e-15)) - special.ndtri(np.clip(q, 1e-15, 1 - 1e-15)))


def angle_of(right: Floats | float, guesses: Floats | float) -> Floats:
    """Return the arcsine of the square root of a rate of n guesses: its standard error is 1 / (2 sqrt(n))."""
    return np.arcsin(np.sqrt(np.clip((np.asarray(right) + 0.375) / (np.asarray(guesses) + 0.75), 0.0, 1.0)))


def _error_of_widening(right: Floats, guesses: Floats, chosen: int, around: Places) -> Floats:
    """Return the standard error of how the rate of right guesses changes from the chosen rule to each one around it."""
    accuracy = (right[chosen] + 0.5) / (guesses[chosen] + 1)
    wider = guesses[around]
    added = np.maximum(wider - guesses[chosen], 1)
    fresh = np.clip((right[around] - right[chosen] + 0.5) / (added + 1), 0.0, 1.0)
    variance = (added / wider) ** 2 * (fresh * (1 - fresh) / added + accuracy * (1 - accuracy) / guesses[chosen])
    return np.asarray(np.sqrt(variance))


def _angle(right: Floats, guesses: Floats | float) -> Floats:
    """Return the arcsine of the square root of an expected rate, from 0 to 1."""
    return np.asarray(np.arcsin(np.sqrt(np.clip(right / np.maximum(guesses, 1e-12), 0.0, 1.0))))


def _pairs(table: Table, rule: SelectionRule) -> tuple[Places, Places]:
    """Return the places of all pairs of thresholds, lower <= upper, or of those that a rule of one side may choose."""
    lower, upper = _places(table.values.size + 1)
    if rule.sides == 2:
        return lower, upper
    one = (lower == 0) | (upper == table.values.size)
    if isinstance(table.cells, np.ndarray):  # one single value: chance adds others that are no better
        one = lower + table.values.size - upper <= 1
    return lower[one], upper[one]
