"""How often an audit of a mechanism that loses more than it promises says so: the power of a plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from audit.bounds.limits import clopper_pearson_lower
from audit.bounds.one_run import one_run_p_value
from audit.bounds.rectangle import rectangle
from audit.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from audit.loss import FEWEST_FOR_GAME
from audit.methods.rehearsal import divergence_power, region_power
from audit.one_run import POINTS, SHARES

__all__ = ["Design", "Plan"]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Design = Literal["coins", "outputs", "one_run"]

LARGEST_LOSS, LARGEST_SHIFT = 60.0, 30.0  # of a pair, in nats and standard deviations: nothing is confused any more
NODES = 513  # numbers of guesses that stand for all, where there are more


@dataclass(frozen=True)
class Plan:
    """All that decides the power of an audit, but for the number of runs and the loss that they should see.

    Attributes
    ----------
    claim, confidence, distance, selection, share, design
        As `audit.planning.plan_size` takes them, checked.
    """

    claim: Claim
    confidence: float
    distance: int
    selection: float
    share: float
    design: Design

    @property
    def rehearsed(self) -> bool:
        """Whether the mechanism is two normal laws, the event of which is chosen on made-up runs."""
        return isinstance(self.claim, GaussianDP | ZCDP) and self.design != "one_run"

    @property
    def exact(self) -> bool:
        """Whether power is computed for whole ranges of sizes, without approximation."""
        return not self.rehearsed and self.share == 1 and (self.design != "one_run" or isinstance(self.claim, PureDP))

    @property
    def step(self) -> int:
        """By how much sizes differ: given outputs come in pairs."""
        return 2 if self.design == "outputs" else 1

    @property
    def least(self) -> int:
        """Fewest runs that choose and count an event."""
        if self.design == "one_run":
            return 1
        size = 2 * self.step
        if self.selection > 0:
            size = max(size, 2 * int(3.5 / self.selection))
        while (self.selection > 0 and self.split(size)[0] < 8) or min(self.split(size)[1:]) < self.step:
            size += self.step
        return size

    @property
    def largest_violation(self) -> float:
        """Up to where a violation differs from one that nobody could miss."""
        pair = self.claim.group(self.distance)
        if isinstance(pair, ZCDP):
            return max(LARGEST_SHIFT**2 / 2 / pair.rho, 1.0)
        return max((LARGEST_SHIFT if isinstance(pair, GaussianDP) else LARGEST_LOSS) / pair.budget, 1.0)

    def split(self, size: int) -> tuple[int, int, int]:
        """Return how many runs choose, and how many are left on `x` and on `y` (if a coin picks, on average)."""
        choosing = round(size // self.step * self.step * self.selection)
        if self.design == "outputs":
            each = size // 2 - choosing // 2
            return choosing // 2 * 2, each, each
        left = size - choosing
        return choosing, left - left // 2, left // 2

    def power(self, size: int, violation: float) -> float:
        """Return the probability of the verdict, of so many runs and a loss so many times the promise."""
        return _rehearsed(self, size, violation) if self.rehearsed else float(self.powers(size, violation)[0])

    def powers(self, sizes: int | Whole, violation: float) -> Floats:
        """Return the probability of the verdict at each of several sizes, for games of coins."""
        sizes = np.atleast_1d(sizes)
        promise, truth = self.claim.group(self.distance), self.truth(violation)
        right = right_guesses(truth, self.share)
        if self.design == "one_run":
            if self.exact:
                return _game(promise, right, sizes, 1.0, self.confidence)
            return np.array([_one_run(promise, truth, canaries, self.confidence) for canaries in sizes.tolist()])
        choosing = np.rint(sizes // self.step * self.step * self.selection).astype(np.int64)
        if self.design == "coins":
            found = _game(promise, right, sizes - choosing, self.share, self.confidence)
        else:
            choosing = choosing // 2 * 2
            found = _outputs(promise, right, sizes // 2 - choosing // 2, self.confidence)
        if self.selection == 0:
            return found
        # Selection runs name the right side of the event where most of them lie on it.
        even = np.where(choosing % 2 == 0, stats.binom.pmf(choosing // 2, choosing, right) / 2, 0.0)
        return np.asarray(found * (stats.binom.sf(choosing // 2, choosing, right) + even))

    def truth(self, violation: float) -> Claim:
        """Return what the pair loses, if one step loses so many times the promise."""
        return self.claim.at(violation * self.claim.budget).group(self.distance)


def right_guesses(truth: Claim, share: float) -> float:
    """Return how often a guess is right if all of a loss is in the event, and that is seen in a share of the runs.

    Parameters
    ----------
    truth : claim
        What the pair loses; of one that is neither pure nor approximate the number has no meaning.
    share : float
        In (0, 1].

    Returns
    -------
    float
        Probability, given a guess.
    """
    delta = truth.delta if isinstance(truth, ApproxDP) else 0.0
    return 1 - max(0.0, share - delta) * float(special.expit(-truth.budget)) / share


@lru_cache(maxsize=1024)
def _rehearsed(plan: Plan, size: int, violation: float) -> float:
    """Return how often two normal laws that lose so much show it."""
    promise, truth = plan.claim.group(plan.distance), plan.truth(violation)
    selecting = plan.selection > 0
    if isinstance(promise, GaussianDP):
        laws = promise.mu, truth.budget, *plan.split(size)
        return region_power(*laws, confidence=plan.confidence, selection=selecting)
    laws = promise.budget, math.sqrt(2 * truth.budget), *plan.split(size)
    return divergence_power(*laws, confidence=plan.confidence, selection=selecting)


def _game(promise: Claim, right: float, counting: Whole, share: float, confidence: float) -> Floats:
    """Return how often right guesses are too many for the promise, for each number of runs that count."""
    if share == 1:
        needed = _needed(promise, counting, counting, confidence)
        return np.asarray(stats.binom.sf(needed - 1, counting, right))
    found = []
    for runs in counting.tolist():
        spread = 9 * math.sqrt(runs * share * (1 - share)) + 9
        if spread < NODES:
            guesses = np.arange(max(0, math.floor(runs * share - spread)), min(runs, runs * share + spread) + 1)
            chance = stats.binom.pmf(guesses, runs, share)
        else:
            guesses = stats.binom.ppf((np.arange(NODES) + 0.5) / NODES, runs, share)
            chance = np.full(NODES, 1 / NODES)
        shown = stats.binom.sf(_needed(promise, guesses, np.array(runs), confidence) - 1, guesses, right)
        found.append(float(chance @ shown))
    return np.array(found)


def _needed(promise: Claim, guesses: NDArray[Any], runs: NDArray[Any], confidence: float) -> Floats:
    """Return the fewest right guesses that refute a promise for the pair, one more than all if none do.

    With a delta, a tenth of the error is spent on how often a guess is made, as `approx_game_lower` does.
    """
    delta = promise.delta if isinstance(promise, ApproxDP) else 0.0
    right, error = float(special.expit(promise.budget)), 1 - confidence
    limit = np.full(guesses.shape, right)
    if delta > 0:
        guessed = clopper_pearson_lower(guesses, runs, confidence=1 - 0.1 * error)
        limit = np.minimum(right + delta * (1 - right) / np.maximum(guessed, 1e-300), 1.0)
        error *= 0.9
    needed = stats.binom.isf(error, np.maximum(guesses, 1), limit) + 1
    return np.asarray(np.where((guesses > 0) & (limit < 1), needed, guesses + 1))


def _outputs(promise: Claim, right: float, each: Whole, confidence: float) -> Floats:
    """Return how often given outputs refute a promise, when so many on either database are left to count."""
    tosses = (2 * each - 6 * np.sqrt(2 * each)).astype(np.int64)  # as many as outputs are left for, but for 4e-8
    found = _game(promise, right, np.maximum(tosses, 0), 1.0, confidence)
    for few in np.flatnonzero(each < FEWEST_FOR_GAME).tolist():
        found[few] = _rectangle(promise, right, int(each[few]), confidence)
    return found


def _rectangle(promise: Claim, right: float, each: int, confidence: float) -> float:
    """Return how often two Clopper-Pearson limits refute a promise, for each of two regions."""
    # Either region has half of the error, and each of its two limits half of that.
    met = np.arange(each + 1)
    on_y, on_x = met[:, None], met[None, :]
    times, more = math.exp(min(promise.budget, 700.0)), promise.delta if isinstance(promise, ApproxDP) else 0.0
    shown = np.zeros((each + 1, each + 1), bool)
    for likely, other in ((on_y, on_x), (each - on_x, each - on_y)):
        low, high = rectangle(likely, each, other, each, confidence=1 - (1 - confidence) / 2)
        shown |= low > high * times + more
    chance = np.outer(stats.binom.pmf(met, each, right), stats.binom.pmf(met, each, 1 - right))
    return float(chance[shown].sum())


def _one_run(promise: Claim, truth: Claim, canaries: int, confidence: float) -> float:
    """Return how often one run with so many canaries refutes a promise that forgives something."""
    share, alpha = SHARES[truth.kind], 1 - confidence
    guesses, right = max(1, round(share * canaries)), _clearest_right(truth, share)
    if isinstance(promise, ApproxDP):
        points = [(promise.epsilon, promise.delta)]
    else:  # of the profile, as `measure_loss_one_run` takes them
        deltas = [point * alpha / canaries for point in POINTS]
        points = [(promise.epsilon_at(delta), delta) for delta in deltas if delta < 1]

    def refuted(correct: int) -> bool:
        values = (
            one_run_p_value(correct, guesses, epsilon, delta=delta, canaries=canaries) if delta < 1 else 1.0
            for epsilon, delta in points
        )
        return len(points) * min(values) < alpha

    # As many as would do if nothing were forgiven, and on from there.
    low = high = int(stats.binom.isf(alpha, guesses, special.expit(min(epsilon for epsilon, _ in points))))
    step = 1
    while high <= guesses and not refuted(high):
        low, high, step = high, high + step, 2 * step
    high = min(high, guesses + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return float(stats.binom.sf(high - 1, guesses, right))


def _clearest_right(truth: Claim, share: float) -> float:
    """Return how often the clearest guesses, as many as a share of the canaries, are right."""
    if isinstance(truth, ApproxDP):
        return right_guesses(truth, share)
    half = (truth.mu if isinstance(truth, GaussianDP) else math.sqrt(2 * truth.budget)) / 2

    def beyond(threshold: float) -> float:
        return float(special.ndtr(half - threshold) + special.ndtr(-half - threshold)) - share

    return min(1.0, float(special.ndtr(half - optimize.brentq(beyond, 0.0, half + 10))) / share)
