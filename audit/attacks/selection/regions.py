"""Regions of outputs, rated by the shift of normal laws that their two probabilities would show."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.attacks.selection.choice import Rated, Way
from audit.attacks.selection.guessing import DOUBT, angle_of
from audit.attacks.selection.tables import Table
from audit.events import Event

__all__ = ["Shifts"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shifts:
    """How many runs will count, at which confidence of the two probabilities together."""

    counting: int
    confidence: float

    def rated(self, table: Table, weights: Floats, way: Way, *, by: Floats | None = None) -> Rated:
        """Return ratings of regions above and below each threshold, for `y` and then for `x`; what meets them."""
        beyond = table.beyond(weights, by=by)
        on_x, on_y = (np.hstack(sides) for sides in (beyond[1::-1], beyond[:1:-1]))
        runs_x, runs_y = table.total(weights)
        shift = [
            self._shift(likely, many, rare, few, way.caution, way.rare)
            for likely, many, rare, few in ((on_y, runs_y, on_x, runs_x), (on_x, runs_x, on_y, runs_y))
        ]
        rating = np.where(np.hstack([on_x + on_y] * 2) > 0, np.hstack(shift), -np.inf)
        places = rating.shape[1] // 4
        if table.cells is not None:  # which lean to `y` as they rise
            rating[:, places : 3 * places] = -np.inf
        every = np.ones((1, 2 * places))
        return Rated(
            rating,
            (
                np.hstack([on_y, on_x]),
                np.hstack([runs_y * every, runs_x * every]),
                np.hstack([on_x, on_y]),
                np.hstack([runs_x * every, runs_y * every]),
            ),
        )

    def promised(self, counts: tuple[float, ...], table: Table, *, rare: bool = False) -> tuple[float, float]:
        """Return the shift that regions promise that were met so often, and its standard error."""
        likely, many, other, few = counts
        if min(many, few) == 0:
            return -math.inf, 0.0
        known = [np.array(one) for one in counts]
        shift = float(self._shift(known[0], known[1], known[2], known[3], DOUBT, rare))
        errors = []
        for met, of in ((likely, many), (other, few)):
            rate = (met + 0.5) / (of + 1)
            density = math.exp(-(float(special.ndtri(rate)) ** 2) / 2) / math.sqrt(2 * math.pi)
            errors.append(math.sqrt(rate * (1 - rate) / of) / density)
        return shift, math.hypot(*errors)

    def rare(self, hits: float, runs: float) -> tuple[float, ...]:
        """Return the counts of an outcome that one database alone gives."""
        return hits, runs / 2, 0.0, runs / 2

    def event(self, table: Table, rated: Rated, best: int, way: Way) -> Event:
        """Return the event of a region."""
        places = table.values.size + 1
        named, place = divmod(best, 2 * places)
        upward = place < places
        where = (0, place) if upward else (place - places, places - 1)
        return Event(table.statistic, table.rule(*where, "y" if upward == (named == 0) else "x"))

    def _shift(self, likely: Floats, many: Floats, rare: Floats, few: Floats, caution: float, surely: bool) -> Floats:
        """Return the shift that a region shows that is met so often of so many runs on either database."""
        z = 0.0 if surely else float(special.ndtri(1 - (1 - self.confidence) / 2))
        off = caution / 2 / np.sqrt(np.maximum(np.minimum(many, few), 1)) + z / 2 / math.sqrt(self.counting / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = np.square(np.sin(np.maximum(angle_of(likely, many) - off, 0.0)))
            q = np.square(np.sin(np.minimum(angle_of(rare, few) + off, np.pi / 2)))
            return np.asarray(special.ndtri(np.clip(p, 1e-15, 1 - 1e-15)) - special.ndtri(np.clip(q, 1e-15, 1 - 1e-15)))
