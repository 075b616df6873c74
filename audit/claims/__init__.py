"""Promises of privacy, and what runs have forced: both are the same type."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal, Self, SupportsFloat, SupportsIndex, get_args

from audit.claims.profiles import gaussian_log_delta, invert, zcdp_log_delta

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Claim",
    "GaussianDP",
    "PureDP",
    "Relation",
    "check_relation",
    "claim_from_dict",
    "compose",
    "parse_claim",
]

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


class _Promise:
    """What the families share: parameters of 0 or more under a relation, an order, a form in words and in JSON."""

    KIND: ClassVar[str]
    relation: Relation

    def __post_init__(self) -> None:
        for name in self._parameters():
            object.__setattr__(self, name, _parameter(name, getattr(self, name)))
        check_relation(self.relation)

    @classmethod
    def _parameters(cls) -> list[str]:
        return [field.name for field in fields(cls) if field.name != "relation"]  # type: ignore[arg-type]

    @property
    def parameter(self) -> str:
        """Name of the one number that grows with the loss."""
        return self._parameters()[0]

    @property
    def budget(self) -> float:
        """The one number that grows with the loss: epsilon, rho or mu."""
        return float(getattr(self, self.parameter))

    def at(self, budget: float) -> Self:
        """Return the claim with another epsilon, rho or mu, and all else the same.

        Parameters
        ----------
        budget : float
            0 or more.

        Returns
        -------
        claim
            Of the same family, relation and, where there is one, delta.

        Raises
        ------
        ValueError
            If `budget` is negative or NaN.
        """
        return self._with(**{self.parameter: budget})

    def group(self, people: int) -> Self:
        """Return what the promise says of databases that differ in several people.

        Parameters
        ----------
        people : int
            How many people, at least 1.

        Returns
        -------
        claim
            Of the same family and relation.

        Raises
        ------
        ValueError
            If `people` is below 1.
        TypeError
            If `people` is not a whole number.
        """
        if isinstance(people, bool) or not isinstance(people, SupportsIndex):
            raise TypeError(f"people must be an integer, got {people!r}")
        if people < 1:
            raise ValueError(f"people must be at least 1, got {people}")
        return self._with(**self._of_group(int(people)))

    def under(self, relation: Relation) -> Self:
        """Return what the promise says under another neighbor relation.

        Replacing a person is removing one and adding one: a group of two. The way back does not exist, because a
        promise about replacing says nothing about the number of people.

        Parameters
        ----------
        relation : {"add_remove", "replace_one"}
            The relation wanted.

        Returns
        -------
        claim
            Of the same family.

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
        return self.group(2)._with(relation=relation)

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as plain values for JSON.

        Returns
        -------
        dict
            With the keys ``kind``, ``relation`` and the parameters; infinity is the string "inf".
        """
        numbers = {name: getattr(self, name) for name in self._parameters()}
        plain = {name: "inf" if number == math.inf else number for name, number in numbers.items()}
        return {"kind": self.KIND, **plain, "relation": self.relation}

    def __le__(self, other: object) -> bool:
        if not isinstance(other, _Promise):
            return NotImplemented
        if type(self) is not type(other):
            raise TypeError(
                f"claims of different families have no order, got {type(self).__name__} and {type(other).__name__}: "
                "a bound on one parameter is no bound on another"
            )
        if self.relation != other.relation:
            raise ValueError(f"claims under {self.relation} and {other.relation} have no order")
        return all(getattr(self, name) <= getattr(other, name) for name in self._parameters())

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} {getattr(self, name):.4g}" for name in self._parameters())
        return f"{numbers} ({self.relation.replace('_', '/' if 'add' in self.relation else ' ')})"

    def _with(self, **changes: Any) -> Self:
        return type(self)(**{field.name: getattr(self, field.name) for field in fields(self)} | changes)  # type: ignore[arg-type]

    def _of_group(self, people: int) -> dict[str, float]:
        raise NotImplementedError


@dataclass(frozen=True)
class PureDP(_Promise):
    """Epsilon-differential privacy: no event is more than ``exp(epsilon)`` times as likely on a neighbor.

    As a promise it bounds the loss from above, as a measurement from below; either may be 0 or infinite. A group of
    ``w`` people has ``w`` times the epsilon.

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
    .. [1] Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, definition 2.4 and theorem 2.2.

    Examples
    --------
    >>> PureDP(0.5) <= PureDP(1.0)
    True
    >>> print(PureDP(0.5).under("replace_one"))
    epsilon 1 (replace one)
    """

    KIND = "pure"

    epsilon: float
    relation: Relation = "add_remove"

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
        _check_epsilon(epsilon)
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
        _check_delta(delta)
        if delta == 0 or self.epsilon == 0:
            return self.epsilon
        odds = delta / (1.0 - delta) * math.exp(-self.epsilon)
        return max(0.0, self.epsilon + math.log1p(-delta) + math.log1p(-odds)) if odds < 1 else 0.0

    def _of_group(self, people: int) -> dict[str, float]:
        return {"epsilon": people * self.epsilon}


@dataclass(frozen=True)
class ApproxDP(_Promise):
    """Approximate differential privacy: the same up to a probability of `delta`, with which anything may happen.

    A group of ``w`` people has ``w * epsilon`` and ``delta (exp(w epsilon) - 1) / (exp(epsilon) - 1)``, at most 1.

    Attributes
    ----------
    epsilon : float
        Privacy loss in nats, 0 or more.
    delta : float
        Probability, in [0, 1]; with 1 nothing is promised.
    relation : {"add_remove", "replace_one"}
        Which databases are neighbors.

    Raises
    ------
    ValueError
        If a number is out of range, or the relation is unknown.
    TypeError
        If `epsilon` or `delta` is not a number.

    References
    ----------
    .. [1] Dwork and Roth, 2014, definition 2.4; Vadhan, "The Complexity of Differential Privacy", 2017, lemma 2.2 for
       groups.

    Examples
    --------
    >>> print(ApproxDP(1.0, 1e-6).group(2))
    epsilon 2, delta 3.718e-06 (add/remove)
    """

    KIND = "approx"

    epsilon: float
    delta: float
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta > 1:
            raise ValueError(f"delta must be in [0, 1], got {self.delta}")

    def delta_at(self, epsilon: float) -> float:
        """Return the largest delta that the promise leaves possible at another epsilon.

        Parameters
        ----------
        epsilon : float
            Privacy loss in nats, 0 or more.

        Returns
        -------
        float
            The promised delta, and below the promised epsilon besides what pure privacy leaves of the rest.

        Raises
        ------
        ValueError
            If `epsilon` is negative or NaN.

        References
        ----------
        .. [1] Kairouz, Oh and Viswanath, 2015, section 3: the worst pair of laws tells everything with probability
           delta and is randomized response otherwise.

        Examples
        --------
        >>> ApproxDP(1.0, 1e-6).delta_at(2.0)
        1e-06
        """
        return self.delta + (1.0 - self.delta) * PureDP(self.epsilon).delta_at(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon that the promise guarantees at a delta: the inverse of `delta_at`.

        Parameters
        ----------
        delta : float
            Probability, in [0, 1).

        Returns
        -------
        float
            Privacy loss in nats, 0 or more; infinite below the promised delta.

        Raises
        ------
        ValueError
            If `delta` is outside [0, 1).

        Examples
        --------
        >>> ApproxDP(1.0, 1e-6).epsilon_at(1e-7)
        inf
        """
        _check_delta(delta)
        if delta < self.delta:
            return math.inf
        rest = (delta - self.delta) / (1.0 - self.delta)
        return PureDP(self.epsilon).epsilon_at(min(rest, math.nextafter(1.0, 0.0)))  # where it is rounded up to 1

    def _of_group(self, people: int) -> dict[str, float]:
        return {
            "epsilon": people * self.epsilon,
            "delta": self.delta and min(1.0, self.delta * _chain(people, self.epsilon)),
        }


