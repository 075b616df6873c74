"""Total variation, the delta at epsilon 0: the excess of right guesses over wrong ones."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from audit.attacks.selection import Family, empty_event, tabulated
from audit.bounds.binomial import binomial_sf
from audit.bounds.game import excess_lower, variation_game_lower
from audit.claims import ApproxDP, Claim
from audit.events import Event, Statistic
from audit.exact.roots import brentq
from audit.methods.game import Game, numbers_of_guesses, right_side
from audit.methods.method import POWER, Basis, Counts, Floats, IntArray, Method, guesses, register_method

__all__ = ["Variation"]

POWERFUL = float(special.ndtri(POWER))  # standard errors
CAUTION = 0.999  # confidence of the bound by which an event is rated on the runs that chose it
STEPS = 3  # times that the choice is repeated with the last rating as the delta


@register_method(ApproxDP, role="delta")
class Variation(Game):
    """Total variation limits P(right) - P(wrong) of a rule that guesses the database of each run."""

    bound = "total variation of a guessing game"
    theorem = (
        "A fair coin picks the database of every run, and a rule guesses it from the release. It is right oftener than "
        "wrong by at most the total variation, or by half of it if it only ever names one database. Both rates are "
        "bounded exactly."
    )
    sources = ("steinke", "clopper")
    largest = 1 - 1e-9
    planned = "a mechanism that tells all with probability delta and else nothing: its event is seen {seen}"

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> list[Event]:
        """Return the event with the largest expected difference of probabilities, and the best one-sided event.

        A game with a delta rates rules by the loss that exceeds this delta. The rule with the largest difference is the
        best one when delta equals that difference: so later steps take the rating of the best rule so far as delta.
        """
        promised, best = self.claim.group(self.distance).budget, empty_event(statistics[0])
        one_sided: list[Event] = []
        tables, most = tabulated(statistics, x, y, families), (-1.0, -1.0)
        for step in range(2 + STEPS):
            forgiven = min((promised / 2, promised, most[0])[min(step, 2)], self.largest)
            event, *others = self.chosen(tables, counting, forgiven) or [empty_event(statistics[0])]
            one_sided = one_sided or others[:1]
            rated = self._rated(event, statistics, x, y)
            if rated > most:
                most, best = rated, event
            elif step >= 2:
                break
        return [best, *(event for event in one_sided if str(event) != str(best))]

    def basis(self, event: Event) -> Basis:
        """Return the inputs of `lower` besides the counts: how many databases the rule may name."""
        return Method.basis(self, event)

    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the delta of one step that the guesses prove."""
        return float(self._proved(*guesses(counts), basis)) / self.distance

    def ceiling(self, counts: Counts, basis: Basis) -> float:
        """Return the largest bound that as many runs could prove: that of runs without wrong guesses."""
        sure = self.never_confused(counts, basis)
        if basis["regions"] == 2:
            return self.lower(sure, basis)
        silent = {"guessed_x": 0, "guessed_y": 0}
        return max(self.lower({**sure, name: {**sure[name], **silent}}, basis) for name in ("x", "y"))

    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest delta that this event detects with power 0.8; infinite if there is none.

        The rate of wrong guesses is the observed one, or lower if right guesses leave less room.
        """
        correct, guessed, runs = guesses(counts)
        if guessed == 0:
            return math.inf
        promised, half = self.claim.group(self.distance).budget, _named(basis) / 2

        def surplus(delta: float) -> float:
            """Excess of the expected bound over the promise, less a margin for chance."""
            wrong = min((guessed - correct) / runs, (1 - half * delta) / 2)
            right = wrong + half * delta
            stray = POWERFUL * math.sqrt((right + wrong - (right - wrong) ** 2) / runs) / half
            expected = np.array([right * runs]), np.array([wrong * runs]), np.array([float(runs)])
            named, confidence = _named(basis), self.confidence_at(basis)
            return float(excess_lower(*expected, named=named, confidence=confidence)[0]) - stray - promised

        if surplus(1.0) <= 0:
            return math.inf
        return brentq(surplus, promised, 1.0) / self.distance

    def power(self, truth: Claim, choosing: IntArray, counting: IntArray, *, share: float = 1.0) -> Floats:
        """Return the probability that guesses refute the promise, if the event occurs in a share of runs."""
        delta, powers = min(truth.group(self.distance).budget, share), []
        right = (1 + delta / share) / 2
        for runs in counting.tolist():
            guessed, chance = numbers_of_guesses(runs, share) if share < 1 else (np.array([runs]), np.ones(1))
            powers.append(float(chance @ binomial_sf(self._needed(guessed, runs) - 1, guessed, right)))
        return np.array(powers) * right_side(choosing, right)

    def sawtooth(self, truth: Claim) -> float:
        """Return over how many counting runs power may rise and fall, as a sawtooth does."""
        promised, lost = (claim.group(self.distance).budget for claim in (self.claim, truth))
        return 16 / max(lost - promised, 1e-9)

    def _proved(self, correct: ArrayLike, guessed: ArrayLike, runs: int, basis: Basis) -> Floats:
        """Return the total variation of the pair that guesses prove."""
        named, confidence = _named(basis), self.confidence_at(basis)
        return variation_game_lower(correct, guessed, runs, named=named, confidence=confidence)

    def _needed(self, guessed: Floats, runs: int) -> Floats:
        """Return the fewest right guesses of a rule for both databases that refute the promise, one more if none do."""
        promised = self.claim.group(self.distance).budget
        low, high = np.full(guessed.shape, -1.0), guessed + 1.0
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            correct = np.clip(middle, 0, guessed)
            refuted = (self._proved(correct, guessed, runs, {"regions": 2}) > promised) | (middle > guessed)
            low, high = np.where(refuted, low, middle), np.where(refuted, middle, high)
        return high

    def _rated(self, event: Event, statistics: tuple[Statistic, ...], x: Floats, y: Floats) -> tuple[float, float]:
        """Return a lower bound and an estimate of the difference that an event shows on the runs that chose it."""
        column = statistics.index(event.statistic)
        counts: Counts = {
            name: {"runs": len(scores), **event.rule.counts(scores[:, column])} for name, scores in (("x", x), ("y", y))
        }
        correct, guessed, runs = guesses(counts)
        named = _named(self.basis(event))
        sure = variation_game_lower(correct, guessed, runs, named=named, confidence=CAUTION)
        return float(sure), (2 * correct - guessed) / max(1, runs) / named


def _named(basis: Basis) -> int:
    """Return how many databases a rule may name; 1 if it never guesses, as it then proves nothing."""
    return max(1, int(basis["regions"]))
