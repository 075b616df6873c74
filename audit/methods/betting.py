"""Audits that may stop early: bets on which database each run used, for every family of promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, cast

import numpy as np
from scipy import special

from audit.attacks.selection import Family, Guessing, rate_candidates, select_events, select_weights, tabulated
from audit.bounds.betting import Bet, Lines, betting_evidence, betting_lower, growth, rates, score_growth, staked, total
from audit.claims import Claim
from audit.events import Event, Statistic, WeightRule
from audit.methods.method import LEAST_EXCESS, POWER, Basis, Counts, Floats, Method, guesses, register_method
from audit.methods.variation import Variation

__all__ = ["FIRST", "GUESSED", "SCORED", "TAUGHT", "Bets", "block_size", "prior"]

LEVELS = 32  # most values of a score
OFTENER = 1.25  # ratio of guesses that a rule for normal laws may make to those of the audit
GUESSED = Bet._fields  # what a saved bet on guesses has
SCORED = ("score", "share_other", "share_likely", "runs_other", "runs_likely")  # a bet on a score: `score_growth`
Rates = tuple[int, float, float]  # regions of a rule, and shares of the runs in which it guesses, and wrongly
ALWAYS: Rates = (2, 1.0, 0.5)
FIRST, GROWTH = 8, 1.25  # runs of the first bet, and ratio of all runs before and after a bet
TAUGHT = 12  # runs before the first bet
SETTLED = 1.1  # times the promise: an audit that would have found this loss ends
LEARNING = 1.5  # ratio of runs of an audit that has to find its rules to those of a simulated one, which knows the best
DRAWS, SEED = 100, 20  # simulated audits, and their seed
CLOSE = 0.01  # relative error of a minimum detectable loss


@register_method(Claim, role="early")  # type: ignore[type-abstract]  # of every family
@dataclass(frozen=True)
class Bets(Method):
    """A gambler bets on right guesses, with a rule that all earlier runs teach."""

    bound = "bets on guesses"
    theorem = (
        "A fair coin picks the database of every run, a rule guesses it, and a gambler bets on right guesses at odds "
        "that are fair if the promise holds. Rule and stake follow from earlier runs. A promise of rho is also bet on "
        "with a score, as it limits a divergence. The bound holds whenever the audit stops. No coin "
        "picks given outputs: each bet takes equally many of either database."
    )
    counted = "rules that guess the database"
    sources: ClassVar[tuple[str, ...]] = ("robbins", "waudby", "kairouz", "birrell")
    coins = True
    simulated = True

    last: tuple[Bet, ...] = ()  # the last bet, if there is one: the next rule suits its line

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> list[Event]:
        """Return the event with the largest expected bound at a line of the promise; for rho, also the best score."""
        if self.claim.parameter == "delta":  # rules with the same difference of probabilities may vary very differently
            variation = Variation(self.claim, self.distance, self.confidence)
            events = variation.choose(statistics, x, y, families=families, counting=counting)
            return sorted(events, key=lambda event: self._expected_growth(event, statistics, x, y))[-1:]
        game = Guessing(counting, self.confidence, self._forgiven)
        events = select_events(rate_candidates(tabulated(statistics, x, y, families), game), game)[:1]
        if self.places == 1 or not events:
            return events
        score = select_weights(statistics, x, y, counting=counting, confidence=self.confidence)
        assert isinstance(score.rule, WeightRule)
        return [*events, replace(score, rule=coarser(score.rule))]

    def _expected_growth(self, event: Event, statistics: tuple[Statistic, ...], x: Floats, y: Floats) -> float:
        """Return the growth of a bet on an event by the rates of its guesses on selection runs."""
        column = statistics.index(event.statistic)
        rates = [np.bincount(event.rule.guess(side[:, column]) + 1, minlength=3) / len(side) for side in (x, y)]
        bet = event.rule.parameters()["regions"], *shares(np.array(rates), len(x) + len(y)), 0, 0, 0
        return float(staked([bet], [self.promise])[-1][0, 0, 0])

    @property
    def places(self) -> int:
        """How many events are bet on at a time, with equal shares of the error probability: guesses, and a score."""
        return 2 if self.claim.parameter == "rho" else 1

    @property
    def _forgiven(self) -> float:
        """The delta of the line on which the last bet was, or of the one that suits twice the promised loss."""
        for bet in (*self.last, self._doubled):
            stakes, _, _, d, _ = (float(part[0, 0, 0]) for part in staked([bet], [self.promise]))
            if stakes > 0:
                break
        return min(d * 2 / bet.regions, 0.9)

    @cached_property
    def _doubled(self) -> Bet:
        """A bet on a mechanism that loses twice the promise."""
        twice = self.claim.at(min(2 * self.claim.budget, self._most))
        return Bet(*self._law(twice.group(self.distance), ALWAYS), 0, 0, 0)

    @cached_property
    def promise(self) -> Lines:
        """The lines of the promise for the pair."""
        return lines(self.claim, self.distance, self.claim.budget * (1 + LEAST_EXCESS))

    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the budget of one step that the bets so far refute."""
        most = 1 - 1e-9 if self.claim.parameter == "delta" else math.inf
        question = {"confidence": 1 - (1 - self.confidence) * basis.get("share", 1.0), "most": most}
        question["inflation"] = basis.get("inflation", 1.0)
        return betting_lower(partial(self._evidence, basis), self.claim.budget, **question)

    def check(self, counts: Counts, basis: Basis) -> None:
        """Refuse bets that are not on these counts."""
        bets, runs = cast("Any", basis["bets"]), sum(side["runs"] for side in counts.values())
        if _on_scores(bets):
            fits = all(len({len(bet[name]) for name in SCORED}) == 1 for bet in bets)
        else:
            right, guessed, _ = guesses(counts)
            fits = all(bet["regions"] <= 2 for bet in bets)
            fits &= [sum(bet[name] for bet in bets) for name in ("right", "wrong")] == [right, guessed - right]
        if not fits or sum(_sizes(bets)) != runs:
            raise ValueError(f"bets must be on the {runs} counted runs, with their guesses")

    def evidence(self, basis: Basis) -> float:
        """Return the largest log of the money so far, in bets against the promise."""
        budgets = np.array([self.claim.budget * (1 + LEAST_EXCESS)])
        log = float(self._evidence(basis, budgets).max(initial=0.0))
        return log / basis.get("inflation", 1.0) + math.log(basis.get("share", 1.0))

    def _evidence(self, basis: Basis, budgets: Floats) -> Floats:
        """Return the log of the money after each bet against promises with other budgets, (promises, bets)."""
        bets: Any = basis["bets"]
        if _on_scores(bets):
            rows = [[bet[name] for name in SCORED] for bet in bets]
            return total(score_growth(rows, budgets * self.distance**2).cumsum(axis=1)).T
        rows = [[bet[name] for name in GUESSED] for bet in bets]
        return betting_evidence(rows, [lines(self.claim, self.distance, float(budget)) for budget in budgets])

    @property
    def needed(self) -> float:
        """The evidence that refutes the promise."""
        return -math.log1p(-self.confidence)

    def settled(self, counts: Counts, basis: Basis) -> bool:
        """Return whether the runs so far would have refuted the promise, had the loss been a tenth more."""
        truth = self.claim.at(min(SETTLED * self.claim.budget, self._most))
        return self.detection(truth, _sizes(basis["bets"]), _rates_of(counts, basis)) >= POWER

    def ceiling(self, counts: Counts, basis: Basis) -> float:
        """Return the largest bound that as many runs could prove: that of runs without wrong guesses."""
        sure, past = [], TAUGHT
        for runs in _sizes(basis["bets"]):
            sure.append(Bet(2, *prior(past, past, 0), runs, runs, 0)._asdict())
            past += runs
        return self.lower(counts, {"bets": sure, "share": basis.get("share", 1.0)})

    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest budget of one step that the runs detect with power 0.8, in simulated audits."""
        return self._detectable(tuple(_sizes(basis["bets"])), _rates_of(counts, basis))

    @lru_cache(maxsize=8)  # noqa: B019  every event of an audit has the same
    def _detectable(self, sizes: tuple[int, ...], rates: Rates) -> float:
        low, both = self.claim.budget, (min(SETTLED * self.claim.budget, self._most), self._most)
        enough = [most for most in both if sizes and self.detection(self.claim.at(most), sizes, rates) >= POWER]
        if not enough:
            return math.inf
        high = enough[0]
        while high > low * (1 + CLOSE):
            middle = math.sqrt(low * high)
            seldom = self.detection(self.claim.at(middle), sizes, rates) < POWER
            low, high = (middle, high) if seldom else (low, middle)
        return high

    @property
    def _most(self) -> float:
        """Budget of one step beyond which guesses are never wrong."""
        most = {"delta": 1 - 1e-9, "mu": 30.0, "rho": 450.0}.get(self.claim.parameter, 60.0)
        largest = most if self.claim.parameter == "delta" else math.inf
        return min(largest, max(self.claim.budget * (1 + CLOSE), most / self.distance))

    def detection(self, truth: Claim, sizes: Sequence[int], rates: Rates = ALWAYS) -> float:
        """Return the share of simulated audits, with bets on so many runs each, that refute the promise."""
        if rates[1] == 0:
            return 0.0
        sizes = [max(1, round(runs / LEARNING)) for runs in sizes]
        return float(np.mean(self.ends(truth, sizes, rates) < len(sizes)))

    def ends(self, truth: Claim, sizes: Sequence[int], rates: Rates = ALWAYS) -> Floats:
        """Return the number of the bet that refutes the promise in simulated audits; `len(sizes)` if none does.

        The rule is the best one of a mechanism with the loss of `truth`, which guesses at these `rates`.
        """
        regions, right, wrong = self._law(truth.group(self.distance), rates)
        law, rng = [right, wrong, max(0.0, 1 - right - wrong)], np.random.default_rng(SEED)
        runs = np.broadcast_to(np.array(sizes)[:, None], (len(sizes), DRAWS))
        new = rng.multinomial(runs, law)
        past = np.concatenate([rng.multinomial(TAUGHT, law, (1, DRAWS)), new[:-1]]).cumsum(axis=0)
        expected = prior(past.sum(axis=2), past[..., 0], past[..., 1])
        bets = np.stack([np.full(runs.shape, regions), *expected, runs, new[..., 0], new[..., 1]], axis=-1)
        # The line that suits the law suits nearly every bet.
        *_, loss, d, _ = staked([(regions, right, wrong, 0, 0, 0)], [self.promise])
        line = np.log(loss - d).ravel(), d.ravel() * 2 / regions
        logs = total(growth(bets, [line]).reshape(-1, *runs.shape).cumsum(axis=1))
        if self.places == 2:
            logs = np.maximum(logs, self._scored(truth, sizes))
        refuted = logs >= self.needed + math.log(self.places)
        return np.where(refuted.any(axis=0), refuted.argmax(axis=0), len(sizes))

    def _scored(self, truth: Claim, sizes: Sequence[int]) -> Floats:
        """Return the evidence after each bet on the likelihood ratio of two normal laws with the loss of `truth`."""
        shift, rng = truth.group(self.distance).shift, np.random.default_rng(SEED)
        inner = shift * np.linspace(-1, 1, LEVELS - 1) * (2.5 + shift / 2)  # edges of bins of the ratio
        laws = [np.diff(special.ndtr(inner / shift + side * shift / 2), prepend=0.0, append=1.0) for side in (1, -1)]
        score = np.concatenate([inner[:1], (inner[1:] + inner[:-1]) / 2, inner[-1:]])
        budget = np.array([self.claim.budget * self.distance**2])
        on_y = rng.binomial(np.array(sizes)[:, None], 0.5, (len(sizes), DRAWS))
        first = np.full((1, DRAWS), TAUGHT // 2)
        runs = [np.concatenate([first, side]) for side in (np.array(sizes)[:, None] - on_y, on_y)]
        counts = [rng.multinomial(side, law) for side, law in zip(runs, laws, strict=True)]
        past = [rates(side.cumsum(axis=0)[:-1]) for side in counts]
        bets = np.stack([np.broadcast_to(score, past[0].shape), *past, *(side[1:] for side in counts)], axis=2)
        grown = score_growth(bets.reshape(-1, 5, LEVELS), budget)
        return total(grown.reshape(-1, len(sizes), DRAWS).cumsum(axis=1))

    def _law(self, truth: Claim, rates: Rates) -> tuple[int, float, float]:
        """Return regions, and shares of right and wrong guesses, if a mechanism loses the most that is allowed."""
        regions, guessed, wrong = rates
        if truth.parameter == "delta":
            named = regions / 2 * truth.budget
            wrong = min(wrong, (1 - named) / 2)
            return regions, wrong + named, wrong
        if truth.epsilon_delta is not None:
            epsilon, delta = truth.epsilon_delta
            wrong = max(0.0, guessed - regions / 2 * delta) * float(special.expit(-epsilon))
            return regions, guessed - wrong, wrong
        try:
            thresholds = np.linspace(0.0, 4.0, 33)
            laws = [special.ndtr(sign * truth.shift / 2 - thresholds) for sign in (1, -1)]
        except TypeError:  # no normal laws have such a loss
            return 2, truth.guessed_right, 1 - truth.guessed_right
        bets = np.stack([np.full(33, 2.0), *laws, *np.zeros((3, 33))], axis=-1)
        grown = staked(bets, [self.promise])[-1][:, 0, 0]
        best = int(np.where(sum(laws) <= OFTENER * guessed, grown, -1.0).argmax())
        return 2, float(laws[0][best]), float(laws[1][best])


@lru_cache(maxsize=4096)
def lines(claim: Claim, distance: int, budget: float) -> Lines:
    """Return the lines of a promise for a pair, if a step has another budget."""
    return claim.at(budget).group(distance).lines()


def prior(runs: Any, right: Any, wrong: Any) -> tuple[Any, Any]:
    """Return the expected shares of right and of wrong guesses: those of past runs, and of one that is half of each."""
    return (right + 0.5) / (runs + 1), (wrong + 0.5) / (runs + 1)


def shares(rates: Floats, runs: float) -> tuple[float, float]:
    """Return the expected shares of right and wrong guesses, from the rates of guesses on `x` and on `y`."""
    return prior(runs, runs / 2 * float(rates[0, 0] + rates[1, 2]), runs / 2 * float(rates[0, 2] + rates[1, 0]))


def coarser(rule: WeightRule) -> WeightRule:
    """Return a rule with neighboring bins put together, as each bet keeps all counts."""
    step = math.ceil(rule.weights.size / LEVELS)
    starts = np.arange(0, rule.weights.size, step)
    weights = np.add.reduceat(rule.weights, starts) / np.diff(starts, append=rule.weights.size)
    return replace(rule, edges=rule.edges[starts[1:] - 1], weights=np.round(weights, 6))


def _on_scores(bets: Any) -> bool:
    return bool(bets) and "score" in bets[0]


def _sizes(bets: Any) -> list[int]:
    """Return the runs of each bet."""
    if _on_scores(bets):
        return [sum(bet["runs_other"]) + sum(bet["runs_likely"]) for bet in bets]
    return [bet["runs"] for bet in bets]


def _rates_of(counts: Counts, basis: Basis) -> Rates:
    """Return how many databases the last rule could name, and the shares of guesses and of wrong ones of all rules."""
    bets: Any = basis["bets"]
    if not bets or (_on_scores(bets) and len(set(bets[-1]["score"])) == 1):
        return 2, 0.0, 0.0
    if _on_scores(bets):
        return ALWAYS
    right, guessed, runs = guesses(counts)
    return max(1, bets[-1]["regions"]), guessed / runs, (guessed - right) / runs


def block_size(made: int, size: int) -> int:
    """Return on how many runs to bet next, after so many of `size`."""
    return min(size - made, max(FIRST, round(made * (GROWTH - 1))))