@dataclass(frozen=True)
class ZCDP(_Promise):
    """Zero-concentrated differential privacy: the Renyi divergence of every order ``a`` is at most ``a * rho``.

    A group of ``w`` people has ``w**2`` times the rho.

    Attributes
    ----------
    rho : float
        Nats, 0 or more.
    relation : {"add_remove", "replace_one"}
        Which databases are neighbors.

    Raises
    ------
    ValueError
        If `rho` is negative or NaN, or the relation is unknown.
    TypeError
        If `rho` is not a number.

    References
    ----------
    .. [1] Bun and Steinke, "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds", 2016,
       definition 1.1 and proposition 1.9.

    Examples
    --------
    The persons of the 2020 redistricting data, whose rho of 2.5562 was published as epsilon 17.14 at delta 1e-10:

    >>> round(ZCDP(2.5562).epsilon_at(1e-10), 2)
    17.14
    """

    KIND = "zcdp"

    rho: float
    relation: Relation = "add_remove"

    def delta_at(self, epsilon: float) -> float:
        """Return the delta that follows from the promise at an epsilon, by the best Renyi order.

        Parameters
        ----------
        epsilon : float
            Privacy loss in nats, 0 or more.

        Returns
        -------
        float
            Valid for every mechanism that keeps the promise, and not quite the smallest that is; one with Gaussian
            noise has the smaller one of ``GaussianDP(sqrt(2 * rho))``.

        Raises
        ------
        ValueError
            If `epsilon` is negative or NaN.

        References
        ----------
        .. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, corollary 13.

        Examples
        --------
        >>> round(ZCDP(0.5).delta_at(2.0), 6)
        0.054293
        """
        _check_epsilon(epsilon)
        return _delta(partial(zcdp_log_delta, self.rho), self.rho, epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon that follows from the promise at a delta: the inverse of `delta_at`.

        Parameters
        ----------
        delta : float
            Probability, in [0, 1).

        Returns
        -------
        float
            Privacy loss in nats, 0 or more; infinite at delta 0 unless rho is 0.

        Raises
        ------
        ValueError
            If `delta` is outside [0, 1).

        Examples
        --------
        >>> round(ZCDP(0.5).epsilon_at(1e-6), 4)
        5.2215
        """
        _check_delta(delta)
        return _epsilon(partial(zcdp_log_delta, self.rho), self.rho, delta)

    def _of_group(self, people: int) -> dict[str, float]:
        return {"rho": people**2 * self.rho}


@dataclass(frozen=True)
class GaussianDP(_Promise):
    """Gaussian differential privacy: no test tells neighbors apart better than two normal laws `mu` deviations apart.

    A group of ``w`` people has ``w`` times the mu.

    Attributes
    ----------
    mu : float
        In standard deviations, 0 or more.
    relation : {"add_remove", "replace_one"}
        Which databases are neighbors.

    Raises
    ------
    ValueError
        If `mu` is negative or NaN, or the relation is unknown.
    TypeError
        If `mu` is not a number.

    References
    ----------
    .. [1] Dong, Roth and Su, "Gaussian Differential Privacy", 2022, definition 2.6 and theorem 2.14.

    Examples
    --------
    >>> print(GaussianDP(0.5).group(3))
    mu 1.5 (add/remove)
    """

    KIND = "gaussian"

    mu: float
    relation: Relation = "add_remove"

    def delta_at(self, epsilon: float) -> float:
        """Return the largest delta that the promise leaves possible at an epsilon.

        Parameters
        ----------
        epsilon : float
            Privacy loss in nats, 0 or more.

        Returns
        -------
        float
            That of the Gaussian mechanism, which attains it.

        Raises
        ------
        ValueError
            If `epsilon` is negative or NaN.

        References
        ----------
        .. [1] Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, theorem 8.

        Examples
        --------
        >>> round(GaussianDP(1.0).delta_at(1.0), 6)
        0.126937
        """
        _check_epsilon(epsilon)
        return _delta(partial(gaussian_log_delta, self.mu), self.mu, epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon that the promise guarantees at a delta: the inverse of `delta_at`.

        Parameters
        ----------
        delta : float
            Probability, in [0, 1).

        Returns
        -------
        float
            Privacy loss in nats, 0 or more; infinite at delta 0 unless mu is 0.

        Raises
        ------
        ValueError
            If `delta` is outside [0, 1).

        Examples
        --------
        >>> round(GaussianDP(1.0).epsilon_at(1e-5), 4)
        4.3772
        """
        _check_delta(delta)
        return _epsilon(partial(gaussian_log_delta, self.mu), self.mu, delta)

    def _of_group(self, people: int) -> dict[str, float]:
        return {"mu": people * self.mu}


Claim = PureDP | ApproxDP | ZCDP | GaussianDP
FAMILIES: dict[str, type[Claim]] = {family.KIND: family for family in get_args(Claim)}


def compose(*claims: Claim) -> Claim:
    """Return what several releases of the same people's data promise together.

    Parameters
    ----------
    *claims : claim
        At least one; all of one family and relation. A later release may depend on the earlier ones.

    Returns
    -------
    claim
        Epsilons, deltas (up to 1) and rhos add up; of mu the squares do.

    Raises
    ------
    ValueError
        If there is none, or relations differ.
    TypeError
        If families differ.

    References
    ----------
    .. [1] Dwork and Roth, 2014, theorem B.1; Bun and Steinke, 2016, lemma 1.7; Dong, Roth and Su, 2022, corollary 3.3.

    Examples
    --------
    >>> print(compose(ZCDP(0.1), ZCDP(0.4)))
    rho 0.5 (add/remove)
    """
    if not claims:
        raise ValueError("at least one claim must be given, got none")
    families = {type(claim) for claim in claims}
    if len(families) > 1 or not isinstance(claims[0], get_args(Claim)):
        names = ", ".join(sorted(family.__name__ for family in families))
        raise TypeError(f"claims that are composed must be of one family, got {names}")
    relations = {claim.relation for claim in claims}
    if len(relations) > 1:
        raise ValueError(f"claims that are composed must be under one relation, got {', '.join(sorted(relations))}")
    columns = {name: [getattr(claim, name) for claim in claims] for name in claims[0]._parameters()}
    sums = {name: math.hypot(*numbers) if name == "mu" else math.fsum(numbers) for name, numbers in columns.items()}
    if "delta" in sums:
        sums["delta"] = min(1.0, sums["delta"])
    combined: Claim = claims[0]._with(**sums)
    return combined


def claim_from_dict(values: dict[str, Any]) -> Claim:
    """Return the claim that `to_dict` wrote.

    Parameters
    ----------
    values : dict
        With the keys ``kind``, ``relation`` and the parameters of that kind, and no others.

    Returns
    -------
    claim
        Of the family that ``kind`` names.

    Raises
    ------
    ValueError
        If the kind of claim is unknown, a value is missing or out of range.
    TypeError
        If a parameter is neither a number nor the string "inf".

    Examples
    --------
    >>> claim_from_dict({"kind": "pure", "epsilon": "inf", "relation": "add_remove"})
    PureDP(epsilon=inf, relation='add_remove')
    """
    family = FAMILIES.get(str(values.get("kind"))) if isinstance(values, dict) else None
    if family is None or set(values) != {"kind", "relation", *family._parameters()}:
        kinds = ", ".join(f"{kind} ({', '.join(one._parameters())})" for kind, one in FAMILIES.items())
        raise ValueError(f"a claim has the keys kind, relation and its parameters, one of {kinds}; got {values!r}")
    numbers = {name: math.inf if values[name] == "inf" else values[name] for name in family._parameters()}
    return family(**numbers, relation=values["relation"])


def parse_claim(text: str, relation: Relation = "add_remove") -> Claim:
    """Return the claim that is written ``FAMILY:NUMBER`` or ``FAMILY:NUMBER,NUMBER``.

    Parameters
    ----------
    text : str
        ``"pure:EPSILON"``, ``"approx:EPSILON,DELTA"``, ``"zcdp:RHO"`` or ``"gaussian:MU"``, each positive and finite.
    relation : {"add_remove", "replace_one"}
        Neighbor relation of the claim.

    Returns
    -------
    claim
        Of that family.

    Raises
    ------
    ValueError
        If the text is not of that form.

    Examples
    --------
    >>> parse_claim("pure:1")
    PureDP(epsilon=1.0, relation='add_remove')
    >>> parse_claim("approx:1,1e-6").delta
    1e-06
    """
    kind, _, rest = text.partition(":")
    family = FAMILIES.get(kind)
    try:
        numbers = [float(word) for word in rest.split(",")]
    except ValueError:
        numbers = []
    if family is None or len(numbers) != len(family._parameters()) or not all(0 < one < math.inf for one in numbers):
        forms = [f"{name}:{','.join(one._parameters()).upper()}" for name, one in FAMILIES.items()]
        raise ValueError(f"a claim is written {' or '.join(forms)} with positive finite numbers, got {text!r}")
    return family(**dict(zip(family._parameters(), numbers, strict=True)), relation=relation)


def _parameter(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits, as a hostile file may hold
        raise ValueError(f"{name} must be 0 or more, got a number too large for a float") from None
    if not number >= 0:
        raise ValueError(f"{name} must be 0 or more, got {number}")
    return number


def _check_epsilon(epsilon: float) -> None:
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be 0 or more, got {epsilon}")


def _check_delta(delta: float) -> None:
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta}")


def _delta(log_delta: Callable[[float], float], parameter: float, epsilon: float) -> float:
    if parameter == 0 or epsilon == math.inf:
        return 0.0
    return 1.0 if parameter == math.inf else math.exp(log_delta(epsilon))


def _epsilon(log_delta: Callable[[float], float], parameter: float, delta: float) -> float:
    if parameter == 0:
        return 0.0
    return math.inf if delta == 0 or parameter == math.inf else invert(log_delta, delta)


def _chain(people: int, epsilon: float) -> float:
    """Sum of ``exp(i * epsilon)`` over the steps ``i`` from one database to the other."""
    if people == 1 or epsilon == 0:
        return float(people)
    log_sum = (people - 1) * epsilon + math.log(math.expm1(-people * epsilon) / math.expm1(-epsilon))
    return math.exp(log_sum) if log_sum < 709 else math.inf
