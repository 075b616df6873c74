"""Pure and approximate privacy: guesses at the coin that picked the database of each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.attacks.selection import Family, Guessing, Table, rate_candidates, select_events, tabulated
from audit.bounds.binomial import binomial_pmf, binomial_quantile, binomial_sf
from audit.bounds.game import approx_game_lower
from audit.bounds.limits import clopper_pearson_lower
from audit.claims import ApproxDP, Claim, PureDP
from audit.events import Event, Statistic
from audit.exact.roots import brentq
from audit.methods.method import POWER, Basis, Counts, Floats, IntArray, Method, guesses, register_method

__all__ = ["Game", "detectable_epsilon", "game_power", "numbers_of_guesses", "right_guesses", "right_side", "sawtooth"]

NODES = 513  # most numbers of guesses that are computed; more are represented by quantiles


@register_method(PureDP, ApproxDP)
class Game(Method):
    """A rule guesses the database of each run, and a promise limits how often a guess is right."""

    bound = "guessing game"
    theorem = (
        "A fair coin picks the database of every run, and a rule guesses it from the release. A promise limits how "
        "often a guess is right; an exact binomial bound compares the count of right guesses with that limit."
    )
    counted = "a rule that guesses the database"
    sources: ClassVar[tuple[str, ...]] = ("steinke", "kairouz", "clopper")
    coins = True
    planned = "randomized response{sure}: one event carries the whole loss and is seen {seen}"

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> list[Event]:
        """Return the event with the largest expected bound, and others, from scores on selection runs."""
        return self.chosen(tabulated(statistics, x, y, families), counting, self.claim.group(self.distance).forgiven)

    def chosen(self, tables: Sequence[Table], counting: int, forgiven: float) -> list[Event]:
        """Return the same from tables of scores, with an allowed failure probability of `forgiven`."""
        game = Guessing(counting, self.confidence, forgiven)
        candidates = rate_candidates(tables, game)
        events = select_events(candidates, game)
        return [replace(event, shortfalls=game.shortfalls(candidates)) for event in events[:1]] + events[1:]

    def basis(self, event: Event) -> Basis:
        """Return the inputs of `detectable` besides the counts: the shortfalls of other choices of the event."""
        return {"shortfalls": list(event.shortfalls)} if event.shortfalls else {}

    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the epsilon of one step that the guesses prove."""
        return approx_game_lower(*guesses(counts), **self._question(basis))

    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest epsilon that as many guesses detect with mean power 0.8 over choices of the event."""
        _, guessed, runs = guesses(counts)
        needed = self.needed(guessed, runs, basis)
        least = detectable_epsilon(self.claim, self.distance, needed, guessed, runs)
        missing = np.array(basis.get("shortfalls", []), float)
        if missing.size == 0 or math.isinf(least):
            return least

        def surplus(epsilon: float) -> float:
            """Mean power at this loss over the events that may be chosen, minus 0.8."""
            right = _right(self.claim.at(epsilon).group(self.distance), guessed, runs, missing)
            return float(np.mean(special.betainc(needed, guessed - needed + 1, right))) - POWER

        most = least + (float(missing.max()) + 1e-9) / self.distance
        return brentq(surplus, least, most) if surplus(least) < 0 < surplus(most) else least

    def needed(self, guessed: int, runs: int, basis: Basis) -> int:
        """Return the fewest right guesses that refute the promise, one more than all if none do."""
        return int(
            needed(self.claim.group(self.distance), np.array(guessed), np.array(runs), self.confidence_at(basis))
        )

    def power(self, truth: Claim, choosing: IntArray, counting: IntArray, *, share: float = 1.0) -> Floats:
        """Return the probability that right guesses refute the promise, if the event has the whole loss."""
        right = right_guesses(truth.group(self.distance), share)
        power = game_power(self.claim.group(self.distance), right, counting, share, self.main_confidence(choosing))
        return power * right_side(choosing, right)

    def sawtooth(self, truth: Claim) -> float:
        """Return over how many counting runs power may rise and fall, as a sawtooth does."""
        return sawtooth(self.claim, truth, self.distance)

    def given_sizes(self, left: list[int], coins: np.random.Generator) -> list[int]:
        """Return how many of the given runs on each database fair coins would have picked.

        There are so many fewer tosses than runs that one side runs short in 1 of 16,000 audits. Then nothing is
        counted, which is valid, too.
        """
        least = min(left)
        tosses = int(self.given_counting(np.array(least)))
        on_y = int(coins.binomial(tosses, 0.5))
        return [0, 0] if max(on_y, tosses - on_y) > least else [tosses - on_y, on_y]

    def given_counting(self, each: IntArray) -> IntArray:
        """Return the number of coin tosses for which so many given runs on each database suffice."""
        tosses: IntArray = np.maximum(2 * each - 4 * np.sqrt(2 * each), 0).astype(np.int64)
        return tosses

    def _question(self, basis: Basis) -> dict[str, Any]:
        """Return the arguments of the bound besides the guesses."""
        return {"confidence": self.confidence_at(basis), "delta": self.claim.forgiven, "distance": self.distance}


def right_guesses(truth: Claim, share: float) -> float:
    """Return the probability of a right guess, if an event that occurs in a share of runs has the pair's whole loss."""
    return 1 - max(0.0, share - truth.forgiven) * float(special.expit(-truth.budget)) / share


