"""The verdict: the promise says which theorem turns counts into a bound, and the bound is held against it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from audit.attacks import Attack
from audit.attacks.selection import Family, select_event, select_region, select_weights
from audit.bounds.anytime import anytime_game_lower, look_confidence
from audit.bounds.game import approx_game_lower, guessing_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.limits import check_confidence, clopper_pearson_lower, clopper_pearson_upper
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP, Relation
from audit.claims.families import FAMILIES
from audit.events import Event, Statistic, WeightRule
from audit.mechanism import Mechanism
from audit.methods.ceilings import divergence_ceiling, game_ceiling, rectangle_ceiling, region_ceiling
from audit.methods.detectable import (
    detectable_loss,
    divergence_detectable,
    divergence_event_detectable,
    game_detectable,
    rectangle_detectable,
    region_detectable,
)
from audit.neighbors import NeighborPair
from audit.results import AuditResult, verdict_of

__all__ = [
    "AnytimeGame",
    "Counts",
    "Divergence",
    "Game",
    "Method",
    "Rectangle",
    "Region",
    "added",
    "check_question",
    "counted",
    "judge",
    "method_for",
    "support_witness",
]

ROUNDING = 1e-9  # relative error that the masses of an exact law may have

Counts = dict[str, dict[str, int]]
Floats = NDArray[np.float64]


class Method(Protocol):
    """How one family of promises is measured: which rule is chosen, and what its counts prove."""

    @property
    def bound(self) -> str:
        """The theorem, in words."""

    @property
    def coins(self) -> bool:
        """Whether a fair coin must pick the database of each run."""

    @property
    def claim(self) -> Claim:
        """The promise for one step."""

    @property
    def distance(self) -> int:
        """Steps between the two databases."""

    @property
    def confidence(self) -> float:
        """One-sided, in (0, 1)."""

    def basis(self, event: Event) -> dict[str, Any]:
        """Return what `lower` reads besides the counts, as plain values."""

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> Event:
        """Return the event that promises the largest bound, from scores on selection runs."""

    def lower(self, event: Event, counts: Counts) -> float:
        """Return the epsilon, rho or mu of one step that the counts prove."""

    def ceiling(self, event: Event, counts: Counts) -> float:
        """Return the largest that as many runs could have proved."""

    def detectable(self, event: Event, counts: Counts) -> float:
        """Return the smallest that as many runs would have called a violation, with power 0.8."""


@dataclass(frozen=True)
class Game:
    """Pure and approximate privacy: guesses at the coin that picked the database of each run."""

    claim: PureDP | ApproxDP
    distance: int
    confidence: float

    bound = "guessing game"
    coins = True

    @property
    def delta(self) -> float:
        """What one step forgives: nothing, of a pure promise."""
        return _forgiven(self.claim)

    def basis(self, event: Event) -> dict[str, Any]:
        """Return what `lower` reads besides the counts: nothing."""
        return {}

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> Event:
        """Return the event that promises the largest bound, from scores on selection runs."""
        forgiven = ApproxDP(self.claim.budget, self.delta).group(self.distance).delta
        return select_event(
            statistics, x, y, families=families, counting=counting, confidence=self.confidence, forgiven=forgiven
        )

    def lower(self, event: Event, counts: Counts) -> float:
        """Return the epsilon of one step that the guesses prove."""
        correct, guessed, runs = _guesses(counts)
        if self.delta == 0:
            return float(guessing_game_lower(correct, guessed, confidence=self.confidence)) / self.distance
        return approx_game_lower(
            correct, guessed, runs, delta=self.delta, confidence=self.confidence, distance=self.distance
        )

    def ceiling(self, event: Event, counts: Counts) -> float:
        """Return what the same runs would prove if all were guessed, and rightly."""
        return game_ceiling(_guesses(counts)[2], confidence=self.confidence, distance=self.distance, delta=self.delta)

    def detectable(self, event: Event, counts: Counts) -> float:
        """Return the smallest epsilon that as many guesses would have called a violation, with power 0.8."""
        _, guessed, runs = _guesses(counts)
        return game_detectable(
            self.claim.epsilon,
            guessed,
            confidence=self.confidence,
            distance=self.distance,
            delta=self.delta,
            runs=runs,
        )


@dataclass(frozen=True)
class AnytimeGame(Game):
    """The same game, looked at as often as one likes: a bound that holds at every look at once.

    Attributes
    ----------
    expected : tuple of float or None
        Guesses by the last look, and the share of them that is right, as selection runs suggest.
    """

    expected: tuple[float, float] | None = None

    bound = "anytime-valid guessing game"
    growth = 1.25

    def basis(self, event: Event) -> dict[str, Any]:
        """Return what `lower` reads besides the counts: where the wealth was staked."""
        return {"expected": None if self.expected is None else list(self.expected)}

    def lower(self, event: Event, counts: Counts) -> float:
        """Return the epsilon of one step that the guesses so far prove."""
        return self._proved(*_guesses(counts))

    def _proved(self, correct: int, guessed: int, runs: int) -> float:
        return anytime_game_lower(
            correct,
            guessed - correct,
            runs,
            confidence=self.confidence,
            delta=self.delta,
            distance=self.distance,
            expected=self.expected,
        )

    def ceiling(self, event: Event, counts: Counts) -> float:
        """Return what the same runs would prove if all were guessed, and rightly."""
        runs = _guesses(counts)[2]
        return self._proved(runs, runs, runs)

    def detectable(self, event: Event, counts: Counts) -> float:
        """Return the smallest epsilon that as many guesses would have called a violation, with power 0.8."""
        _, guessed, runs = _guesses(counts)
        return detectable_loss(
            lambda correct: self._proved(correct, guessed, runs) > self.claim.epsilon,
            guessed,
            runs,
            distance=self.distance,
            delta=self.delta,
        )

    def after(self, looks: int) -> Self:
        """Return the method of a look: the same at every one."""
        return self


@dataclass(frozen=True)
class Rectangle:
    """Pure and approximate privacy with few fixed numbers of runs: exact limits for two probabilities."""

    claim: PureDP | ApproxDP
    distance: int
    confidence: float

    bound = "Clopper-Pearson rectangle"
    coins = False

    basis = Game.basis
    choose = Game.choose

    @property
    def delta(self) -> float:
        """What one step forgives: nothing, of a pure promise."""
        return _forgiven(self.claim)

    def lower(self, event: Event, counts: Counts) -> float:
        """Return the epsilon of one step that the better of the two regions proves."""
        each = 1 - (1 - self.confidence) / 4  # two regions, each with a lower limit here and an upper one there
        found = 0.0
        for likely, other, guess in _regions(counts):
            low = float(clopper_pearson_lower(likely[guess], likely["runs"], confidence=each))
            high = float(clopper_pearson_upper(other[guess], other["runs"], confidence=each))

            def rejected(epsilon: float, low: float = low, high: float = high) -> bool:
                promise = ApproxDP(epsilon, self.delta).group(self.distance)
                return low > high * math.exp(min(promise.epsilon, 700.0)) + promise.delta

            found = max(found, _largest(rejected))
        return found

    def ceiling(self, event: Event, counts: Counts) -> float:
        """Return what the same runs would prove of an event that is certain here and never seen there."""
        x, y = counts["x"]["runs"], counts["y"]["runs"]
        return rectangle_ceiling(x, y, confidence=1 - (1 - self.confidence) / 2, distance=self.distance)

    def detectable(self, event: Event, counts: Counts) -> float:
        """Return the smallest epsilon that the region which sees farther would have called a violation."""
        return min(
            rectangle_detectable(
                self.claim.epsilon,
                other["runs"],
                likely["runs"],
                confidence=1 - (1 - self.confidence) / 2,
                distance=self.distance,
                share=sum(side[guess] / max(1, side["runs"]) for side in (likely, other)),
                delta=self.delta,
            )
            for likely, other, guess in _regions(counts)
        )


@dataclass(frozen=True)
class Region:
    """Gaussian privacy: exact limits for the two probabilities of a region, on the trade-off curve of normal laws."""

    claim: GaussianDP
    distance: int
    confidence: float
    look: int = field(default=0, compare=False)

    bound = "Gaussian trade-off of a Clopper-Pearson rectangle"
    coins = False
    growth = 2.0  # every look spends error probability

    def basis(self, event: Event) -> dict[str, Any]:
        """Return what `lower` reads besides the counts: regions that the rule may name, and the number of the look."""
        return {"regions": event.rule.regions, "look": self.look}

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> Event:
        """Return the region that promises the largest bound, from scores on selection runs."""
        return select_region(statistics, x, y, families=families, counting=counting, confidence=self.confidence)

    def lower(self, event: Event, counts: Counts) -> float:
        """Return the mu of one step that the better of the rule's regions proves."""
        each = _each_region(event, self.confidence)
        return (
            max(
                float(gaussian_lower(a[guess], a["runs"], b[guess], b["runs"], confidence=each))
                for a, b, guess in _regions(counts)
            )
            / self.distance
        )

    def ceiling(self, event: Event, counts: Counts) -> float:
        """Return what the same runs would prove of a region that is certain here and never seen there."""
        x, y = counts["x"]["runs"], counts["y"]["runs"]
        return region_ceiling(x, y, confidence=_each_region(event, self.confidence), distance=self.distance)

    def detectable(self, event: Event, counts: Counts) -> float:
        """Return the smallest mu that the region which sees farther would have called a violation."""
        return min(
            region_detectable(
                self.claim.mu,
                other[guess],
                other["runs"],
                likely["runs"],
                confidence=_each_region(event, self.confidence),
                distance=self.distance,
            )
            for likely, other, guess in _regions(counts)
        )

    def after(self, looks: int) -> Self:
        """Return the method of a look, with its share of the error probability."""
        return replace(self, confidence=look_confidence(looks, self.confidence), look=looks)


