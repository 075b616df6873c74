"""Families of promises by name: how files and the command line write them, and how releases of one family add up."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from audit.claims.claim import Claim, Relation

__all__ = ["claim_from_dict", "compose", "parse_claim", "register_claim"]

Family = TypeVar("Family", bound=type[Claim])
FAMILIES: dict[str, type[Claim]] = {}  # by the kind, their name in files and on the command line


def register_claim(family: Family) -> Family:
    """Register a frozen dataclass derived from `Claim` for files, the command line and composition: a decorator."""
    if FAMILIES.setdefault(family.kind, family) is not family:
        raise ValueError(f"a family of kind {family.kind!r} exists: {FAMILIES[family.kind].__name__}")
    return family


def compose(*claims: Claim) -> Claim:
    """Return the joint promise of several releases of the same people's data.

    Parameters
    ----------
    *claims : claim
        At least one; all of one family and relation. A later release may depend on the earlier ones.

    Returns
    -------
    claim
        Epsilons, deltas (up to 1) and rhos add up, and so do the squares of mu. (Dwork and Roth, 2014, theorem B.1; Bun
        and Steinke, 2016, lemma 1.7; Dong, Roth and Su, 2022, corollary 3.3.)

    Raises
    ------
    ValueError, TypeError
        If there is no claim, or relations or families differ.

    Examples
    --------
    >>> from audit.claims import ZCDP
    >>> print(compose(ZCDP(0.1), ZCDP(0.4)))
    rho 0.5 (add/remove)
    """
    if not claims:
        raise ValueError("at least one claim must be given, got none")
    families = {type(claim) for claim in claims}
    if len(families) > 1 or not isinstance(claims[0], Claim):
        names = ", ".join(sorted(family.__name__ for family in families))
        raise TypeError(f"claims that are composed must be of one family, got {names}")
    relations = {claim.relation for claim in claims}
    if len(relations) > 1:
        raise ValueError(f"claims that are composed must be under one relation, got {', '.join(sorted(relations))}")
    columns = {name: [claim.parameters[name] for claim in claims] for name in claims[0].parameter_names()}
    return claims[0].with_parameters(claims[0].composed(columns))


def claim_from_dict(values: dict[str, Any]) -> Claim:
    """Return the claim that `to_dict` wrote, from a dict with its keys and no others.

    >>> claim_from_dict({"kind": "pure", "epsilon": "inf", "relation": "add_remove"})
    PureDP(epsilon=inf, relation='add_remove')
    """
    family = FAMILIES.get(str(values.get("kind"))) if isinstance(values, dict) else None
    if family is None or set(values) != {"kind", "relation", *family.parameter_names()}:
        kinds = ", ".join(f"{kind} ({', '.join(known.parameter_names())})" for kind, known in FAMILIES.items())
        raise ValueError(f"a claim has the keys kind, relation and its parameters, one of {kinds}; got {values!r}")
    numbers = {name: math.inf if values[name] == "inf" else values[name] for name in family.parameter_names()}
    return family(**{**numbers, "relation": values["relation"]})


def claim_forms() -> str:
    """Return how a promise of each family is written, in words."""
    *others, last = (f"{kind}:{','.join(known.parameter_names()).upper()}" for kind, known in FAMILIES.items())
    return f"{', '.join(others)} or {last}"


def parse_claim(text: str, relation: Relation = "add_remove") -> Claim:
    """Return the claim that is written ``pure:EPSILON``, ``approx:EPSILON,DELTA``, ``zcdp:RHO`` or ``gaussian:MU``.

    Numbers are positive and finite; ``approx:0,DELTA`` is total variation.

    >>> parse_claim("pure:1")
    PureDP(epsilon=1.0, relation='add_remove')
    """
    name, _, rest = text.partition(":")
    family = FAMILIES.get(name)
    try:
        numbers = [float(word) for word in rest.split(",")]
    except ValueError:
        numbers = []
    names = family.parameter_names() if family else []
    # Of several numbers, all but the last may be 0: other promises are not worth an audit.
    possible = len(numbers) == len(names) > 0 and all(0 <= number < math.inf for number in numbers) and numbers[-1] > 0
    if family is None or not possible:
        plain = text.replace(".", "", 1).isdecimal() and float(text) > 0
        hint = f": did you mean pure:{text}?" if plain else ""
        raise ValueError(
            f"a claim is written {claim_forms()} with positive finite numbers, "
            f"approx:0,DELTA for total variation, got {text!r}{hint}"
        )
    return family(**{**dict(zip(names, numbers, strict=True)), "relation": relation})
