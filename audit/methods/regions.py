"""Base of methods that bound a loss by the probabilities of one region of outputs on the two databases."""

from __future__ import annotations

import math
from abc import abstractmethod

from scipy import special

from audit.attacks.selection import Family, Shifts, rate_candidates, select_events, tabulated
from audit.events import Event, Statistic
from audit.methods.method import POWER, Basis, Counts, Floats, Method, fewest

__all__ = ["NORMAL", "SEED", "RegionMethod", "counting_ratio", "nearby", "regions"]

NORMAL = "two normal laws at the shift that has this loss, as of a count with normal noise"  # whose power is planned
SEED = 20  # seed of simulated selection runs: the same question has the same answer


class RegionMethod(Method):
    """Bounds from a region's counts on both databases; a rule that may name both databases has two regions."""

    counted = "a region of outputs"

    @abstractmethod
    def region_lower(self, hits: int, runs: int, hits_other: int, runs_other: int, *, confidence: float) -> float:
        """Return the budget of one step that a region proves, from its hits where it is likely and on the other."""

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> list[Event]:
        """Return the region with the largest expected shift of normal laws, and others, from selection runs."""
        shifts = Shifts(counting, self.confidence)
        return select_events(rate_candidates(tabulated(statistics, x, y, families), shifts), shifts)

    def each_region(self, basis: Basis) -> float:
        """Return the confidence of each region that a rule may name: it depends on the rule, not on its counts."""
        confidence = self.confidence_at(basis)
        return 1 - (1 - confidence) / 2 if basis["regions"] == 2 else confidence

    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the budget of one step that the better of the regions proves."""
        each = self.each_region(basis)
        return max(
            self.region_lower(likely[guess], likely["runs"], other[guess], other["runs"], confidence=each)
            for likely, other, guess in regions(counts)
        )

    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest budget of normal laws that the more powerful region detects."""
        each = self.each_region(basis)
        shift = min(
            self._detectable_shift(likely["runs"], other[guess], other["runs"], each)
            for likely, other, guess in regions(counts)
        )
        return self.claim.at_shift(shift / self.distance).budget

    def _detectable_shift(self, runs: int, hits_other: int, runs_other: int, confidence: float) -> float:
        """Return the shift of normal laws that a region detects with power 0.8; infinite if it detects none.

        The rate on the database where the region is rare is the observed one. The variances of both rates, on the scale
        of normal quantiles, add up.
        """
        if hits_other in (0, runs_other):
            return math.inf

        def is_violation(hits: int) -> bool:
            return self.region_lower(hits, runs, hits_other, runs_other, confidence=confidence) > self.claim.budget

        if (needed := fewest(is_violation, runs, 0)) > runs:
            return math.inf
        half, rate = special.ndtri(special.betaincinv(needed, runs - needed + 1, [0.5, POWER]))
        rare = float(special.ndtri(hits_other / runs_other))
        deviation = math.sqrt(2 * math.pi * hits_other * (1 - hits_other / runs_other)) / runs_other
        deviation *= math.exp(rare**2 / 2)
        z = float(special.ndtri(POWER))
        return max(0.0, float(half) - rare + math.hypot(rate - half, z * deviation))


def regions(counts: Counts) -> list[tuple[dict[str, int], dict[str, int], str]]:
    """Return either region that a rule names: the counts where it is likely, the others, and its name."""
    return [(counts["y"], counts["x"], "guessed_y"), (counts["x"], counts["y"], "guessed_x")]


def nearby(shift: float, runs: int, steps: tuple[float, float]) -> tuple[float, int]:
    """Return a shift and a number of runs on a grid, so that nearby questions share a simulation."""
    near, many = (round(math.log(value) / math.log(step)) for value, step in zip((shift, runs), steps, strict=True))
    return steps[0] ** near, max(8, round(steps[1] ** many))


def counting_ratio(counting: int, choosing: int) -> float:
    """Return the ratio of counting to selection runs, to two digits."""
    return float(f"{counting / choosing:.2g}")