@dataclass(frozen=True)
class Divergence:
    """Zero-concentrated privacy: a Renyi divergence, from a held-out likelihood ratio or one registered event."""

    claim: ZCDP
    distance: int
    confidence: float
    look: int = field(default=0, compare=False)

    bound = "variational Renyi divergence"
    coins = False
    growth = 2.0  # every look spends error probability

    def basis(self, event: Event) -> dict[str, Any]:
        """Return what `lower` reads besides the counts: the weight of every bin, or the regions; and the look."""
        rule = event.rule
        if isinstance(rule, WeightRule):
            weighed = {"weights": rule.weights.tolist(), "order": float(rule.order), "toward": rule.toward}
            return {**weighed, "look": self.look}
        return {"regions": rule.regions, "look": self.look}

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> Event:
        """Return the likelihood-ratio estimate that promises the largest bound, from scores on selection runs."""
        return select_weights(statistics, x, y, counting=counting, confidence=self.confidence)

    def lower(self, event: Event, counts: Counts) -> float:
        """Return the rho of one step that the counts prove."""
        if isinstance(event.rule, WeightRule):
            first, second = (counts["y"], counts["x"]) if event.rule.toward == "y" else (counts["x"], counts["y"])
            numbers = range(event.rule.weights.size)
            bins = (np.array([side.get(f"bin {k}", 0) for k in numbers]) for side in (first, second))
            pair = renyi_variational_lower(
                event.rule.weights, *bins, order=event.rule.order, confidence=self.confidence
            )
        else:
            each = _each_region(event, self.confidence)
            pair = max(
                renyi_event_lower(a[guess], a["runs"], b[guess], b["runs"], confidence=each)
                for a, b, guess in _regions(counts)
            )
        return pair / self.distance**2

    def ceiling(self, event: Event, counts: Counts) -> float:
        """Return what the same runs would prove of databases that no output confuses, by this event or a better one."""
        x, y = counts["x"]["runs"], counts["y"]["runs"]
        best = divergence_ceiling(x, y, confidence=self.confidence, distance=self.distance)
        return max(best, self.lower(event, _never_confused(event, x, y)))

    def detectable(self, event: Event, counts: Counts) -> float:
        """Return the smallest rho of normal laws that as many runs would have called a violation, with power 0.8."""
        if isinstance(event.rule, WeightRule):
            x, y = counts["x"]["runs"], counts["y"]["runs"]
            return divergence_detectable(self.claim.rho, x, y, confidence=self.confidence, distance=self.distance)
        return min(
            divergence_event_detectable(
                self.claim.rho,
                other[guess],
                other["runs"],
                likely["runs"],
                confidence=_each_region(event, self.confidence),
                distance=self.distance,
            )
            for likely, other, guess in _regions(counts)
        )

    def after(self, looks: int) -> Self:
        """Return the method of a look, with its share of the error probability."""
        return replace(self, confidence=look_confidence(looks, self.confidence), look=looks)


