"""Events: rules that look at one output and guess the database that it came from, or abstain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.io.text import printable
from audit.values import LARGEST, NAMES, NAN, RAISED, TYPE, raised, value_of

__all__ = ["CellRule", "Event", "Rule", "Statistic", "ThresholdRule", "WeightRule", "cell"]

Floats = NDArray[np.float64]
Guesses = NDArray[np.int8]
Side = Literal["x", "y"]

DECIMALS = 9  # float scores are rounded before any comparison: the last bits of a sum can leak the true value


def score_in_words(score: float) -> str:
    """Return a score as reports show it: up to ten digits, or words for infinity and for codes."""
    if score in NAMES:
        return NAMES[score]
    if RAISED < score < NAN:
        return "(raised another exception)"  # of a class that only workers know
    return f"{math.copysign(math.inf, score) if abs(score) >= LARGEST else score:.10g}"


@dataclass(frozen=True, eq=False)
class Statistic:
    """One number per run, from which an event guesses the database.

    Attributes
    ----------
    name : str
        Name in reports.
    function : callable
        Takes outputs, shape (runs, *output), and returns scores, shape (runs,).
    log_ratio, proportional, exact : bool
        `log_ratio`: scores are log-likelihood ratios of `y` over `x`; rules rely on them unless runs contradict them.
        `proportional`: they are so up to a factor, which the audit estimates. `exact`: they are computed from the
        mechanism's own law, so that an infinite score occurs on one database only.
    entry : tuple of int, optional
        The place of the score in an output, if the score is one entry of it.
    written : bool
        Whether the function takes outputs as texts, before their columns are read.
    labels : mapping, optional
        The meaning of each score in words, if scores are only codes: then no thresholds are tried.
    """

    name: str
    function: Callable[[NDArray[Any]], NDArray[Any]]
    log_ratio: bool = False
    proportional: bool = False
    exact: bool = False
    entry: tuple[int, ...] | None = None
    written: bool = False
    labels: Mapping[float, str] | None = None

    def __call__(self, outputs: NDArray[Any]) -> Floats:
        """Return scores of outputs, rounded to 1e-9, shape (runs,); infinities become finite."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # for infinities, and values that are not numbers
                values = np.asarray(self.function(outputs))
        except MemoryError:
            raise
        except Exception as error:
            if self.entry is not None:
                shape = outputs.shape[1:]
                got = f"got outputs of shape {shape}" if shape else "got single numbers, which are called output"
                raise ValueError(f"{self.name} must be inside outputs, {got}") from None
            raise ValueError(f"{self.name} raises {type(error).__name__}: {printable(str(error))}") from error
        if values.dtype.kind == "U":
            raise ValueError(f"{self.name} must be a number, got {str(values.flat[0])!r}: words need an own Statistic")
        if values.dtype.kind == "O":  # a column of rows
            values = np.array([value_of(one) for one in values.flat]).reshape(values.shape)
        scores = values.astype(np.float64)
        if scores.shape != outputs.shape[:1]:
            raise ValueError(f"{self.name} must give one score a run, got shape {scores.shape} for {len(outputs)} runs")
        if np.isnan(scores).any():
            raise ValueError(f"{self.name} must not be NaN, got {np.isnan(scores).sum()} of {len(scores)} scores")
        return _rounded(scores)


def cell(*index: int) -> Statistic:
    """Return the statistic that reads one entry of an output; give no index if the output is one number."""
    pick: tuple[Any, ...] = (slice(None), *index)
    name = f"output[{', '.join(map(str, index))}]" if index else "output"
    return Statistic(name, lambda outputs: outputs[pick], entry=index)


class _Guessing(Protocol):
    """Base of rules that only guess. Their counts are how often they guessed each database."""

    def guess(self, scores: Floats) -> Guesses:
        """Return +1 for `y`, -1 for `x` and 0 for no guess, shape (runs,)."""

    def counts(self, scores: Floats) -> dict[str, int]:
        """Return how often each database was guessed."""
        guesses = self.guess(scores)
        return {"guessed_x": int(np.sum(guesses < 0)), "guessed_y": int(np.sum(guesses > 0))}


