"""Groups of fields that share a histogram, and how they were chosen: in words, and in a file."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

from algorithms.schema import CROSS, Schema, read_named

__all__ = ["LEAST", "Decision", "Groups", "read_groups"]

LEAST = 0.3  # association from which fields are joined
SHOWN = 3  # pairs of a kind that are named


@dataclass(frozen=True)
class Decision:
    """Two groups, by name, that were joined or not, and how many bins the histogram of both together has.

    Their association is the mean over fields of the one and the other; NaN where it was not counted.
    """

    first: str
    second: str
    association: float
    bins: int
    joined: bool


@dataclass(frozen=True)
class Groups:
    """Fields that share a histogram: each field in exactly one group.

    Attributes
    ----------
    fields : tuple of tuple of str
        Fields of each group.
    decisions : tuple of Decision
        How the choice went: joins in their order, then the pairs of groups left apart, the most associated first.
    least : float
        Association that a join needed.
    max_bins : int or None
        Bins that a join could have at most; None where the groups were given.

    Raises
    ------
    TypeError
        If fields are not lists of names.
    ValueError
        If there is no group, a group is empty, or a field stands twice.

    Examples
    --------
    >>> print(Groups([["age", "education"], ["sex"]]))
    2 groups, as given
    age*education
    sex
    """

    fields: tuple[tuple[str, ...], ...]
    decisions: tuple[Decision, ...] = ()
    least: float = LEAST
    max_bins: int | None = None

    def __post_init__(self) -> None:
        given: Any = self.fields
        if isinstance(given, str) or not all(
            isinstance(group, list | tuple) and all(isinstance(name, str) for name in group) for group in given
        ):
            raise TypeError(f"groups must be lists of names of fields, got {given!r}")
        if not given or not all(given):
            raise ValueError("groups must each have a field, and there must be one at least, got " + repr(given))
        names = [name for group in given for name in group]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"groups must have each field once, got {twice[0]!r} twice")
        object.__setattr__(self, "fields", tuple(map(tuple, given)))

    @classmethod
    def single(cls, schema: Schema) -> Groups:
        """Return every field as a group of its own: what is released then are independent margins."""
        return cls(tuple((name,) for name in schema.attributes))

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each group: its fields joined by ``*``."""
        return tuple(map(CROSS.join, self.fields))

    def __len__(self) -> int:
        return len(self.fields)

    def check(self, schema: Schema) -> None:
        """Refuse groups that are not a partition of the fields of a schema.

        Raises
        ------
        ValueError
            If a field is unknown or left out.
        """
        names = [name for group in self.fields for name in group]
        if unknown := [name for name in names if name not in schema.attributes]:
            raise ValueError(f"groups must be of the fields of the specification, got {unknown[0]!r}")
        if missing := [name for name in schema.attributes if name not in names]:
            raise ValueError(f"groups must have each field once, and {missing[0]!r} is in none")

    def __str__(self) -> str:
        number = "1 group" if len(self) == 1 else f"{len(self)} groups"
        if self.max_bins is None:
            return "\n".join([f"{number}, as given", *self.names])
        rule = f"joined from association {self.least:g} on, up to {self.max_bins:,} bins"
        lines = [f"{number}, {rule}", *self.names, "", "joins"]
        lines += [_words(one) for one in self.decisions if one.joined] or ["none"]
        apart = [one for one in self.decisions if not one.joined]
        weak = [one for one in apart if one.association < self.least]
        lines += ["", "left apart"]
        unknown = [one for one in apart if math.isnan(one.association)]
        lines += [f"{_words(one)}, above {self.max_bins:,}" for one in apart if one not in (*weak, *unknown)]
        for few, rule, first in (
            (unknown, "a table too large to count", "the first"),
            (weak, f"association below {self.least:g}", "the largest"),
        ):
            if few:
                pairs = "1 pair" if len(few) == 1 else f"{len(few)} pairs"
                lines += [f"{pairs} of groups with {rule}; {first}:", *map(_words, few[:SHOWN])]
        return "\n".join(lines if apart else [*lines, "none"])

    def to_dict(self) -> dict[str, Any]:
        """Return the groups and how they were chosen as plain values for JSON; `read_groups` reads the first part."""
        decisions = [
            {
                "first": one.first,
                "second": one.second,
                "association": None if math.isnan(one.association) else round(one.association, 6),
                "bins": one.bins,
                "joined": one.joined,
            }
            for one in self.decisions
        ]
        return {
            "groups": [list(group) for group in self.fields],
            "least": self.least,
            "max_bins": self.max_bins,
            "decisions": decisions,
        }


def read_groups(path: str | os.PathLike[str]) -> Groups:
    """Read groups from a JSON file: ``{"groups": [["age", "education"], ["sex"]]}``.

    Parameters
    ----------
    path : path-like
        The file; other keys are ignored.

    Returns
    -------
    Groups
        As given.

    Raises
    ------
    ValueError
        If the file cannot be read or is not of that form.
    """
    try:
        return Groups(read_named(path, "groups")["groups"])
    except (KeyError, TypeError) as error:
        raise ValueError(f'groups must be JSON of the form {{"groups": [["age", "sex"]]}}, got {path}') from error


def _words(decision: Decision) -> str:
    value = decision.association
    counted = "association not counted" if math.isnan(value) else f"association {value:.2f}"
    return f"{decision.first} and {decision.second}: {counted}, {decision.bins:,} bins"