def method_for(claim: Claim, distance: int, confidence: float) -> Game | Region | Divergence:
    """Return how a promise is measured.

    Parameters
    ----------
    claim : PureDP, ApproxDP, ZCDP or GaussianDP
        The promise.
    distance : int
        Steps between the two databases.
    confidence : float
        One-sided, in (0, 1).

    Returns
    -------
    Method
        The default of its family.
    """
    if isinstance(claim, GaussianDP):
        return Region(claim, distance, confidence)
    if isinstance(claim, ZCDP):
        return Divergence(claim, distance, confidence)
    return Game(claim, distance, confidence)  # type: ignore[arg-type]


def check_question(
    claim: object, relation: Relation, attack: str | Attack, event: Event | None, confidence: float
) -> Attack:
    """Refuse what cannot be asked, before anything runs.

    Parameters
    ----------
    claim, relation, attack, event, confidence
        As given to `measure_loss`.

    Returns
    -------
    Attack
        What will be searched.

    Raises
    ------
    ValueError
        If the claim is empty, its relation is not that of the pair, or a number is out of range.
    TypeError
        If an argument is of the wrong kind.
    """
    if not isinstance(claim, Claim):
        kinds = ", ".join(kind.__name__ for kind in FAMILIES.values())
        raise TypeError(f"claim must be one of {kinds}, got {type(claim).__name__}")
    if not 0 < claim.budget < math.inf:
        raise ValueError(
            f"a claim that is audited must have a positive and finite {claim.parameter}, got {claim.budget}"
        )
    if isinstance(claim, ApproxDP) and not claim.delta < 1:
        raise ValueError(f"a claim that is audited must have a delta in [0, 1), got {claim.delta}")
    if relation != claim.relation:
        way = (
            'audit claim.under("replace_one"), or pair.under("add_remove") at distance 2'
            if claim.relation == "add_remove"
            else "build the pair with move_people, or state the claim for add_remove"
        )
        raise ValueError(f"the pair is {relation} and the claim {claim.relation}: {way}")
    check_confidence(confidence)
    if event is not None and not isinstance(event, Event):
        raise TypeError(f"event must be an Event, got {type(event).__name__}")
    if event is not None and isinstance(event.rule, WeightRule) and not isinstance(claim, ZCDP):
        raise ValueError(f"an event that weighs likelihood ratios bounds a rho, got a claim of {claim.parameter}")
    if isinstance(attack, str):
        return Attack.named(attack)
    if not isinstance(attack, Attack):
        raise TypeError(f"attack must be a name or an Attack, got {type(attack).__name__}")
    return attack


