"""The specification of a file of persons: which columns it has and which values they may hold, from public documents.

A specification is a JSON file, written before anyone looks at the data::

    {
        "attributes": {
            "sex": ["male", "female"],
            "age": {"maxval": 115},
            "income": {"edges": [0, 1, 1000, 10000]}
        }
    }

An attribute has a list of levels, or ``maxval`` for the whole numbers from 0 to it, or ``edges`` for intervals of
numbers: where each begins, the last without end. Other keys beside ``attributes``, such as ``"source"``, are for the
reader.
"""

from __future__ import annotations

import json
import os
import reprlib
from itertools import pairwise
from pathlib import Path
from typing import Any

from algorithms.schema import Schema

__all__ = ["read_specification"]

MOST_LEVELS = 1_000_000  # of a `maxval`: each has a name


def read_specification(path: str | os.PathLike[str]) -> Schema:
    """Read which attributes persons have and which levels each of them.

    Parameters
    ----------
    path : path-like
        A .json file.

    Returns
    -------
    Schema
        Attributes in the order of the file.

    Raises
    ------
    ValueError
        If the file cannot be read, is not of that form, or its levels break a rule of `Schema`.

    Notes
    -----
    Levels that nobody has belong into the list, too. A list that was made from the data tells who is in them: the
    mechanism `algorithms.bugs.nist.DomainFromData` shows what that costs.
    """
    name = os.fspath(path)
    if Path(name).suffix.lower() != ".json":
        raise ValueError(f"specification must be a .json file, got {name}")
    try:
        given = json.loads(Path(name).read_text(encoding="utf-8-sig"), object_pairs_hook=_unique)
    except OSError as error:
        raise ValueError(f"specification must be a file that can be read, got {name} ({error.strerror})") from error
    except ValueError as error:  # also of an encoding that is not UTF-8
        raise ValueError(f"specification must be JSON, got {name}: {error}") from error
    except RecursionError:
        raise ValueError(f"specification must be JSON, got {name}: brackets within brackets without end") from None
    attributes = given.get("attributes") if isinstance(given, dict) else None
    if not isinstance(attributes, dict):
        raise ValueError(f'specification must have "attributes" with the levels of each, got {name}')
    levels, edges = {}, {}
    for attribute, values in attributes.items():
        if isinstance(values, dict) and values.keys() == {"edges"} and _numbers(values["edges"]):
            edges[attribute] = values["edges"]
        levels[attribute] = _levels(attribute, values)
    return Schema(levels, edges=edges)


def _levels(attribute: str, values: Any) -> list[str]:
    if isinstance(values, list) and all(type(value) in (str, int) for value in values):
        return [str(value) for value in values]
    if isinstance(values, dict) and len(values) == 1:
        (kind, given) = next(iter(values.items()))
        if kind == "maxval" and type(given) is int and 0 <= given < MOST_LEVELS:
            return [str(value) for value in range(given + 1)]
        if kind == "edges" and _numbers(given):
            named = [repr(edge).removesuffix(".0") for edge in given]
            return [*(f"{low} to less than {high}" for low, high in pairwise(named)), f"{named[-1]} or more"]
    raise ValueError(
        f'levels of {attribute} must be a list of names, {{"maxval": number}} with a number below {MOST_LEVELS:,}, or '
        f'{{"edges": numbers}}, got {reprlib.repr(values)}'
    )


def _numbers(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(type(edge) in (int, float) for edge in given)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]!r} stands twice")
    return dict(pairs)
