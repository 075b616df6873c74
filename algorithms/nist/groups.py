"""Groups of fields that share a histogram: a deterministic choice on public records alone, with its reasons."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.nist.records import LARGEST_GROUP, bins_of, check_records, product
from algorithms.schema import CROSS, Schema, read_named
from audit.arguments import real_number, whole_number

__all__ = [
    "LEAST",
    "MOST_BINS",
    "Decision",
    "Groups",
    "association",
    "check_one_source",
    "choose_groups",
    "read_groups",
]

LEAST = 0.3  # smallest association for which fields are joined
MOST_BINS = 2_000  # per group; better than 300 and 5,000 on public KDD Census-Income records for epsilon 0.3 to 8
SAME = 12  # associations that agree to this many decimals count as equal
SHOWN = 3  # number of pairs of each kind that are listed


@dataclass(frozen=True)
class Decision:
    """Two groups, by name, that were joined or not."""

    first: str
    second: str
    association: float  # mean over pairs of a field of each group; NaN if not computed
    bins: int  # bins of the joint histogram
    joined: bool = False

    def __str__(self) -> str:
        counted = "association not counted" if math.isnan(self.association) else f"association {self.association:.2f}"
        return f"{self.first} and {self.second}: {counted}, {self.bins:,} bins"


@dataclass(frozen=True)
class Groups:
    """Fields that share a histogram: each field in exactly one group.

    Attributes
    ----------
    fields : tuple of tuple of str
        Fields of each group.
    decisions : tuple of Decision
        All decisions: joins in their order, then the pairs of groups not joined, the most associated first.
    least, max_bins : float, int or None
        Smallest association for which groups are joined, and most bins of a group; None if the user gave the groups.
    """

    fields: tuple[tuple[str, ...], ...]
    decisions: tuple[Decision, ...] = ()
    least: float = LEAST
    max_bins: int | None = None

    def __post_init__(self) -> None:
        groups: Any = self.fields
        if isinstance(groups, str) or not all(
            isinstance(group, list | tuple) and all(isinstance(name, str) for name in group) for group in groups
        ):
            raise TypeError(f"groups must be lists of names of fields, got {groups!r}")
        if not groups or not all(groups):
            raise ValueError("groups must each have a field, and there must be one at least, got " + repr(groups))
        names = [name for group in groups for name in group]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"groups must have each field once, got {twice[0]!r} twice")
        object.__setattr__(self, "fields", tuple(map(tuple, groups)))

    @classmethod
    def single(cls, schema: Schema) -> Groups:
        """Return groups of one field each: a release then has independent margins."""
        return cls(tuple((name,) for name in schema.attributes))

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each group: its fields joined by ``*``."""
        return tuple(map(CROSS.join, self.fields))

    def __len__(self) -> int:
        return len(self.fields)

    def check(self, schema: Schema) -> None:
        """Refuse groups that are not a partition of the fields of a schema."""
        names = [name for group in self.fields for name in group]
        if unknown := [name for name in names if name not in schema.attributes]:
            raise ValueError(f"groups must be of the fields of the specification, got {unknown[0]!r}")
        if missing := [name for name in schema.attributes if name not in names]:
            raise ValueError(f"groups must have each field once, and {missing[0]!r} is in none")

    def __str__(self) -> str:
        number = "1 group" if len(self) == 1 else f"{len(self)} groups"
        if self.max_bins is None:
            return "\n".join([f"{number}, as given", *self.names])
        joins, apart = ([one for one in self.decisions if one.joined is joined] for joined in (True, False))
        unknown = [one for one in apart if math.isnan(one.association)]
        weak = [one for one in apart if one.association < self.least]
        lines = [f"{number}, joined from association {self.least:g} on, up to {self.max_bins:,} bins", *self.names]
        lines += ["", "joins", *(map(str, joins) if joins else ["none"]), "", "left apart"]
        lines += [f"{one}, above {self.max_bins:,}" for one in apart if one.association >= self.least]
        for few, rule, first in (
            (unknown, "a table too large to count", "the first"),
            (weak, f"association below {self.least:g}", "the largest"),
        ):
            if few:
                pairs = "1 pair" if len(few) == 1 else f"{len(few)} pairs"
                lines += [f"{pairs} of groups with {rule}; {first}:", *map(str, few[:SHOWN])]
        return "\n".join(lines if apart else [*lines, "none"])

    def to_dict(self) -> dict[str, Any]:
        """Return the groups and how they were chosen, as plain values for JSON; `read_groups` reads only the groups."""
        decisions = [
            asdict(one) | {"association": None if math.isnan(one.association) else round(one.association, 6)}
            for one in self.decisions
        ]
        return {
            "groups": [list(group) for group in self.fields],
            "least": self.least,
            "max_bins": self.max_bins,
            "decisions": decisions,
        }


def read_groups(path: str | os.PathLike[str]) -> Groups:
    """Read groups from a JSON file: ``{"groups": [["age", "education"], ["sex"]]}``; other keys are ignored."""
    try:
        return Groups(read_named(path, "groups")["groups"])
    except (KeyError, TypeError) as error:
        raise ValueError(f'groups must be JSON of the form {{"groups": [["age", "sex"]]}}, got {path}') from error


