"""Base class of promises of privacy: a budget under a neighbor relation, an order, and forms in words and in JSON."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Literal, Self, SupportsFloat, SupportsIndex, get_args

import numpy as np
from numpy.typing import NDArray

from audit.exact import LossDistribution

__all__ = ["Claim", "Relation", "check_epsilon", "check_relation"]

Relation = Literal["add_remove", "replace_one"]


def check_relation(relation: str) -> None:
    """Refuse anything but the two neighbor relations."""
    if relation not in get_args(Relation):
        raise ValueError(f'relation must be "add_remove" or "replace_one", got {relation!r}')


class Claim(ABC):
    """A promise of privacy, or a measured loss: one class per family, each a frozen dataclass.

    The first field is the budget, the number that grows with the loss, unless a family says otherwise; the last is the
    relation. Every other field is a number of 0 or more.
    """

    kind: ClassVar[str]  # name of the family in files and on the command line
    unit: ClassVar[str] = "nats"  # of the budget
    growth: ClassVar[int] = 1  # a group of w people has w**growth times the budget
    # Where the family is defined and its profile proved: keys of `audit.bounds.citations.REFERENCES`, or in full.
    sources: ClassVar[tuple[str, ...]] = ()
    relation: Relation

    def __post_init__(self) -> None:
        for name in self.parameter_names():
            object.__setattr__(self, name, _parameter(name, getattr(self, name)))
        check_relation(self.relation)

    @classmethod
    @cache
    def parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the numbers, the budget first."""
        return tuple(field.name for field in fields(cls) if field.name != "relation")  # type: ignore[arg-type]

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers by name, the budget first."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    @property
    def parameter(self) -> str:
        """Name of the budget."""
        return self.parameter_names()[0]

    @property
    def scale(self) -> str:
        """Name and unit of the budget, in words."""
        return f"{self.parameter} in {self.unit}"

    @property
    def budget(self) -> float:
        """The one number that grows with the loss: epsilon, delta (of ``ApproxDP(0, delta)``), rho or mu."""
        return float(getattr(self, self.parameter))

    @property
    def forgiven(self) -> float:
        """Probability with which the promise allows anything: its delta, or 0 if it has none."""
        return 0.0

    @property
    def epsilon_delta(self) -> tuple[float, float] | None:
        """Epsilon and delta, if they are the whole promise, else None."""
        return None

    @abstractmethod
    def delta_at(self, epsilon: float) -> float:
        """Return the largest delta that the promise leaves possible at an epsilon, 0 or more."""

    @abstractmethod
    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon that the promise guarantees at a delta in [0, 1); infinite if there is none."""

    def lines(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return epsilons and deltas of (epsilon, delta) promises that follow from this one, each of shape (lines,)."""
        if self.epsilon_delta is not None:
            epsilons, deltas = ([part] for part in self.epsilon_delta)
            return np.array(epsilons), np.array(deltas)
        grid = np.concatenate([[0.0], np.geomspace(0.02, 20.0, 60)])
        return grid, np.array([self.delta_at(float(epsilon)) for epsilon in grid])

    @property
    def guessed_right(self) -> float:
        """Largest probability that a guess between two neighbors is right, for every output or on average."""
        return (1 + min(1.0, self.delta_at(0.0))) / 2

    @property
    def shift(self) -> float:
        """Standard deviations between two normal laws that have exactly this loss; a TypeError without such laws."""
        raise TypeError(f"{type(self).__name__} is not measured by normal laws")

    def at_shift(self, shift: float) -> Self:
        """Return the claim whose loss is that of two normal laws, `shift` standard deviations apart; see `shift`."""
        raise TypeError(f"{type(self).__name__} is not measured by normal laws")

    def rarest(self, probability: float) -> float:
        """Return the smallest probability on a neighbor of an event with this probability, by the profile."""
        # Any epsilon is valid.
        return max(0.0, *((probability - self.delta_at(k / 8)) * math.exp(-k / 8) for k in range(160)))

    def at(self, budget: float) -> Self:
        """Return the claim with another budget, 0 or more, and all else the same."""
        return self.with_parameters({self.parameter: budget})

    def group(self, people: int) -> Self:
        """Return the promise for databases that differ in several people."""
        if isinstance(people, bool) or not isinstance(people, int | SupportsIndex):
            raise TypeError(f"people must be an integer, got {people!r}")
        if people < 1:
            raise ValueError(f"people must be at least 1, got {people}")
        return self.with_parameters(self.of_group(int(people)))

    def under(self, relation: Relation) -> Self:
        """Return the promise under another neighbor relation.

        Replacing a person is removing one and adding one: a group of two. The other direction is an error: a promise
        about replacing says nothing about the number of people.
        """
        check_relation(relation)
        if relation == self.relation:
            return self
        if relation == "add_remove":
            raise ValueError("a replace_one promise says nothing about add_remove neighbors: state that claim itself")
        return self.group(2).with_parameters({"relation": relation})

    def weaker_than(self, other: Claim) -> bool | None:
        """Return whether any parameter promises less than in another claim; None if the two have no order.

        Claims of different families have an order if both are an epsilon and a delta.
        """
        if self.relation != other.relation:
            return None
        mine, theirs = self.epsilon_delta, other.epsilon_delta
        if mine and theirs:
            return mine[0] > theirs[0] or mine[1] > theirs[1]
        return not self <= other if type(self) is type(other) else None

    def excess(self, epsilon: float, losses: Sequence[LossDistribution]) -> tuple[str, str] | None:
        """Return the joint loss of queries with independent noise, and the promise, in words; None if kept or unknown.

        `epsilon` is the pure loss of all queries together; `losses` are the loss laws of the queries, where known.
        """
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as plain values: ``kind``, ``relation`` and the parameters; infinity is the text "inf"."""
        plain = {name: "inf" if number == math.inf else number for name, number in self.parameters.items()}
        return {"kind": self.kind, **plain, "relation": self.relation}

    def __le__(self, other: object) -> bool:
        if not isinstance(other, Claim):
            return NotImplemented
        if type(self) is not type(other):
            raise TypeError(
                f"claims of different families have no order, got {type(self).__name__} and {type(other).__name__}: "
                "a bound on one parameter is no bound on another"
            )
        if self.relation != other.relation:
            raise ValueError(f"claims under {self.relation} and {other.relation} have no order")
        return all(number <= other.parameters[name] for name, number in self.parameters.items())

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} {number:.4g}" for name, number in self.parameters.items())
        return f"{numbers} ({self.relation.replace('_', '/' if 'add' in self.relation else ' ')})"

    def _repr_html_(self) -> str:
        from audit.io.html import as_html  # only for notebooks

        right = f"at most {math.ceil(1e4 * self.guessed_right) / 100:g} times in 100, from even odds"
        facts = [
            *((name, f"{value:.6g}") for name, value in self.parameters.items()),
            ("neighbors", {"add_remove": "one added or removed", "replace_one": "one replaced"}[self.relation]),
            ("which of two neighbors it was is guessed right", right),
        ]
        return as_html(f"{type(self).__name__}: {self}", facts)

    def with_parameters(self, changes: dict[str, Any]) -> Self:
        """Return the claim with other numbers, or under another relation."""
        return type(self)(**{**self.parameters, "relation": self.relation, **changes})

    def of_group(self, people: int) -> dict[str, float]:
        """Return the parameters that change for a group of `people`."""
        return {self.parameter: people**self.growth * self.budget}

    @classmethod
    def composed(cls, columns: dict[str, list[float]]) -> dict[str, float]:
        """Return the parameters of several releases together, from those of each."""
        return {name: math.fsum(numbers) for name, numbers in columns.items()}


def _parameter(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float | SupportsFloat):  # a protocol takes long to look for
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits, as a hostile file may hold
        raise ValueError(f"{name} must be 0 or more, got a number too large for a float") from None
    if not number >= 0:
        raise ValueError(f"{name} must be 0 or more, got {number}")
    return number


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that is negative or NaN."""
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be 0 or more, got {epsilon}")
