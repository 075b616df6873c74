"""Pure and approximate privacy with few given outputs: exact limits for two probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.bounds.binomial import binomial_pmf
from audit.bounds.rectangle import rectangle
from audit.claims import ApproxDP, Claim, PureDP
from audit.events import Event
from audit.exact.roots import brentq
from audit.methods.game import right_guesses, right_side
from audit.methods.method import POWER, Basis, Counts, Floats, IntArray, register_method
from audit.methods.regions import RegionMethod, regions

__all__ = ["Rectangle"]

MOST = 10_000  # counting runs on either database: with more, the other database limits the bound


@register_method(PureDP, ApproxDP, role="few")
class Rectangle(RegionMethod):
    """A region's probability is bounded from below on one database, above on the other; a promise limits the ratio."""

    bound = "Clopper-Pearson rectangle"
    theorem = (
        "The probability of an event is bounded from below on one database and from above on the other, both exactly; "
        "a promise limits their ratio."
    )
    counted = "a rule that guesses the database"
    sources = ("clopper", "ding")

    def basis(self, event: Event) -> Basis:
        """Return the inputs of `lower` besides the counts: none."""
        return {}

    def each_region(self, basis: Basis) -> float:
        """Return the confidence of either region, of which there are two."""
        return 1 - (1 - self.confidence_at(basis)) / 2

    def region_lower(self, hits: int, runs: int, hits_other: int, runs_other: int, *, confidence: float) -> float:
        """Return the largest epsilon up to which all are rejected; 0 if none is."""
        low, high = map(float, rectangle(hits, runs, hits_other, runs_other, confidence=confidence))
        if not self._rejected(low, high, 0.0):
            return 0.0
        least, most = 0.0, 1.0
        while self._rejected(low, high, most):
            least, most = most, 2 * most
        for _ in range(60):
            middle = (least + most) / 2
            least, most = (middle, most) if self._rejected(low, high, middle) else (least, middle)
        return least

    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest epsilon that the more powerful region detects with power 0.8."""
        return min(
            self._region_detectable(
                likely["runs"],
                other["runs"],
                sum(side[guess] / max(1, side["runs"]) for side in (likely, other)),
                self.each_region(basis),
            )
            for likely, other, guess in regions(counts)
        )

    def power(self, truth: Claim, choosing: IntArray, counting: IntArray, *, share: float = 1.0) -> Floats:
        """Return the probability that a region refutes the promise, if one region has the whole loss."""
        right = right_guesses(truth.group(self.distance), share)
        powers = [self._power(right, runs // 2) for runs in counting.tolist()]
        return np.array(powers) * right_side(choosing, right)

    def given_sizes(self, left: list[int], coins: np.random.Generator) -> list[int]:
        """Return how many of the given runs on either database are counted."""
        return [min(runs, MOST) for runs in left]

    def _rejected(self, low: Any, high: Any, epsilon: float) -> Any:
        """Return whether limits of two probabilities, as arrays, reject a promise of this epsilon."""
        pair = self.claim.at(epsilon).group(self.distance)
        return low > high * math.exp(min(pair.budget, 700.0)) + pair.forgiven

    def _region_detectable(self, runs: int, runs_other: int, share: float, confidence: float) -> float:
        """Return the smallest epsilon that one region detects; `share` is the sum of both probabilities."""
        hits, hits_other = np.arange(runs + 1), np.arange(runs_other + 1)
        limits = rectangle(hits[:, None], runs, hits_other[None, :], runs_other, confidence=confidence)
        refuted: NDArray[np.bool_] = self._rejected(*limits, self.claim.budget)

        def missing(epsilon: float) -> float:
            pair = self.claim.at(epsilon).group(self.distance)
            rare = max(0.0, share - pair.forgiven) * float(special.expit(-pair.budget))
            likely = share - rare
            if likely > 1:
                likely, rare = 1.0, max(0.0, 1 - pair.forgiven) * math.exp(-pair.budget)
            chance = np.outer(binomial_pmf(hits, runs, likely), binomial_pmf(hits_other, runs_other, rare))
            return POWER - float(chance[refuted].sum())

        top = 40.0 / self.distance
        if missing(top) > 0:
            return math.inf
        return 0.0 if missing(0.0) <= 0 else brentq(missing, 0.0, top)

    def _power(self, right: float, each: int) -> float:
        """Return the probability that one of the two regions of randomized response refutes the promise."""
        hits = np.arange(each + 1)
        on_y, on_x = hits[:, None], hits[None, :]
        refuted = np.zeros((each + 1, each + 1), bool)
        for likely, other in ((on_y, on_x), (each - on_x, each - on_y)):
            limits = rectangle(likely, each, other, each, confidence=self.each_region({}))
            refuted |= self._rejected(*limits, self.claim.budget)
        chance = np.outer(binomial_pmf(hits, each, right), binomial_pmf(hits, each, 1 - right))
        return float(chance[refuted].sum())
