"""Promises of privacy, and what runs have forced: both are the same type."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat, SupportsIndex, get_args

__all__ = ["PureDP", "Relation", "check_relation", "claim_from_dict", "parse_claim"]

Relation = Literal["add_remove", "replace_one"]


def check_relation(relation: str) -> None:
    """Refuse anything but the two neighbor relations.

    Raises
    ------
    ValueError
        If `relation` is neither ``"add_remove"`` nor ``"replace_one"``.
    """
    if relation not in get_args(Relation):
        raise ValueError(f'relation must be "add_remove" or "replace_one", got {relation!r}')


@dataclass(frozen=True)
class PureDP:
    """Epsilon-differential privacy: no event is more than ``exp(epsilon)`` times as likely on a neighbor.

    As a promise it bounds the loss from above, as a measurement from below; either may be 0 or infinite.

    Attributes
    ----------
    epsilon : float
        Privacy loss in nats, 0 or more.
    relation : {"add_remove", "replace_one"}
        Which databases are neighbors: one person added or removed (unbounded), or one person's data replaced (bounded).

    Raises
    ------
    ValueError
        If `epsilon` is negative or NaN, or the relation is unknown.
    TypeError
        If `epsilon` is not a number.

    References
    ----------
    .. [1] Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, definition 2.4.

    Examples
    --------
    >>> PureDP(0.5) <= PureDP(1.0)
    True
    >>> print(PureDP(0.5).under("replace_one"))
    epsilon 1 (replace one)
    """

    epsilon: float
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, SupportsFloat):
            raise TypeError(f"epsilon must be a number, got {self.epsilon!r}")
        try:
            epsilon = float(self.epsilon)
        except OverflowError:  # a whole number of hundreds of digits, as a hostile file may hold
            raise ValueError("epsilon must be 0 or more, got a number too large for a float") from None
        if not epsilon >= 0:
            raise ValueError(f"epsilon must be 0 or more, got {epsilon}")
        check_relation(self.relation)
        object.__setattr__(self, "epsilon", epsilon)

    def delta_at(self, epsilon: float) -> float:
        """Return the largest delta that the promise leaves possible at another epsilon.

        Parameters
        ----------
        epsilon : float
            Privacy loss in nats, 0 or more.

        Returns
        -------
        float
            ``(exp(E) - exp(epsilon)) / (1 + exp(E))`` below the promised ``E`` (randomized response attains it), else
            0.

        Raises
        ------
        ValueError
            If `epsilon` is negative or NaN.

        References
        ----------
        .. [1] Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2015, section 3.

        Examples
        --------
        >>> round(PureDP(1.0).delta_at(0.0), 6)  # the largest total variation distance: tanh(1 / 2)
        0.462117
        """
        if not epsilon >= 0:
            raise ValueError(f"epsilon must be 0 or more, got {epsilon}")
        if epsilon >= self.epsilon:
            return 0.0
        return -math.expm1(epsilon - self.epsilon) / (1.0 + math.exp(-self.epsilon))

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon that the promise guarantees at a delta: the inverse of `delta_at`.

        Parameters
        ----------
        delta : float
            Probability, in [0, 1).

        Returns
        -------
        float
            Privacy loss in nats, 0 or more.

        Raises
        ------
        ValueError
            If `delta` is outside [0, 1).

        Examples
        --------
        >>> PureDP(1.0).epsilon_at(0.0)
        1.0
        """
        if not 0 <= delta < 1:
            raise ValueError(f"delta must be in [0, 1), got {delta}")
        if delta == 0 or self.epsilon == 0:
            return self.epsilon
        kept = 1.0 - delta * (1.0 + math.exp(-self.epsilon))
        return max(0.0, self.epsilon + math.log(kept)) if kept > 0 else 0.0

    def group(self, people: int) -> PureDP:
        """Return what the promise says of databases that differ in several people.

        Parameters
        ----------
        people : int
            How many people, at least 1.

        Returns
        -------
        PureDP
            With `people` times the epsilon.

        Raises
        ------
        ValueError
            If `people` is below 1.
        TypeError
            If `people` is not a whole number.

        References
        ----------
        .. [1] Dwork and Roth, 2014, theorem 2.2.
        """
        if isinstance(people, bool) or not isinstance(people, SupportsIndex):
            raise TypeError(f"people must be an integer, got {people!r}")
        if people < 1:
            raise ValueError(f"people must be at least 1, got {people}")
        return PureDP(people * self.epsilon, self.relation)

    def under(self, relation: Relation) -> PureDP:
        """Return what the promise says under another neighbor relation.

        Replacing a person is removing one and adding one: twice the epsilon. The way back does not exist, because a
        promise about replacing says nothing about the number of people.

        Parameters
        ----------
        relation : {"add_remove", "replace_one"}
            The relation wanted.

        Returns
        -------
        PureDP
            Under that relation.

        Raises
        ------
        ValueError
            If the promise does not reach that relation, or it is unknown.
        """
        check_relation(relation)
        if relation == self.relation:
            return self
        if relation == "add_remove":
            raise ValueError("a replace_one promise says nothing about add_remove neighbors: state that claim itself")
        return PureDP(2 * self.epsilon, relation)

    def __le__(self, other: PureDP) -> bool:
        if not isinstance(other, PureDP):
            return NotImplemented
        if self.relation != other.relation:
            raise ValueError(f"claims under {self.relation} and {other.relation} have no order")
        return self.epsilon <= other.epsilon

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.4g} ({self.relation.replace('_', '/' if 'add' in self.relation else ' ')})"

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as plain values for JSON.

        Returns
        -------
        dict
            With the keys ``kind``, ``epsilon`` and ``relation``; an infinite epsilon is the string "inf".
        """
        epsilon = "inf" if self.epsilon == math.inf else self.epsilon
        return {"kind": "pure", "epsilon": epsilon, "relation": self.relation}


def claim_from_dict(values: dict[str, Any]) -> PureDP:
    """Return the claim that `to_dict` wrote.

    Parameters
    ----------
    values : dict
        With the keys ``kind``, ``epsilon`` and ``relation``, and no others.

    Returns
    -------
    PureDP
        The claim.

    Raises
    ------
    ValueError
        If the kind of claim is unknown, a value is missing or out of range.
    TypeError
        If epsilon is neither a number nor the string "inf".

    Examples
    --------
    >>> claim_from_dict({"kind": "pure", "epsilon": "inf", "relation": "add_remove"})
    PureDP(epsilon=inf, relation='add_remove')
    """
    if not isinstance(values, dict) or values.get("kind") != "pure" or set(values) != {"kind", "epsilon", "relation"}:
        raise ValueError(f'a claim has the keys kind ("pure"), epsilon and relation, got {values!r}')
    epsilon = values["epsilon"]
    return PureDP(math.inf if epsilon == "inf" else epsilon, values["relation"])


def parse_claim(text: str, relation: Relation = "add_remove") -> PureDP:
    """Return the claim that is written ``pure:EPSILON``.

    Parameters
    ----------
    text : str
        The family and its parameter, for example ``"pure:0.5"``.
    relation : {"add_remove", "replace_one"}
        Neighbor relation of the claim.

    Returns
    -------
    PureDP
        The claim.

    Raises
    ------
    ValueError
        If the text is not of that form.

    Examples
    --------
    >>> parse_claim("pure:1")
    PureDP(epsilon=1.0, relation='add_remove')
    """
    family, _, value = text.partition(":")
    try:
        epsilon = float(value)
    except ValueError:
        epsilon = math.nan
    if family != "pure" or not 0 < epsilon < math.inf:
        raise ValueError(f"a claim is written pure:EPSILON with a positive finite number, got {text!r}")
    return PureDP(epsilon, relation)