@dataclass(frozen=True)
class ThresholdRule(_Guessing):
    """Guess `above` if the score is at least `high`, the other database if it is at most `low`; infinity: never."""

    low: float
    high: float
    above: Side = "y"

    family: ClassVar[Literal["threshold"]] = "threshold"

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")
        if self.above not in ("x", "y"):
            raise ValueError(f'above must be "x" or "y", got {self.above!r}')

    def parameters(self) -> dict[str, Any]:
        """Return how many databases the rule may guess, which a bound reads besides the counts."""
        return {"regions": math.isfinite(self.low) + math.isfinite(self.high)}

    def guess(self, scores: Floats) -> Guesses:
        """Return +1 for `y`, -1 for `x` and 0 for no guess, shape (runs,)."""
        sign = 1 if self.above == "y" else -1
        return ((scores >= self.high) * np.int8(sign) - (scores <= self.low) * np.int8(sign)).astype(np.int8)

    def describe(self, name: str, value: Callable[[float], str]) -> str:
        """Return the rule in words, each score as `value` writes it."""
        below = "x" if self.above == "y" else "y"
        at_least = f"{name} is a number" if TYPE < self.high <= TYPE / 4 else f"{name} >= {value(self.high)}"
        at_most = "it raises" if self.low == RAISED else f"{name} <= {value(self.low)}"
        sides = [f"{self.above} if {at_least}"] if math.isfinite(self.high) else []
        sides += [f"{below} if {at_most}"] if math.isfinite(self.low) else []
        return ", ".join(sides)


@dataclass(frozen=True, eq=False)
class CellRule(_Guessing):
    """Guess by single values of a score: `y` for some, `x` for some, and no guess for all others."""

    y: Floats
    x: Floats

    family: ClassVar[Literal["cell"]] = "cell"

    def parameters(self) -> dict[str, Any]:
        """Return how many databases the rule may guess, which a bound reads besides the counts."""
        return {"regions": (self.x.size > 0) + (self.y.size > 0)}

    def guess(self, scores: Floats) -> Guesses:
        """Return +1 for `y`, -1 for `x` and 0 for no guess, shape (runs,)."""
        return np.isin(scores, self.y).astype(np.int8) - np.isin(scores, self.x).astype(np.int8)

    def describe(self, name: str, value: Callable[[float], str]) -> str:
        """Return the rule in words, each score as `value` writes it."""
        return ", ".join(
            f"{who} if {'it raises' if values.tolist() == [RAISED] else f'{name} in {_spans(values, value)}'}"
            for who, values in (("y", self.y), ("x", self.x))
            if values.size
        )


