"""Pure and approximate privacy with few given outputs: an exact test of every pair of probabilities of an event."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np
from scipy import special

from audit.bounds.binomial import binomial_pmf, binomial_sf
from audit.bounds.two_samples import fewest_hits, surprises
from audit.claims import ApproxDP, Claim, PureDP
from audit.exact.roots import brentq
from audit.methods.game import Game, right_guesses, right_side
from audit.methods.method import POWER, Basis, Counts, Floats, IntArray, register_method
from audit.methods.regions import RegionMethod, regions

__all__ = ["TwoSamples"]

STEP = 0.005  # nats: promises for the pair are tested in these steps, from 0 up
BLOCK = 8  # steps that are tested at once
MOST = 1_000  # counting runs on either database: with more, the other database limits the bound


@register_method(PureDP, ApproxDP, role="few")
class TwoSamples(RegionMethod):
    """A region's counts on both databases are tested together; a promise limits the ratio of its probabilities."""

    bound = "two samples"
    theorem = (
        "The counts of an event on both databases are tested together, for every pair of probabilities that a promise "
        "allows; both p-values are exact."
    )
    counted = "a rule that guesses the database"
    sources = ("liptak", "berger", "ding")
    choose = Game.choose

    def region_lower(self, hits: int, runs: int, hits_other: int, runs_other: int, *, confidence: float) -> float:
        """Return the largest epsilon up to which all are refuted; 0 if none is."""
        counts = (hits, runs, hits_other, runs_other)
        return _largest_refuted(self.claim, self.distance, counts, confidence) if min(runs, runs_other) else 0.0

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

    def _needed(self, runs: int, runs_other: int, confidence: float) -> IntArray:
        """Return for each number of hits on the other database the fewest that refute the first step beyond."""
        first = math.floor(self.claim.budget / _step(1, self.distance))
        steps = (_step(number, self.distance) for number in itertools.count(first))
        beyond = next(epsilon for epsilon in steps if epsilon > self.claim.budget)
        pair = self.claim.at(beyond).group(self.distance)
        return fewest_hits(runs, runs_other, pair.budget, pair.forgiven, confidence=confidence)

    def _region_detectable(self, runs: int, runs_other: int, share: float, confidence: float) -> float:
        """Return the smallest epsilon that one region detects; `share` is the sum of both probabilities."""
        if min(runs, runs_other) == 0:
            return math.inf
        needed, hits_other = self._needed(runs, runs_other, confidence), np.arange(runs_other + 1)

        def missing(epsilon: float) -> float:
            pair = self.claim.at(epsilon).group(self.distance)
            rare = max(0.0, share - pair.forgiven) * float(special.expit(-pair.budget))
            likely = share - rare
            if likely > 1:
                likely, rare = 1.0, max(0.0, 1 - pair.forgiven) * math.exp(-pair.budget)
            return POWER - float(binomial_pmf(hits_other, runs_other, rare) @ binomial_sf(needed - 1, runs, likely))

        top = 40.0 / self.distance
        if missing(top) > 0:
            return math.inf
        return 0.0 if missing(0.0) <= 0 else brentq(missing, 0.0, top)

    def _power(self, right: float, each: int) -> float:
        """Return the probability that one of the two regions of randomized response refutes the promise."""
        needed, on_x = self._needed(each, each, self.each_region({"regions": 2})), np.arange(each + 1)
        silent = np.searchsorted(needed, each - on_x, side="right")  # runs on y without the event that are few enough
        fewest = np.minimum(needed, each + 1 - silent)
        return float(binomial_pmf(on_x, each, 1 - right) @ binomial_sf(fewest - 1, each, right))


def _step(number: int, distance: int) -> float:
    return number * STEP / distance


@lru_cache(maxsize=4096)  # the largest bound and rare events are asked again and again
def _largest_refuted(claim: Claim, distance: int, counts: tuple[int, int, int, int], confidence: float) -> float:
    """Return the last epsilon before the first that is not refuted."""
    known = surprises(*counts)
    for block in itertools.count():
        refuted = known.refute(*_promises(claim, distance, block), confidence=confidence)
        if not refuted.all():
            break
    return _step(max(0, block * BLOCK + int(np.argmin(refuted)) - 1), distance)


@lru_cache(maxsize=256)
def _promises(claim: Claim, distance: int, block: int) -> tuple[Floats, Floats]:
    """Return epsilon and delta of the promises for the pair, step by step."""
    numbers = range(block * BLOCK, (block + 1) * BLOCK)
    pairs = [claim.at(_step(number, distance)).group(distance) for number in numbers]
    return np.array([pair.budget for pair in pairs]), np.array([pair.forgiven for pair in pairs])
