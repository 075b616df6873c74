"""Base class of methods: how a family of promises is measured, from the choice of an event to the power of a plan."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.attacks.selection import Family
from audit.bounds.betting import LEAST_EXCESS
from audit.claims import Claim
from audit.events import Event, Statistic
from audit.exact.roots import brentq
from audit.results.plain import Basis

__all__ = [
    "CLOSE",
    "LEAST_EXCESS",
    "POWER",
    "Basis",
    "Counts",
    "Method",
    "apart",
    "crossing",
    "fewest",
    "guesses",
    "method_for",
    "method_named",
    "register_method",
]

Floats = NDArray[np.float64]
IntArray = NDArray[np.int64]
Counts = dict[str, dict[str, int]]  # for "x" and "y": runs, and how often each database was guessed or a bin occurred
Role = Literal["fixed", "early", "few", "one_run", "delta"]

POWER = 0.8  # probability with which a minimum detectable loss is detected
FEW = 150  # given runs on either database, below which the method for few runs has larger bounds
CLOSE = 0.004  # relative error of a size, or of an excess over the promise, where power is simulated
LEAST_ERROR = 1e-13  # least error probability if counts vary much: a float cannot resolve less
NO_PLANS = "plans are not known for {}: its method has no power"
WORDS: dict[Family, str] = {"threshold": "thresholds", "cell": "single values"}


@dataclass(frozen=True)
class Method(ABC):
    """How a family of promises is measured; with `power` and `planned` it can be planned, too."""

    claim: Claim  # the promise for one step
    distance: int  # steps between the two databases
    confidence: float  # one-sided, of all events together

    bound: ClassVar[str]  # name of the theorem, by which saved results identify the method
    theorem: ClassVar[str] = ""  # its statement, in words for a report
    counted: ClassVar[str] = "an event of another kind"
    sources: ClassVar[tuple[str, ...]] = ()  # where it is proved, as in `Claim`
    rules: ClassVar[tuple[str, ...]] = ("threshold", "cell")  # families of rules whose counts it reads
    coins: ClassVar[bool] = False  # whether a fair coin must pick the database of each run
    simulated: ClassVar[bool] = False  # whether `power` simulates the choice of the event; else it is computed
    largest: ClassVar[float] = 60.0  # budget of a pair beyond which guesses are never wrong
    planned: ClassVar[str] = ""  # the mechanism whose power `power` returns, in words with fields

    @abstractmethod
    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> list[Event]:
        """Return the event with the largest expected bound, and others to be counted, from scores on selection runs."""

    @abstractmethod
    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the budget of one step that the counts prove."""

    @abstractmethod
    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest budget of one step that the runs, `choosing` ones included, detect with power 0.8."""

    def ceiling(self, counts: Counts, basis: Basis) -> float:
        """Return the largest bound that as many runs could prove: that of runs without wrong guesses."""
        return self.lower(self.never_confused(counts, basis), basis)

    def never_confused(self, counts: Counts, basis: Basis) -> Counts:
        """Return the counts of as many runs, if the database of each is guessed right."""
        x, y = counts["x"]["runs"], counts["y"]["runs"]
        return {"x": {"runs": x, "guessed_x": x, "guessed_y": 0}, "y": {"runs": y, "guessed_x": 0, "guessed_y": y}}

    def basis(self, event: Event) -> Basis:
        """Return the inputs of `lower` besides the counts."""
        return cast("Basis", event.rule.parameters())

    def confidence_at(self, basis: Basis) -> float:
        """Return the confidence of an event: all events together have that of the method.

        Runs that depend on each other count as fewer, by the factor by which the variance of their counts is inflated.
        The log of an error probability is proportional to the runs: the probability is raised to that power.
        """
        confidence = 1 - (1 - self.confidence) * basis.get("share", 1.0)
        inflation = max(1.0, basis.get("inflation", 1.0))
        return confidence if inflation == 1 else max(confidence, 1 - max(LEAST_ERROR, (1 - confidence) ** inflation))

    def main_confidence(self, choosing: IntArray) -> float:
        """Return the confidence of the best event: where events are chosen, a second one has a part of the error."""
        return 1 - (1 - Event.share) * (1 - self.confidence) if np.any(choosing > 0) else self.confidence

    def power(self, truth: Claim, choosing: IntArray, counting: IntArray, *, share: float = 1.0) -> Floats:
        """Return the probability to detect a loss of `truth`, shape (m,), if the event occurs in a `share` of runs."""
        raise ValueError(NO_PLANS.format(type(self.claim).__name__))

    def assumed(self, share: float) -> str:
        """Return in words the mechanism whose power `power` returns; its event occurs in a share of the runs."""
        if not self.planned:
            raise ValueError(NO_PLANS.format(type(self.claim).__name__))
        frequency = "in every run" if share == 1 else f"in {100 * share:.4g}% of the runs"
        return self.planned.format(
            seen=frequency, sure=", true for sure with probability delta" if self.claim.forgiven else ""
        )

    def sawtooth(self, truth: Claim) -> float:
        """Return over how many counting runs power may rise and fall, as a sawtooth does; 0 if it is approximated."""
        return 0.0

    def sizes(self, counting: int, coins: np.random.Generator) -> tuple[int, int]:
        """Return how many of the runs that count are made on `x` and on `y`."""
        on_y = int(coins.binomial(counting, 0.5)) if self.coins else counting // 2
        return counting - on_y, on_y

    def given_sizes(self, left: list[int], coins: np.random.Generator) -> list[int]:
        """Return how many of the given runs on `x` and on `y` are counted."""
        return left

    def given_counting(self, each: IntArray) -> IntArray:
        """Return how many runs are counted, of so many given ones on either database."""
        return 2 * each

    def searched(self, families: tuple[Family, ...]) -> str:
        """Return the kinds of rules that are searched, in words."""
        return " and ".join(WORDS[family] for family in families)

    def check(self, counts: Counts, basis: Basis) -> None:
        """Refuse counts that no event with this basis can have."""
        if basis.get("regions") == 1 and min(sum(side[key] for side in counts.values()) for key in GUESSED) > 0:
            raise ValueError("the regions must be those that were named, got 1, and guesses of both databases")


GUESSED = ("guessed_x", "guessed_y")
Made = TypeVar("Made", bound=type[Method])
FOR_FAMILY: dict[type[Claim], dict[Role, type[Method]]] = {}
NAMED: dict[str, type[Method]] = {}


def register_method(*families: type[Claim], role: Role = "fixed") -> Callable[[Made], Made]:
    """Register a method by its name, and for families of promises and their subclasses: a decorator.

    `role` is its use: all runs that are asked for, an audit that may stop early, few given outputs, one single run, or
    every audit of a promise whose budget is its delta. The fixed one is used if no other is registered.
    """

    def register(method: Made) -> Made:
        NAMED[method.bound] = method
        for family in families:
            FOR_FAMILY.setdefault(family, {})[role] = method
        return method

    return register


def method_for(claim: Claim, distance: int, confidence: float, *, fewest: int | None = None) -> Method:
    """Return the method for a promise; for given outputs it depends on the number on the database that has `fewest`."""
    role: Role = "few" if fewest is not None and fewest < FEW else "fixed"
    for family in type(claim).__mro__:
        methods = FOR_FAMILY.get(family, {})
        if "fixed" in methods:
            if "delta" in methods and claim.parameter == "delta":
                role = "delta"
            return methods.get(role, methods["fixed"])(claim, distance, confidence)
    raise TypeError(f"no method is registered for claims of type {type(claim).__name__}")


def method_named(bound: str, claim: Claim | None = None) -> type[Method] | None:
    """Return the method of a saved result by the name of its theorem, if one is registered (for a claim)."""
    method = NAMED.get(bound)
    if method is None or claim is None:
        return method
    return method if any(method in FOR_FAMILY.get(family, {}).values() for family in type(claim).__mro__) else None


def guesses(counts: Counts) -> tuple[int, int, int]:
    """Return how many guesses were right, how many there were, and the runs."""
    x, y = counts["x"], counts["y"]
    correct = x["guessed_x"] + y["guessed_y"]
    return correct, correct + x["guessed_y"] + y["guessed_x"], x["runs"] + y["runs"]


def apart(power: float, target: float) -> float:
    """Return the difference of the normal quantiles of two powers: it is nearly linear in the root of the runs."""
    return float(special.ndtri(np.clip(power, 1e-15, 1 - 1e-15)) - special.ndtri(target))


def fewest(proves: Callable[[int], bool], most: int, start: int) -> int:
    """Return the least number above `start` for which `proves` holds, by bisection; `most` + 1 if it holds for none."""
    low, high, step = start, start + 1, 1
    while high <= most and not proves(high):
        low, high, step = high, high + step, 2 * step
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


def crossing(excess: Callable[[float], float], start: float, bottom: float, top: float, close: float) -> float:
    """Return where an increasing function reaches 0: `bottom` if 0 or more there, infinity if below 0 at `top`."""
    low = high = start
    step = 0.25
    while excess(low) >= 0:
        if low <= bottom:
            return bottom
        low, high, step = max(bottom, low - step), low, 2 * step
    while excess(high) < 0:
        if high >= top:
            return math.inf
        low, high, step = high, min(top, high + step), 2 * step
    at = brentq(excess, low, high, xtol=close)
    while excess(at) < 0:
        at += close
    return at