@dataclass(frozen=True, eq=False)
class WeightRule:
    """Weight each score by the estimated log-likelihood ratio of its bin; a divergence bound averages the weights."""

    edges: Floats  # of the bins, increasing, shape (m - 1,); a score on an edge belongs to the bin above
    weights: Floats  # of each bin, in nats, shape (m,)
    order: float = 1.0  # order of the Renyi divergence, 1 or more
    toward: Side = "y"  # the database whose law is first in the divergence: large weights favor it

    family: ClassVar[Literal["weights"]] = "weights"

    def bins(self, scores: Floats) -> NDArray[np.intp]:
        """Return the number of the bin of each score, shape (runs,)."""
        return np.searchsorted(self.edges, scores, side="right")

    def guess(self, scores: Floats) -> Guesses:
        """Return which database the weight of each score favors: +1 for `y`, -1 for `x`, 0 for neither."""
        sign = 1 if self.toward == "y" else -1
        return (sign * np.sign(self.weights[self.bins(scores)])).astype(np.int8)

    def counts(self, scores: Floats) -> dict[str, int]:
        """Return how many scores are in each bin."""
        numbers, frequencies = np.unique(self.bins(scores), return_counts=True)
        return {f"bin {k}": int(n) for k, n in zip(numbers, frequencies, strict=True)}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that a bound needs besides the counts, as plain values."""
        return {"weights": self.weights.tolist(), "order": float(self.order), "toward": self.toward}

    def describe(self, name: str, value: Callable[[float], str]) -> str:
        """Return the rule in words; it has too many bins to write each."""
        if self.weights.size == 1:
            return ""
        other = "x" if self.toward == "y" else "y"
        return (
            f"log-likelihood ratio of {self.toward} over {other} by {name} in {self.weights.size} bins, "
            f"{self.weights.min():.3g} to {self.weights.max():.3g}, Renyi order {self.order:g}"
        )


Rule = ThresholdRule | CellRule | WeightRule


@dataclass(frozen=True, eq=False)
class Event:
    """A rule that reads one output and guesses the database that it came from, or abstains.

    Attributes
    ----------
    statistic : Statistic
        The number that the event reads from an output.
    rule : ThresholdRule, CellRule or WeightRule
        Guesses the database from that number.
    value : callable, optional
        Writes a score in words.
    shortfalls : tuple of float, optional
        By how much, in nats, the bounds of events that other runs might have chosen fall short of a good bound.
    share : float, optional
        Its share of the error probability, if another event has a higher expected bound.
    hits : int, optional
        How many selection runs must show an outcome of only one database for the audit to choose it instead.
    """

    statistic: Statistic
    rule: Rule
    value: Callable[[float], str] = score_in_words
    shortfalls: tuple[float, ...] = ()
    share: float = 0.05
    hits: int = 0

    @classmethod
    def at_least(cls, index: int | tuple[int, ...], high: float, *, low: float | None = None) -> Event:
        """Return the event that guesses `y` if one entry of an output is `high` or more, and `x` if `low` or less.

        `index` is ``()`` for outputs that are one number. Both thresholds are rounded like scores.
        """
        where = index if isinstance(index, tuple) else (index,)
        lowest = -math.inf if low is None else float(_rounded(low))
        return cls(cell(*where), ThresholdRule(lowest, float(_rounded(high))))

    @classmethod
    def equals(cls, index: int | tuple[int, ...], value: float) -> Event:
        """Return the event that guesses `y` if one entry of an output is `value`; see `at_least`."""
        where = index if isinstance(index, tuple) else (index,)
        return cls(cell(*where), CellRule(_rounded([value]), np.array([])))

    @classmethod
    def raises(cls) -> Event:
        """Return the event that guesses `y` if the run raises an exception; see `at_least`."""
        return cls(Statistic("whether the run raised", raised), CellRule(np.array([1.0]), np.array([])))

    def guess(self, outputs: NDArray[Any]) -> Guesses:
        """Return +1 for `y`, -1 for `x` and 0 for no guess, for outputs of shape (runs, *output): shape (runs,)."""
        return self.rule.guess(self.statistic(outputs))

    def __str__(self) -> str:
        value = self.statistic.labels.__getitem__ if self.statistic.labels else self.value
        return self.rule.describe(self.statistic.name, value) or "never a guess"


def _rounded(values: ArrayLike) -> Floats:
    """Round as all scores are; values too large to round stay, and infinities become the largest floats."""
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        rounded = np.round(array, DECIMALS)
    return np.clip(np.where(np.isfinite(rounded), rounded, array), -LARGEST, LARGEST)


def _spans(values: Floats, value: Callable[[float], str]) -> str:
    breaks = np.flatnonzero(values[1:] != values[:-1] + 1) + 1
    runs = [
        f"{value(part[0])}..{value(part[-1])}" if part.size > 1 else value(part[0]) for part in np.split(values, breaks)
    ]
    return "{" + ", ".join(runs[:6]) + (f", ... ({values.size} values)" if len(runs) > 6 else "") + "}"
