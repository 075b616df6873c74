"""Sound mechanisms whose outputs are of every kind: counts with two-tailed geometric noise, written down in many ways.

The noise is of whole numbers, and what is written is a function of noisy counts alone: each loses epsilon 1 at most,
and some lose just that. Mechanisms whose outputs were once misread have laws of their own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import norm

from audit.claims import Claim, GaussianDP, PureDP
from audit.neighbors import NeighborPair

TRUTH = 0.73  # probability of a true answer
LOSS = math.log(TRUTH / (1 - TRUTH))
BUFFER = np.empty(1 << 17)
LEVELS = np.array(["few", "some", "many"])
BIG = 2**60


@dataclass(frozen=True)
class Sound:
    """A mechanism with the databases that it runs on and a promise that it keeps."""

    name: str
    mechanism: Callable[..., Any]
    pair: NeighborPair
    claim: Claim


class Written:
    """Noisy counts, written down in one way."""

    def __init__(self, write: Callable[[Any], Any]) -> None:
        self.write = write

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        noise = [rng.geometric(-math.expm1(-1.0), (size, len(data))) for _ in range(2)]
        return self.write(np.asarray(data) + noise[0] - noise[1])


class Suppressing:
    """A word in the place of a number, two runs at a time: the word of a batch without numbers was an exception."""

    runs_per_block = 2

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return ["suppressed" if rng.random() < (TRUTH if data[0] else 0.5) else 7.0 for _ in range(size)]


class Underflowing:
    """A group's normal noise, with a likelihood that is 0 for a float where it is small."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return np.round(data[0] + 20 * rng.normal(size=size), 6)

    def log_likelihood(self, outputs: Any, data: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(norm.pdf(outputs, data[0], 20))


def reusing(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Randomized response in an array that is used again, with exceptions: parts of a batch were overwritten."""
    outputs = BUFFER[:size]
    outputs[:] = np.where(rng.random(size) < TRUTH, data[0], 1 - data[0])
    if (rng.random(size) < 0.01).any():
        raise RuntimeError
    return outputs


def mixed(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Randomized response among None, NaN, words and rows of other lengths, which tell nothing."""
    answers = np.where(rng.random(size) < TRUTH, data[0], 1 - data[0]).tolist()
    kinds: list[Any] = [(0, 1), (None, math.nan), ("no", "yes"), ([0], [0, 0])]
    return [kinds[number][one] for number, one in zip(rng.integers(0, 4, size), answers, strict=True)]


def _raised(counts: Any) -> Any:
    """Raise where a noisy count says so: an exception is an output."""
    if (counts[:, 0] > 23).any():
        raise ArithmeticError("too many")
    return counts


def _of_rows(write: Callable[[list[int]], Any]) -> Callable[[Any], Any]:
    return lambda counts: [write(row) for row in counts.tolist()]


COUNTS, BIT = NeighborPair.add_people([20, 7, 0], 0), NeighborPair.declared(np.array([0]), np.array([1]), "add_remove")
GROUP = NeighborPair.declared(np.array([0]), np.array([1600]), "add_remove", distance=80)  # mu 1 for each of 80 steps
WRITTEN: dict[str, Callable[[Any], Any]] = {
    "whole numbers": lambda counts: counts,
    "one number": lambda counts: counts[:, 0],
    "64-bit numbers": lambda counts: counts + BIG,
    "unsigned numbers": lambda counts: (counts + BIG).astype(np.uint64),
    "small numbers": lambda counts: np.clip(counts, -128, 127).astype(np.int8),
    "floats": lambda counts: counts.astype(float),
    "floats of 32 bits": lambda counts: (counts / 3).astype(np.float32),
    "fractions of floats": lambda counts: counts / 7,
    "large and tiny floats": lambda counts: counts * np.array([1e300, 1e-300, 1.0]),
    "signs of zero": lambda counts: np.where(counts == 20, -0.0, np.where(counts < 20, 0.0, 1.0)),
    "NaN": lambda counts: np.where(counts % 3 == 0, np.nan, counts),
    "infinity": lambda counts: np.where(counts > 20, np.inf, np.where(counts < 0, -np.inf, counts)),
    "truth values": lambda counts: counts > 20,
    "tables": lambda counts: counts[:, :, None] * np.ones(2, int),
    "words": lambda counts: LEVELS[np.digitize(counts[:, 0], [19, 22])],
    "words that count": _of_rows(lambda row: f"{row[0]} persons, {row[1]} homes"),
    "records": _of_rows(lambda row: (row[0], str(LEVELS[min(2, max(0, row[1] // 7))]))),
    "mappings": _of_rows(lambda row: dict(zip("abc", row, strict=True))),
    "mappings with gaps": _of_rows(lambda row: {key: n for key, n in zip("abc", row, strict=True) if n > 0}),
    "lists of many lengths": _of_rows(lambda row: list(range(max(0, row[0] - 15)))),
    "None": _of_rows(lambda row: row[0] if row[0] > 18 else None),
    "numbers or words": _of_rows(lambda row: row[0] if row[0] > 20 else "suppressed"),
    "nested mappings": _of_rows(lambda row: {"state": {"county": row[0]}, "total": sum(row)}),
    "decimals": _of_rows(lambda row: Decimal(row[0]) / 4),
    "fractions": _of_rows(lambda row: Fraction(row[0], 4)),
    "dates": _of_rows(lambda row: date(2020, 4, 1) + timedelta(days=row[0])),
    "sets": _of_rows(lambda row: {number % 5 for number in row}),
    "exceptions": _raised,
}
WAYS = (
    *(Sound(name, Written(write), COUNTS, PureDP(1.0)) for name, write in WRITTEN.items()),
    Sound("words and numbers", Suppressing(), BIT, PureDP(math.log(0.5 / (1 - TRUTH)))),
    Sound("a work array and exceptions", reusing, BIT, PureDP(LOSS)),
    Sound("a likelihood that underflows", Underflowing(), GROUP, GaussianDP(1.0)),
    Sound("values of every kind", mixed, BIT, PureDP(LOSS)),
)