def counted(event: Event, scores_x: Floats, scores_y: Floats) -> Counts:
    """Count what an event says of scores, shape (runs,) on either database: all that a bound needs.

    Parameters
    ----------
    event : Event
        Fixed before these runs.
    scores_x, scores_y : ndarray of float, shape (runs,)
        Of its statistic.

    Returns
    -------
    dict
        For ``"x"`` and ``"y"`` the ``runs``, and how often either database was guessed or each bin was met.
    """
    counts: Counts = {}
    for name, scores in (("x", scores_x), ("y", scores_y)):
        counts[name] = {"runs": scores.size}
        if isinstance(event.rule, WeightRule):
            numbers, seen = np.unique(event.rule.bins(scores), return_counts=True)
            counts[name] |= {f"bin {k}": int(n) for k, n in zip(numbers, seen, strict=True)}
        else:
            guesses = event.rule.guess(scores)
            counts[name] |= {"guessed_x": int(np.sum(guesses < 0)), "guessed_y": int(np.sum(guesses > 0))}
    return counts


def added(first: Counts, second: Counts) -> Counts:
    """Return the counts of two sets of runs together.

    Parameters
    ----------
    first, second : dict
        As `counted` returns them, of one event.

    Returns
    -------
    dict
        The same.
    """
    return {
        name: {key: first[name].get(key, 0) + second[name].get(key, 0) for key in first[name] | second[name]}
        for name in first
    }