def sawtooth(claim: Claim, truth: Claim, distance: int) -> float:
    """Return the width of power's sawtooth: 8 times the runs in which right guesses gain one on their limit."""
    promised, right = (right_guesses(one.group(distance), 1.0) for one in (claim, truth))
    return 8 / max(right - promised, 1e-9)


def right_side(choosing: IntArray, right: float) -> Floats:
    """Return the probability that selection runs choose the right side of an event, by their majority."""
    even = np.where(choosing % 2 == 0, binomial_pmf(choosing // 2, choosing, right) / 2, 0.0)
    return np.where(choosing == 0, 1.0, binomial_sf(choosing // 2, choosing, right) + even)


def needed(promise: Claim, guessed: NDArray[Any], runs: NDArray[Any], confidence: float) -> Floats:
    """Return the fewest right guesses that refute a promise for the pair, one more than all if none do."""
    # With a delta, a tenth of the error probability is spent on the rate of guesses, as in `approx_game_lower`.
    right, error = float(special.expit(promise.budget)), 1 - confidence
    limit = np.full(guessed.shape, right)
    if promise.forgiven > 0:
        rate = clopper_pearson_lower(guessed, runs, confidence=1 - 0.1 * error)
        limit = np.minimum(right + promise.forgiven * (1 - right) / np.maximum(rate, 1e-300), 1.0)
        error *= 0.9
    most = binomial_quantile(error, np.maximum(guessed, 1), limit)
    return np.asarray(np.where((guessed > 0) & (limit < 1), most + 1, guessed + 1))


def game_power(promise: Claim, right: float, counting: IntArray, share: float, confidence: float) -> Floats:
    """Return the probability that right guesses refute the promise, for each number of counting runs."""
    if share == 1:
        return np.asarray(binomial_sf(needed(promise, counting, counting, confidence) - 1, counting, right))
    powers = []
    for runs in counting.tolist():
        guessed, chance = numbers_of_guesses(runs, share)
        power = binomial_sf(needed(promise, guessed, np.array(runs), confidence) - 1, guessed, right)
        powers.append(float(chance @ power))
    return np.array(powers)


def numbers_of_guesses(runs: int, share: float) -> tuple[Floats, Floats]:
    """Return the numbers of guesses of an event that occurs in a share of runs, and their probabilities."""
    spread = 9 * math.sqrt(runs * share * (1 - share)) + 9
    if spread < NODES:
        guessed = np.arange(max(0, math.floor(runs * share - spread)), min(runs, runs * share + spread) + 1)
        return guessed, binomial_pmf(guessed, runs, share)
    return binomial_quantile(1 - (np.arange(NODES) + 0.5) / NODES, runs, share), np.full(NODES, 1 / NODES)


def detectable_epsilon(claim: Claim, distance: int, needed: int, guessed: int, runs: int) -> float:
    """Return the smallest epsilon, at the delta of the claim, at which `needed` guesses are right with power 0.8."""
    if needed > guessed or guessed == 0:
        return math.inf
    needed = max(needed, 1)
    rate = float(special.betaincinv(needed, guessed - needed + 1, POWER))

    def surplus(epsilon: float) -> float:
        """Probability of a right guess at this loss, minus the one required."""
        return float(_right(claim.at(epsilon).group(distance), guessed, runs)) - rate

    if surplus(0.0) >= 0:
        return 0.0
    top = 50.0 / distance
    return brentq(surplus, 0.0, top) if surplus(top) > 0 else math.inf


def _right(pair: Claim, guessed: int, runs: int, missing: Floats | float = 0.0) -> Floats:
    """Return the probability of a right guess of an event that has the loss of a pair, less `missing` nats."""
    chance = special.expit(pair.budget - missing)
    return np.asarray(chance + min(1.0, pair.forgiven * runs / guessed) * (1 - chance))
