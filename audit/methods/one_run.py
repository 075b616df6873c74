"""Any promise with a delta at every epsilon, by guesses about many secret coins from one single run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, special, stats

from audit.attacks.selection import Family
from audit.bounds.one_run import one_run_p_value
from audit.claims import Claim, PureDP
from audit.events import Event, Statistic
from audit.methods.game import detectable_epsilon, fewest, game_power, right_guesses, sawtooth
from audit.methods.method import Basis, Counts, Floats, Method, Whole, guesses, register_method
from audit.results import ONE_RUN

__all__ = ["OneRun"]

POINTS = (0.5, 5.0, 50.0)  # deltas at which a promise without one is tested: canaries times delta, in units of alpha


@register_method(Claim, role="one_run")  # type: ignore[type-abstract]
@dataclass(frozen=True)
class OneRun(Method):
    """A promise limits how many guesses about coins may be right, however one release ties them together.

    The distance is the number of people of each canary; runs in the counts are canaries.
    """

    bound = ONE_RUN
    theorem = (
        "Secret coins put canaries into the database of one single run, and a rule guesses the coins from the one "
        "release. A promise limits how many guesses may be right."
    )
    counted = "one rule for all canaries of one run"
    sources = ("steinke",)

    def __post_init__(self) -> None:
        """Refuse total variation."""
        if self.claim.parameter == "delta":
            raise ValueError(f"one run bounds no total variation: epsilon must be positive, got {self.claim}")

    @property
    def share(self) -> float | None:
        """Share of the canaries that is guessed; None where a promise limits right guesses whatever their number."""
        if self.claim.epsilon_delta is None:
            return 0.2
        return 0.5 if self.claim.forgiven else None

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> Event:
        """Refuse to choose: the rule is fixed before the run.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError("the rule of an audit of one run is fixed before it")

    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the budget of one step up to which promises are rejected; 0 if none is."""
        return _lower(self, *guesses(counts))

    def never_confused(self, counts: Counts, basis: Basis) -> Counts:
        """Return the counts of as many canaries, of whom as many as the rule could guess are guessed, and rightly."""
        runs = sum(side["runs"] for side in counts.values())
        return {
            "x": {"runs": 0, "guessed_x": 0, "guessed_y": 0},
            "y": {"runs": runs, "guessed_x": 0, "guessed_y": basis["most"]},
        }

    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest budget of one step that as many guesses call a violation with power 0.8."""
        _, guessed, number = guesses(counts)
        return _detectable(self, guessed, number)

    def power(self, truth: Claim, choosing: Whole, counting: Whole, *, share: float = 1.0) -> Floats:
        """Return how often one run with so many canaries refutes the promise."""
        pair = truth.group(self.distance)
        if self.share is None:
            promise = self.claim.group(self.distance)
            return game_power(promise, right_guesses(pair, 1.0), counting, 1.0, self.confidence)
        right, found = _clearest_right(pair, self.share), []
        for canaries in counting.tolist():
            guessed = max(1, round(self.share * canaries))
            found.append(float(stats.binom.sf(self.needed(guessed, canaries) - 1, guessed, right)))
        return np.array(found)

    def sawtooth(self, truth: Claim) -> float:
        """Return over how many canaries power may rise and fall again; 0 where a delta smooths it."""
        return sawtooth(self.claim, truth, self.distance) if self.share is None else 0.0

    def needed(self, guessed: int, number: int) -> int:
        """Return the fewest right guesses that refute the promise, one more than all if none do."""
        return _needed(self, guessed, number)

    def p_value(self, budget: float, correct: int, guessed: int, number: int) -> float:
        """Return how likely so many right guesses are, at most, if one step loses no more than a budget."""
        values = [
            one_run_p_value(correct, guessed, epsilon, delta=delta, canaries=number) if delta < 1 else 1.0
            for epsilon, delta in self.points(budget, number)
        ]
        return min(1.0, len(values) * min(values))

    def check(self, counts: Counts, basis: Basis) -> None:
        """Refuse counts that no rule with this basis can have.

        Raises
        ------
        ValueError
            If it could guess neither as many as were guessed nor all.
        """
        _, guessed, number = guesses(counts)
        if basis["most"] not in (guessed, number):
            raise ValueError(f"most must be the guesses or the canaries, got {basis['most']!r}")

    def points(self, budget: float, number: int) -> list[tuple[float, float]]:
        """Return the points of the privacy profile that are tested, each an epsilon and a delta of the pair."""
        promise = self.claim.at(budget).group(self.distance)
        if promise.epsilon_delta:
            return [promise.epsilon_delta]
        deltas = [point * (1 - self.confidence) / number for point in POINTS]
        return [(promise.epsilon_at(delta), delta) for delta in deltas if delta < 1]


# Whoever audits one mechanism many times asks about few numbers of guesses, again and again.


@lru_cache(maxsize=4096)
def _lower(method: OneRun, correct: int, guessed: int, number: int) -> float:
    def excess(budget: float) -> float:
        return math.log(max(method.p_value(budget, correct, guessed, number), 1e-300) / (1 - method.confidence))

    if excess(0.0) >= 0:
        return 0.0
    low, high = 0.0, method.claim.budget
    while excess(high) < 0:
        low, high = high, 2 * high
    return float(optimize.brentq(excess, low, high, xtol=1e-12))


@lru_cache(maxsize=4096)
def _needed(method: OneRun, guessed: int, number: int) -> int:
    budget, error = method.claim.budget, 1 - method.confidence
    least = min(epsilon for epsilon, _ in method.points(budget, number))
    # As many as would do if nothing were forgiven, and on from there.
    start = int(stats.binom.isf(error, max(1, guessed), special.expit(least)))
    return fewest(lambda correct: method.p_value(budget, correct, guessed, number) < error, guessed, start)


@lru_cache(maxsize=4096)
def _detectable(method: OneRun, guessed: int, number: int) -> float:
    claim, people = method.claim, method.distance
    shown = claim if claim.epsilon_delta else PureDP(0.0)
    epsilon = detectable_epsilon(shown, people, method.needed(guessed, number), guessed, number)
    if claim.epsilon_delta or math.isinf(epsilon):
        return epsilon
    # Normal laws whose clearest parts, as large as those guessed, are told apart with these odds.
    right, share = float(special.expit(epsilon * people)), guessed / number
    return claim.at_shift(float(special.ndtri(share * right) - special.ndtri(share * (1 - right))) / people).budget


def _clearest_right(truth: Claim, share: float) -> float:
    """Return how often the clearest guesses, as many as a share of the canaries, are right."""
    if truth.epsilon_delta:
        return right_guesses(truth, share)
    half = truth.shift / 2

    def beyond(threshold: float) -> float:
        return float(special.ndtr(half - threshold) + special.ndtr(-half - threshold)) - share

    return min(1.0, float(special.ndtr(half - optimize.brentq(beyond, 0.0, half + 10))) / share)