def judge(
    begun: float, method: Method, event: Event, counts: Counts, *, support: dict[str, Any] | None, **rest: Any
) -> AuditResult:
    """Turn counts into a bound, and hold the bound against the promise.

    Parameters
    ----------
    begun : float
        Time of `time.perf_counter` when the audit began.
    method : Method
        The theorem, with the promise, the distance of the pair and the confidence.
    event : Event
        What was counted.
    counts : dict
        As `counted` returns them.
    support : dict or None
        The witness of an unbounded loss.
    **rest
        Further fields of the result.

    Returns
    -------
    AuditResult
        With the verdict.
    """
    claim = method.claim
    measured = claim.at(method.lower(event, counts))
    detectable = method.detectable(event, counts)
    return AuditResult(
        claim=claim,
        measured=measured,
        verdict=verdict_of(claim, measured, detectable, support is not None),
        event=str(event),
        counts=counts,
        distance=method.distance,
        bound=method.bound,
        ceiling=method.ceiling(event, counts),
        detectable=detectable,
        support=support,
        basis=method.basis(event),
        seconds=time.perf_counter() - begun,
        **rest,
    )


def support_witness(mechanism: Mechanism, pair: NeighborPair, claim: Claim) -> dict[str, Any] | None:
    """Look for an output that is possible on one database only, and that the promise does not forgive.

    Parameters
    ----------
    mechanism : Mechanism
        Asked for its exact law, or for what of it has no counterpart, if it knows either.
    pair : NeighborPair
        The two databases.
    claim : claim
        The promise: approximate privacy forgives its delta.

    Returns
    -------
    dict or None
        ``order`` and ``probability`` of the witness, if the law is known and holds one.
    """
    exact, masses = (getattr(mechanism, name, None) for name in ("exact_loss", "support_masses"))
    law = exact(pair) if callable(exact) else None
    if law is not None:
        on_x, on_y = law.infinite_mass, law.missing_mass
    else:
        on_x, on_y = masses(pair) if callable(masses) else (0.0, 0.0)
    if max(on_x, on_y) <= _forgiven(claim.group(pair.distance)) * (1 + ROUNDING):
        return None
    order, mass = ("x", on_x) if on_x >= on_y else ("y", on_y)
    return {"order": f"possible on {order} only", "probability": mass}


def _forgiven(claim: Claim) -> float:
    return claim.delta if isinstance(claim, ApproxDP) else 0.0


def _largest(rejected: Callable[[float], bool]) -> float:
    """Return the largest epsilon that is rejected, where all below it are too; 0 if none is."""
    low, high = 0.0, 1.0
    while rejected(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def _guesses(counts: Counts) -> tuple[int, int, int]:
    """Return how many guesses were right, how many there were, and the runs."""
    x, y = counts["x"], counts["y"]
    correct = x["guessed_x"] + y["guessed_y"]
    return correct, correct + x["guessed_y"] + y["guessed_x"], x["runs"] + y["runs"]


def _regions(counts: Counts) -> list[tuple[dict[str, int], dict[str, int], str]]:
    """Return either region that a rule names: the counts where it is likely, the others, and its name."""
    return [(counts["y"], counts["x"], "guessed_y"), (counts["x"], counts["y"], "guessed_x")]


def _each_region(event: Event, confidence: float) -> float:
    """Return the confidence left to each region that a rule may name: a matter of the rule, not of its counts."""
    return 1 - (1 - confidence) / 2 if event.rule.regions == 2 else confidence


def _never_confused(event: Event, x: int, y: int) -> Counts:
    """Return the counts of runs all of which speak as strongly as the event allows for their own database."""
    if not isinstance(event.rule, WeightRule):
        named = {"guessed_x": x, "guessed_y": 0}, {"guessed_x": 0, "guessed_y": y}
        return {"x": {"runs": x, **named[0]}, "y": {"runs": y, **named[1]}}
    extremes = {"x": np.argmin, "y": np.argmax} if event.rule.toward == "y" else {"x": np.argmax, "y": np.argmin}
    return {
        name: {"runs": runs, f"bin {int(extremes[name](event.rule.weights))}": runs}
        for name, runs in (("x", x), ("y", y))
    }
