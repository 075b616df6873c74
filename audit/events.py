"""Events: what is looked at in one output, and which database it speaks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["CellRule", "Event", "Statistic", "ThresholdRule", "agreement", "cell"]

Floats = NDArray[np.float64]
Guesses = NDArray[np.int8]

LARGEST = float(np.finfo(np.float64).max)
DECIMALS = 9  # float scores are rounded before any comparison: the last bits of a sum can leak the true value


@dataclass(frozen=True, eq=False)
class Statistic:
    """One number a run: what an event looks at.

    Attributes
    ----------
    name : str
        In words, for the report.
    function : callable
        Takes outputs, shape (runs, *output), and returns scores, shape (runs,).
    """

    name: str
    function: Callable[[NDArray[Any]], NDArray[Any]]

    def __call__(self, outputs: NDArray[Any]) -> Floats:
        """Return the scores of a batch of outputs, rounded to 1e-9, shape (runs,); infinities become finite.

        Raises
        ------
        ValueError
            If the statistic reads an entry that outputs do not have, gives NaN, or does not give one score a run.
        """
        try:
            scores = np.asarray(self.function(outputs), dtype=np.float64)
        except IndexError:
            raise ValueError(f"{self.name} must be inside outputs, got outputs of shape {outputs.shape[1:]}") from None
        if scores.shape != outputs.shape[:1]:
            raise ValueError(f"{self.name} must give one score a run, got shape {scores.shape} for {len(outputs)} runs")
        if np.isnan(scores).any():
            raise ValueError(f"{self.name} must not be NaN, got {np.isnan(scores).sum()} of {len(scores)} scores")
        return np.clip(_rounded(scores), -LARGEST, LARGEST)  # infinity is for thresholds that nothing reaches


def cell(*index: int) -> Statistic:
    """Return the statistic that reads one entry of an output; no index is for outputs that are one number.

    Parameters
    ----------
    *index : int
        Where the entry is in one output.

    Returns
    -------
    Statistic
        Named after the entry.
    """
    where = f"[{', '.join(map(str, index))}]" if index else ""
    pick: tuple[Any, ...] = (slice(None), *index)
    return Statistic(f"output{where}", lambda outputs: outputs[pick])


def agreement(cells: Sequence[tuple[int, ...]], middles: Sequence[float], signs: Sequence[float]) -> Statistic:
    """Return the statistic of a joint event: how far all entries lie on the same database's side of their middles.

    Parameters
    ----------
    cells : sequence of tuple of int
        The entries of one output, at least one.
    middles : sequence of float
        For each, the value half-way between the two databases.
    signs : sequence of float
        For each, the direction from `x` to `y`: +1 or -1, or that divided by the entry's scale.

    Returns
    -------
    Statistic
        The smallest distance, positive if all lie on the side of `y`, negative if all on the side of `x`, else 0.

    Notes
    -----
    Independent noise of equal scale on each entry makes the loss of the event ``all beyond t`` the sum of the entries'
    losses, which the sum of the entries does not reach.
    """
    pick: tuple[Any, ...] = (slice(None), *(np.array(axis) for axis in zip(*cells, strict=True)))

    def score(outputs: NDArray[Any]) -> Floats:
        sides = (outputs[pick] - np.asarray(middles)) * np.asarray(signs)
        low, high = sides.min(axis=1), sides.max(axis=1)
        return np.where(low > 0, low, np.where(high < 0, high, 0.0))

    names = ", ".join(f"[{', '.join(map(str, index))}]" for index in cells)
    return Statistic(f"joint shift of output{names}", score)


@dataclass(frozen=True)
class ThresholdRule:
    """Guess one database from a score up, the other from a lower score down, abstain between.

    Attributes
    ----------
    low, high : float
        With ``low < high``; -inf or inf leaves a side empty.
    above : {"x", "y"}
        The database guessed at `high` and above; the other is guessed at `low` and below.
    """

    low: float
    high: float
    above: Literal["x", "y"] = "y"

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")
        if self.above not in ("x", "y"):
            raise ValueError(f'above must be "x" or "y", got {self.above!r}')

    def guess(self, scores: Floats) -> Guesses:
        """Return +1 for `y`, -1 for `x` and 0 for no guess, shape (runs,)."""
        sign = 1 if self.above == "y" else -1
        return ((scores >= self.high) * np.int8(sign) - (scores <= self.low) * np.int8(sign)).astype(np.int8)

    def describe(self, name: str) -> str:
        """Return the rule in words."""
        below = "x" if self.above == "y" else "y"
        sides = [f"{self.above} if {name} >= {self.high:.10g}"] if math.isfinite(self.high) else []
        sides += [f"{below} if {name} <= {self.low:.10g}"] if math.isfinite(self.low) else []
        return ", ".join(sides)


@dataclass(frozen=True, eq=False)
class CellRule:
    """Guess by single values of a score: some speak for `y`, some for `x`, all others for none.

    Attributes
    ----------
    y, x : ndarray of float
        The values.
    """

    y: Floats
    x: Floats

    def guess(self, scores: Floats) -> Guesses:
        """Return +1 for `y`, -1 for `x` and 0 for no guess, shape (runs,)."""
        return np.isin(scores, self.y).astype(np.int8) - np.isin(scores, self.x).astype(np.int8)

    def describe(self, name: str) -> str:
        """Return the rule in words."""
        return ", ".join(
            f"{who} if {name} in {_spans(values)}" for who, values in (("y", self.y), ("x", self.x)) if values.size
        )


@dataclass(frozen=True, eq=False)
class Event:
    """A rule that looks at one output and names the database it came from, or abstains.

    Attributes
    ----------
    statistic : Statistic
        What of the output is looked at.
    rule : ThresholdRule or CellRule
        What is guessed from it.
    """

    statistic: Statistic
    rule: ThresholdRule | CellRule

    @classmethod
    def at_least(cls, index: int | tuple[int, ...], high: float, *, low: float | None = None) -> Event:
        """Return the event that one entry of an output is at least `high`, which speaks for `y`.

        Parameters
        ----------
        index : int or tuple of int
            The entry; ``()`` for outputs that are one number.
        high : float
            From here up the guess is `y`; rounded as scores are.
        low : float, optional
            From here down the guess is `x`. Default: never.

        Returns
        -------
        Event
            Ready to be registered before any run.
        """
        where = index if isinstance(index, tuple) else (index,)
        lowest = -math.inf if low is None else low
        return cls(cell(*where), ThresholdRule(float(_rounded(lowest)), float(_rounded(high))))

    @classmethod
    def equals(cls, index: int | tuple[int, ...], value: float) -> Event:
        """Return the event that one entry of an output is `value`, which speaks for `y`.

        Parameters
        ----------
        index : int or tuple of int
            The entry; ``()`` for outputs that are one number.
        value : float
            Here the guess is `y`; rounded as scores are.

        Returns
        -------
        Event
            Ready to be registered before any run.
        """
        where = index if isinstance(index, tuple) else (index,)
        return cls(cell(*where), CellRule(_rounded([value]), np.array([])))

    def guess(self, outputs: NDArray[Any]) -> Guesses:
        """Return +1 for `y`, -1 for `x` and 0 for no guess, for outputs of shape (runs, *output): shape (runs,)."""
        return self.rule.guess(self.statistic(outputs))

    def __str__(self) -> str:
        return self.rule.describe(self.statistic.name) or "never a guess"


def _rounded(values: ArrayLike) -> Floats:
    """Round as all scores are; what is too large for that stays."""
    given = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        rounded = np.round(given, DECIMALS)
    return np.where(np.isfinite(rounded), rounded, given)


def _spans(values: Floats) -> str:
    """Write sorted values as ranges of neighbors, a few of them at most."""
    breaks = np.flatnonzero(values[1:] != values[:-1] + 1) + 1
    runs = [
        f"{part[0]:.10g}..{part[-1]:.10g}" if part.size > 1 else f"{part[0]:.10g}" for part in np.split(values, breaks)
    ]
    return "{" + ", ".join(runs[:6]) + (f", ... ({values.size} values)" if len(runs) > 6 else "") + "}"