def check_one_source(public: Any, groups: Any) -> None:
    """Refuse calls with both sources of groups, public records and a list, and calls with none."""
    if (public is None) == (groups is None):
        raise ValueError("public or groups is needed, and not both: the data must have no say in the groups")


def choose_groups(
    public_records: ArrayLike, schema: Schema, *, max_bins: int = MOST_BINS, least: float = LEAST
) -> Groups:
    """Join correlated fields on public records alone: the data to be protected must not influence the choice.

    Parameters
    ----------
    public_records : array_like of int, shape (n, fields)
        Codes of public records of the same kind: at least one, and far more than any field has values.
    max_bins : int
        Most bins of a group: at most 2**22, at least the number of values of any field.
    least : float
        Smallest mean association for which two groups are joined, in (0, 1].

    Notes
    -----
    Each step joins the two groups with the largest mean association (the first of ties), among pairs with a mean of at
    least `least` and at most `max_bins` joint bins. The mean is over the bias-corrected Cramer's V of each field of one
    group with each of the other (Bergsma, "A bias-correction for Cramer's V and Tschuprow's T", 2013).
    The rule is our own: Gardner, "NistDp3: Differential Privacy 3, Write-up and Privacy Proof", says only that groups
    are chosen on public data.
    """
    records = check_records(public_records, schema, name="public records")
    if not len(records):
        raise ValueError("public records must have one row at least, got none")
    _check_limits(schema, max_bins, least)
    names, values = tuple(schema.attributes), _associations(records, schema)

    @cache  # a join changes few pairs
    def decision(one: tuple[int, ...], other: tuple[int, ...]) -> Decision:
        first, second = (CROSS.join(names[column] for column in group) for group in (one, other))
        return Decision(first, second, float(values[np.ix_(one, other)].mean()), product(schema.shape, one + other))

    joins: list[Decision] = []
    groups: list[tuple[int, ...]] = [(column,) for column in range(len(names))]
    while True:
        pairs = {places: decision(*(groups[at] for at in places)) for places in combinations(range(len(groups)), 2)}
        means = {places: round(pair.association, SAME) for places, pair in pairs.items() if pair.bins <= max_bins}
        near = {places: mean for places, mean in means.items() if mean >= least}  # leaves out NaN
        if not near:
            break
        one, other = max(near, key=near.__getitem__)  # the first of ties
        joins.append(replace(pairs[one, other], joined=True))
        groups[one] = tuple(sorted(groups[one] + groups.pop(other)))
    apart = sorted(
        pairs.values(), key=lambda one: 0.0 if math.isnan(one.association) else -round(one.association, SAME)
    )
    fields = tuple(tuple(names[column] for column in group) for group in groups)
    return Groups(fields, (*joins, *apart), float(least), int(max_bins))


def _associations(records: NDArray[Any], schema: Schema) -> NDArray[np.float64]:
    """Return the association of every two fields; NaN where their cross table is too large."""
    shape, columns = schema.shape, np.ascontiguousarray(records.T)
    values = np.full((len(shape), len(shape)), math.nan)
    for one, other in combinations(range(len(shape)), 2):
        if (bins := product(shape, (one, other))) <= LARGEST_GROUP:
            table = np.bincount(bins_of(columns.T, (one, other), shape), minlength=bins)
            values[one, other] = values[other, one] = association(table.reshape(shape[one], -1))
    return values


def association(table: ArrayLike) -> float:
    """Return the bias-corrected Cramer's V, 0 to 1, of counts, shape (rows, columns), by Bergsma's equations 3 to 6."""
    counts = np.asarray(table, np.float64)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    rows, columns = counts.shape
    if min(rows, columns) < 2:
        return 0.0
    total = counts.sum()
    expected = counts.sum(axis=1)[:, np.newaxis] * (counts.sum(axis=0) / total)
    phi = float((counts * (counts / expected)).sum() / total) - 1
    corrected = max(0.0, phi - (rows - 1) * (columns - 1) / (total - 1))
    least = min(levels - (levels - 1) ** 2 / (total - 1) for levels in (rows, columns))
    return float(min(1.0, math.sqrt(corrected / (least - 1)))) if least > 1 else 0.0


def _check_limits(schema: Schema, max_bins: int, least: float) -> None:
    if whole_number("max_bins", max_bins, least=1) > LARGEST_GROUP:
        raise ValueError(f"max_bins must be at most {LARGEST_GROUP:,}, got {max_bins}")
    widest = max(schema.attributes, key=lambda name: len(schema.attributes[name]))
    if max_bins < len(schema.attributes[widest]):
        levels = len(schema.attributes[widest])
        raise ValueError(f"max_bins must hold the levels of every field, {widest} has {levels:,}, got {max_bins}")
    if not 0 < real_number("least", least) <= 1:
        raise ValueError(f"least must be in (0, 1], got {least}")
