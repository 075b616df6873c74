"""Groups of fields that share a histogram: chosen on public records alone, explained, the same every time."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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

LEAST = 0.3  # association from which fields are joined
MOST_BINS = 2_000  # of a group: on public records of KDD Census-Income better than 300 and 5,000 from epsilon 0.3 to 8
SAME = 12  # decimals to which associations count as equal
SHOWN = 3  # pairs of a kind that are named


@dataclass(frozen=True)
class Decision:
    """Two groups, by name, that were joined or not."""

    first: str
    second: str
    association: float  # mean over fields of the one and the other; NaN where it was not counted
    bins: int  # of the histogram of both together
    joined: bool

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
        All decisions: joins in their order, then the pairs of groups left apart, the most associated first.
    least, max_bins : float, int or None
        The least association for which groups are joined, and the most bins of a joined one; None if they were given.
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
        rule = f"joined from association {self.least:g} on, up to {self.max_bins:,} bins"
        lines = [f"{number}, {rule}", *self.names, "", "joins"]
        lines += [str(one) for one in self.decisions if one.joined] or ["none"]
        apart = [one for one in self.decisions if not one.joined]
        weak = [one for one in apart if one.association < self.least]
        lines += ["", "left apart"]
        unknown = [one for one in apart if math.isnan(one.association)]
        lines += [f"{one}, above {self.max_bins:,}" for one in apart if one not in (*weak, *unknown)]
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
    """Refuse both sources of groups, public records and a list, and none."""
    if (public is None) == (groups is None):
        raise ValueError("public or groups is needed, and not both: the data must have no say in the groups")


def choose_groups(
    public_records: ArrayLike, schema: Schema, *, max_bins: int = MOST_BINS, least: float = LEAST
) -> Groups:
    """Join correlated fields on public records alone: the data to be protected must not influence the choice.

    Parameters
    ----------
    public_records : array_like of int, shape (n, fields)
        Codes of public records of the same kind, at least one, and far more than any field has levels.
    schema : Schema
        Fields and levels.
    max_bins : int
        Most bins of a group, 2**22 at most; no less than the levels of any field.
    least : float
        Least mean association for which two groups are joined, in (0, 1].

    Returns
    -------
    Groups
        The groups with every decision; fields in the order of the schema.

    Notes
    -----
    Each step joins the two groups whose fields are most associated on average, the first of equals, among pairs with an
    average of at least `least` and at most `max_bins` bins together. Association is the bias-corrected Cramer's V of
    each field of one with each of the other (Bergsma, "A bias-correction for Cramer's V and Tschuprow's T", 2013).
    The rule is our own: Gardner, "NistDp3: Differential Privacy 3, Write-up and Privacy Proof", says only that groups
    are chosen on public data. With fewer groups, each gets less noise; but the bins of a joined histogram multiply. If
    fields have about as many levels as there are records, chance decides. That costs usefulness, not privacy.
    """
    records = check_records(public_records, schema, name="public records")
    if not len(records):
        raise ValueError("public records must have one row at least, got none")
    _check_limits(schema, max_bins, least)
    names, shape = tuple(schema.attributes), schema.shape
    count = len(names)
    columns = np.ascontiguousarray(records.T)
    between = np.zeros((count, count))  # sums over pairs of fields, of any two groups
    for one, other in combinations(range(count), 2):
        bins, value = product(shape, (one, other)), math.nan  # where they can never be together
        if bins <= LARGEST_GROUP:
            table = np.bincount(bins_of(columns.T, (one, other), shape), minlength=bins)
            value = association(table.reshape(shape[one], -1))
        between[one, other] = between[other, one] = value
    groups = [[column] for column in range(count)]

    def decision(one: int, other: int, *, joined: bool) -> Decision:
        first, second = (CROSS.join(names[column] for column in groups[place]) for place in (one, other))
        mean = float(between[one, other]) / (len(groups[one]) * len(groups[other]))
        return Decision(first, second, mean, product(shape, groups[one] + groups[other]), joined)

    decisions = []
    while pair := _closest(groups, between, shape, max_bins, least):
        one, other = pair
        decisions.append(decision(one, other, joined=True))
        groups[one] = sorted(groups[one] + groups.pop(other))
        between[one] += between[other]
        between[:, one] += between[:, other]
        between = np.delete(np.delete(between, other, axis=0), other, axis=1)
    apart = [decision(one, other, joined=False) for one, other in combinations(range(len(groups)), 2)]
    apart.sort(key=lambda one: 0.0 if math.isnan(one.association) else -round(one.association, SAME))
    fields = tuple(tuple(names[column] for column in group) for group in groups)
    return Groups(fields, (*decisions, *apart), float(least), int(max_bins))


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


def _closest(
    groups: list[list[int]], between: NDArray[np.float64], shape: Sequence[int], max_bins: int, least: float
) -> tuple[int, int] | None:
    """Return the two groups that are joined next; the first of equals."""
    sizes = np.array([len(group) for group in groups])
    bins = [product(shape, group) for group in groups]
    fits = np.array([[one * other <= max_bins for other in bins] for one in bins])
    mean = np.round(between / np.outer(sizes, sizes), SAME)
    mean[~fits | np.tri(len(groups), dtype=np.bool_) | ~(mean >= least)] = -1.0
    one, other = np.unravel_index(int(mean.argmax()), mean.shape)
    return (int(one), int(other)) if mean[one, other] >= 0 else None


def _check_limits(schema: Schema, max_bins: int, least: float) -> None:
    if whole_number("max_bins", max_bins, least=1) > LARGEST_GROUP:
        raise ValueError(f"max_bins must be at most {LARGEST_GROUP:,}, got {max_bins}")
    widest = max(schema.attributes, key=lambda name: len(schema.attributes[name]))
    if max_bins < len(schema.attributes[widest]):
        levels = len(schema.attributes[widest])
        raise ValueError(f"max_bins must hold the levels of every field, {widest} has {levels:,}, got {max_bins}")
    if not 0 < real_number("least", least) <= 1:
        raise ValueError(f"least must be in (0, 1], got {least}")
