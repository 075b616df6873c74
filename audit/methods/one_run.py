"""Any promise with a delta at every epsilon, by guesses about many secret coins from one single run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from audit.attacks.selection import Family
from audit.bounds.binomial import binomial_sf
from audit.bounds.one_run import one_run_curve_p_value, one_run_least_mass, one_run_p_value
from audit.claims import Claim, PureDP
from audit.events import Event, Statistic
from audit.exact.roots import brentq
from audit.methods.game import detectable_epsilon, game_power, right_guesses, sawtooth
from audit.methods.method import Basis, Counts, Floats, IntArray, Method, fewest, guesses, register_method
from audit.results import ONE_RUN

__all__ = ["OneRun"]

HALF = 0.5  # share of the canaries that is guessed under a promise with a delta
# Under a curve of deltas, guesses begin INSIDE deviations nearer to the middle than the farthest canary. Their number
# is that for a loss of MORE times the promise, so that the bound can exceed the promise. With 1,000 to 100,000 canaries
# at mu 0.5 to 2, the median bound is at least 0.96 of that with the best share; but at mu 2 with 10,000 canaries, half
# of the share, which proves more, refutes nothing even if all guesses are right.
INSIDE, MORE = 1.9, 1.4
CLOSE = 1e-5  # relative error of a bound from weights, which are only so exact


@register_method(Claim, role="one_run")  # type: ignore[type-abstract]
@dataclass(frozen=True)
class OneRun(Method):
    """A promise limits how many guesses about coins may be right, even if they depend on each other in one release.

    The distance is the number of people of each canary; runs in the counts are canaries.
    """

    bound = ONE_RUN
    theorem = (
        "Secret coins put canaries into the database of one single run, and a rule guesses the coins from the one "
        "release. A promise limits how many guesses may be right."
    )
    counted = "one rule for all canaries of one run"
    sources = ("steinke", "mahloujifar")

    def __post_init__(self) -> None:
        """Refuse total variation."""
        if self.claim.parameter == "delta":
            raise ValueError(f"one run bounds no total variation: epsilon must be positive, got {self.claim}")

    def share(self, number: int) -> float | None:
        """Return the share of so many canaries that is guessed; None if the bound holds for any number of guesses."""
        if self.claim.epsilon_delta is not None:
            return HALF if self.claim.forgiven else None
        shift = self.claim.group(self.distance).shift
        # At a shift below 1, n canaries are as informative as n * shift**2 at a shift of 1.
        alike = max(1.0, number * min(1.0, shift) ** 2)
        beyond, half = max(0.0, math.sqrt(2 * math.log(alike)) - INSIDE), MORE * shift / 2
        return float(f"{special.ndtr(half - beyond) + special.ndtr(-half - beyond):.2g}")

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> list[Event]:
        """Refuse to choose: the rule is fixed before the run."""
        raise TypeError("the rule of an audit of one run is fixed before it")

    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the budget of one step up to which promises are rejected; 0 if none is."""
        return _last_refuted(self, *guesses(counts))

    def never_confused(self, counts: Counts, basis: Basis) -> Counts:
        """Return the counts of as many canaries, if all guesses that the rule could make are right."""
        runs = sum(side["runs"] for side in counts.values())
        return {
            "x": {"runs": 0, "guessed_x": 0, "guessed_y": 0},
            "y": {"runs": runs, "guessed_x": 0, "guessed_y": basis["most"]},
        }

    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest budget of one step that as many guesses detect with power 0.8."""
        _, guessed, number = guesses(counts)
        claim, people, needed = self.claim, self.distance, self.needed(guessed, number)
        family = claim if claim.epsilon_delta else PureDP(0.0)
        epsilon = detectable_epsilon(family, people, needed, guessed, number)
        if claim.epsilon_delta or math.isinf(epsilon):
            return epsilon
        # The normal laws of which the clearest part, as large as the share guessed, has these odds.
        right, share = float(special.expit(epsilon * people)), guessed / number
        return claim.at_shift(float(special.ndtri(share * right) - special.ndtri(share * (1 - right))) / people).budget

    def power(self, truth: Claim, choosing: IntArray, counting: IntArray, *, share: float = 1.0) -> Floats:
        """Return the probability that one run with so many canaries refutes the promise."""
        pair, powers = truth.group(self.distance), []
        for canaries in counting.tolist():
            guessed_share = self.share(canaries)
            if guessed_share is None:
                promise = self.claim.group(self.distance)
                return game_power(promise, right_guesses(pair, 1.0), counting, 1.0, self.confidence)
            guessed, right = max(1, round(guessed_share * canaries)), _clearest_right(pair, guessed_share)
            powers.append(float(binomial_sf(self.needed(guessed, canaries) - 1, guessed, right)))
        return np.array(powers)

    def sawtooth(self, truth: Claim) -> float:
        """Return over how many canaries power may rise and fall, as a sawtooth does; 0 if a delta smooths it."""
        return sawtooth(self.claim, truth, self.distance) if self.share(1) is None else 0.0

    def surpluses(self, correct: int, guessed: int, number: int) -> list[tuple[Callable[[float], float], float]]:
        """Return functions of a budget, negative if so many right guesses refute it, and how exact their roots are."""
        error = 1 - self.confidence

        def promise(budget: float) -> Claim:
            return self.claim.at(budget).group(self.distance)

        def by_line(budget: float) -> float:
            epsilon, delta = promise(budget).epsilon_delta or (0.0, 0.0)
            return one_run_p_value(correct, guessed, epsilon, delta=delta, canaries=number) - error if delta < 1 else 1

        def by_mass(budget: float) -> float:
            return 1 - one_run_least_mass(correct, guessed, number, error=error, rarest=promise(budget).rarest)

        def by_curve(budget: float) -> float:
            if budget == 0:
                return by_line(budget)
            return one_run_curve_p_value(correct, guessed, number, lines=promise(budget).lines(), error=error) - error

        # Under a curve, both functions bound the probability of so many right guesses or more: the smaller one holds.
        return [(by_line, 1e-12)] if self.claim.epsilon_delta else [(by_mass, 1e-12), (by_curve, CLOSE)]

    def needed(self, guessed: int, number: int) -> int:
        """Return the fewest right guesses that refute the promise, one more than all if none do."""
        return _fewest_that_refute(self, guessed, number)

    def check(self, counts: Counts, basis: Basis) -> None:
        """Refuse counts that no rule with this basis can have."""
        _, guessed, number = guesses(counts)
        if basis["most"] not in (guessed, number):
            raise ValueError(f"most must be the guesses or the canaries, got {basis['most']!r}")


def _clearest_right(truth: Claim, share: float) -> float:
    """Return the probability of a right guess among the clearest `share` of the canaries."""
    if truth.epsilon_delta:
        return right_guesses(truth, share)
    half = truth.shift / 2

    def beyond(threshold: float) -> float:
        return float(special.ndtr(half - threshold) + special.ndtr(-half - threshold)) - share

    return min(1.0, float(special.ndtr(half - brentq(beyond, 0.0, half + 10))) / share)


@lru_cache(maxsize=4096)  # an audit asks for its bound twice, and audits alike for the largest possible one
def _last_refuted(method: OneRun, correct: int, guessed: int, number: int) -> float:
    """Return the budget up to which so many right guesses refute promises; 0 if they refute none."""
    lower = 0.0
    for surplus, close in method.surpluses(correct, guessed, number):
        lower = _last_negative(surplus, lower, method.claim.budget, close)
    return lower


def _last_negative(surplus: Callable[[float], float], low: float, start: float, close: float) -> float:
    """Return the budget up to which an increasing function is negative, `low` if it is not below `low` either."""
    if surplus(low) >= 0:
        return low
    high = 1.1 * low or start
    while surplus(high) < 0:
        low, high = high, 2 * high
    budget = brentq(surplus, low, high, xtol=1e-300, rtol=close)
    while surplus(budget) >= 0:
        budget *= 1 - close
    return budget


@lru_cache(maxsize=4096)
def _fewest_that_refute(method: OneRun, guessed: int, number: int) -> int:
    def refuted(correct: int) -> bool:
        return any(surplus(method.claim.budget) < 0 for surplus, _ in method.surpluses(correct, guessed, number))

    return fewest(refuted, guessed, 0)
