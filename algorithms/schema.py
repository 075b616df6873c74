"""Schemas: named attributes, read from a public specification, and the queries that add up their cells."""

from __future__ import annotations

import math
import os
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.io.files import parsed_json, read_bytes

__all__ = ["DETAILED", "MOST_CELLS", "MOST_LEVELS", "Grouping", "Query", "Schema", "read_named", "read_specification"]

Groups = NDArray[np.int64]
TOTAL = "total"
DETAILED = "detailed"
"""Name of the query whose groups are the single cells."""

CROSS = "*"  # separates the attributes in the name of a query
MOST_LEVELS = 1_000_000
"""Largest number of levels by `maxval`: each level has a name in memory."""
MOST_CELLS = 2**24
"""Largest number of cells for queries, which store the group of every cell and a label of some 100 bytes per group."""


@dataclass(frozen=True)
class Query:
    """A partition of the cells, ``groups[cell]`` from 0 on without gaps, with the `labels` of its groups.

    Each person is in exactly one group: adding a person changes one answer by 1, replacing a person changes two.
    """

    name: str
    groups: Groups
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        self.groups.flags.writeable = False

    @property
    def size(self) -> int:
        """Number of answers."""
        return len(self.labels)


@dataclass(frozen=True)
class Grouping:
    """A coarser attribute, such as institutional group quarters: each level of `attribute` is in one of `groups`."""

    attribute: str
    groups: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Schema:
    """Named attributes with named levels; a cell is one combination of levels, and the last attribute changes fastest.

    Attributes
    ----------
    attributes : mapping of str to sequence of str
        Levels of each attribute.
    groupings : mapping of str to Grouping, optional
        Coarser attributes that queries may also name.
    edges : mapping of str to sequence of float, optional
        For attributes that are numbers in the data: the lower edge of each level, and the end of the last level if it
        has one. Numbers below the first edge, or from such an end on, have no level.
    codes : mapping of str to sequence of str, optional
        For attributes that are codes in the data: the code of each level. Other attributes are names of levels there.

    Examples
    --------
    >>> schema = Schema({"sex": ("male", "female"), "age": ("0-17", "18-64", "65+")})
    >>> schema.cells, schema.query("age").groups
    (6, array([0, 1, 2, 0, 1, 2]))
    """

    attributes: Mapping[str, Sequence[str]]
    groupings: Mapping[str, Grouping] = field(default_factory=dict)
    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    codes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.attributes, Mapping) or not all(isinstance(name, str) for name in self.attributes):
            raise TypeError(f"attributes must be a mapping of names to levels, got {self.attributes!r}")
        if not self.attributes:
            raise ValueError("attributes must name at least one attribute, got none")
        levels = {name: tuple(map(str, given)) for name, given in self.attributes.items()}
        for name, given in levels.items():
            if not name or CROSS in name or name in (TOTAL, DETAILED):
                raise ValueError(f"attribute must have a name of its own without {CROSS}, got {name!r}")
            if not given or len(set(given)) < len(given) or "" in given:
                raise ValueError(f"levels of {name} must be distinct names, at least one, got {given}")
        for name, grouping in self.groupings.items():
            if not name or CROSS in name or name in (*levels, TOTAL, DETAILED):
                raise ValueError(f"grouping must have a name of its own without {CROSS}, got {name!r}")
            if grouping.attribute not in levels:
                raise ValueError(f"grouping {name} must be of {', '.join(levels)}, got {grouping.attribute!r}")
            put = [level for group in grouping.groups.values() for level in group]
            if sorted(put) != sorted(levels[grouping.attribute]) or not all(grouping.groups.values()):
                groups = reprlib.repr(dict(grouping.groups))
                raise ValueError(f"groups of {name} must hold each level of {grouping.attribute} once, got {groups}")
        edges = {name: _edges(name, beginnings, levels) for name, beginnings in self.edges.items()}
        for name, codes in self.codes.items():
            if name not in levels or name in edges:
                raise ValueError(
                    f"codes must be of {', '.join(name for name in levels if name not in edges)}, got {name!r}"
                )
            if len(set(codes)) != len(levels[name]) or len(codes) != len(levels[name]):
                raise ValueError(f"codes of {name} must be different, one a level, got {', '.join(codes)}")
            if wrong := [code for code in codes if not code or code != code.strip()]:
                way = 'without spaces around it; --recode gives a missing value one, {"": CODE}'
                raise ValueError(f"a code of {name} must be text {way}, got {wrong[0]!r}")
        object.__setattr__(self, "attributes", MappingProxyType(levels))
        object.__setattr__(self, "groupings", MappingProxyType(dict(self.groupings)))
        object.__setattr__(self, "edges", MappingProxyType(edges))
        object.__setattr__(self, "codes", MappingProxyType({name: tuple(codes) for name, codes in self.codes.items()}))

    def __reduce__(self) -> tuple[type[Schema], tuple[dict[str, Any], ...]]:  # proxies cannot be pickled
        return Schema, (dict(self.attributes), dict(self.groupings), dict(self.edges), dict(self.codes))

    def only(self, name: str) -> Schema:
        """Return the schema of one attribute, with the same edges and codes."""
        return Schema(
            {name: self.attributes[name]},
            edges={name: self.edges[name]} if name in self.edges else {},
            codes={name: self.codes[name]} if name in self.codes else {},
        )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each attribute."""
        return tuple(len(levels) for levels in self.attributes.values())

    @property
    def cells(self) -> int:
        """Number of combinations of levels."""
        return math.prod(self.shape)

    def query(self, name: str) -> Query:
        """Return the query of that name."""
        if self.cells > MOST_CELLS:
            raise ValueError(f"attributes must have at most {MOST_CELLS:,} cells together, got {self.cells:,}")
        if name == DETAILED:
            chosen = {attribute: attribute for attribute in self.attributes}
        else:
            chosen = {}
            for word in [] if name == TOTAL else name.split(CROSS):
                word = word.strip()
                known = word in self.attributes or word in self.groupings
                attribute = word if word in self.attributes else self.groupings[word].attribute if known else ""
                if not known or attribute in chosen:
                    names = ", ".join([*self.attributes, *self.groupings])
                    rule = "attribute once" if known else f"of {names}"
                    raise ValueError(f"query must be total, detailed, or name each {rule}, got {name!r}")
                chosen[attribute] = word
        groups, labels = np.zeros(1, np.int64), [""]
        for attribute, levels in self.attributes.items():
            places, words = self._partition(attribute, levels, chosen.get(attribute))
            groups = (groups[:, np.newaxis] * len(words) + places).reshape(-1)
            labels = [", ".join(filter(None, (before, label))) for before in labels for label in words]
        return Query(name, groups, tuple(label or TOTAL for label in labels))

    def _partition(self, attribute: str, levels: Sequence[str], word: str | None) -> tuple[Groups, Sequence[str]]:
        if word is None:
            return np.zeros(len(levels), np.int64), [""]
        if word == attribute:
            return np.arange(len(levels)), levels
        groups = self.groupings[word].groups
        place = {level: number for number, group in enumerate(groups.values()) for level in group}
        return np.array([place[level] for level in levels]), list(groups)

    def where(self, **levels: str | Sequence[str]) -> NDArray[np.bool_]:
        """Return whether each cell has these levels, shape (cells,)."""
        mask = np.ones(self.shape, np.bool_)
        for axis, (name, known) in enumerate(self.attributes.items()):
            if name in levels:
                names = [levels[name]] if isinstance(levels[name], str) else list(levels[name])
                if unknown := [level for level in names if level not in known]:
                    raise ValueError(f"level of {name} must be one of {', '.join(known)}, got {unknown[0]!r}")
                along = [1] * axis + [-1] + [1] * (mask.ndim - axis - 1)
                mask &= np.isin(known, names).reshape(along)
        if unknown := [name for name in levels if name not in self.attributes]:
            raise ValueError(f"attribute must be one of {', '.join(self.attributes)}, got {unknown[0]!r}")
        return mask.reshape(-1)


def _edges(name: str, beginnings: Any, levels: Mapping[str, Sequence[str]]) -> tuple[float, ...]:
    if name not in levels:
        raise ValueError(f"edges must be of {', '.join(levels)}, got {name!r}")
    if isinstance(beginnings, str) or any(isinstance(edge, bool) or not isinstance(edge, Real) for edge in beginnings):
        raise TypeError(f"edges of {name} must be numbers, got {beginnings!r}")
    try:
        edges = tuple(map(float, beginnings))
    except OverflowError:  # a whole number beyond float64
        edges = (math.inf,)
    if not all(map(math.isfinite, edges)) or any(low >= high for low, high in pairwise(edges)):
        raise ValueError(f"edges of {name} must be finite and increase, got {reprlib.repr(list(beginnings))}")
    if len(edges) - len(levels[name]) not in (0, 1):
        number = len(levels[name])
        raise ValueError(f"edges of {name} must be one a level, {number}, or one more for the end, got {len(edges)}")
    return edges


def read_specification(source: str | os.PathLike[str] | Mapping[str, Any]) -> Schema:
    """Read the attributes of persons, and the levels of each, from a .json file (or its content).

    Such a file is ``{"attributes": {"sex": ["male", "female"], "age": {"maxval": 115}}}``. An attribute has

    - a list of its levels: data have these words;
    - ``{"codes": {"1": "single", "2": "married"}}``: data have codes. Leading zeros of whole numbers are ignored unless
      two codes differ only in them;
    - ``{"labels": ["single", "married"], "places": true}``: data have indices in the list, counted from 0;
    - ``{"maxval": 115}``: the whole numbers from 0 to 115;
    - ``{"edges": [0, 18, 65]}``: intervals of numbers. One begins at each edge, and the last has no end unless
      ``"end": 120`` gives it.

    Other keys than ``attributes``, such as ``"source"``, are notes for readers.

    The file must be written before anyone sees the data, and must also list levels that nobody has. A list made from
    the data reveals persons in them: `algorithms.bugs.systems.nist.DomainFromData` shows the privacy loss.
    """
    content = source if isinstance(source, Mapping) else read_named(source, "specification")
    attributes = content.get("attributes") if isinstance(content, Mapping) else None
    if not isinstance(attributes, dict):
        got = reprlib.repr(source) if isinstance(source, Mapping) else os.fspath(source)
        raise ValueError(f'specification must have "attributes" with the levels of each, got {got}')
    read = {attribute: _read_attribute(attribute, values) for attribute, values in attributes.items()}
    edges = {attribute: edges for attribute, (_, edges, _) in read.items() if edges}
    codes = {attribute: codes for attribute, (_, _, codes) in read.items() if codes}
    return Schema({attribute: levels for attribute, (levels, _, _) in read.items()}, edges=edges, codes=codes)


def read_named(path: str | os.PathLike[str], what: str) -> Any:
    """Return the content of a .json file without repeated names; messages call it `what`."""
    name = os.fspath(path)
    if Path(name).suffix.lower() != ".json":
        raise ValueError(f"{what} must be a .json file, got {name}")
    try:
        return parsed_json(read_bytes(Path(name)))
    except OSError as error:
        raise ValueError(f"{what} must be a file that can be read, got {name} ({error.strerror})") from error
    except ValueError as error:  # also for an encoding other than UTF-8
        raise ValueError(f"{what} must be JSON, got {name}: {error}") from error


def _read_attribute(attribute: str, values: Any) -> tuple[list[str], list[float], list[str]]:
    """Return names of levels, edges and codes; refuse values in none of the forms of `read_specification`."""
    if _names(values):
        return [str(value) for value in values], [], []
    match values:
        case {"maxval": int(most), **more} if not more and type(most) is int and 0 <= most < MOST_LEVELS:
            return [str(value) for value in range(most + 1)], [], []
        case {"codes": dict(codes), **more} if not more and codes and _names(list(codes.values())):
            return [str(label) for label in codes.values()], [], list(codes)
        case {"labels": labels, "places": True, **more} if not more and _names(labels):
            _check_places(attribute, labels)
            return [str(label) for label in labels], [], [str(place) for place in range(len(labels))]
        case {"edges": edges, **more} if _numbers(edges) and (
            not more or (more.keys() == {"end"} and _numbers([*more.values()]))
        ):
            named = [repr(edge).removesuffix(".0") for edge in (*edges, *more.values())]
            last = [] if more else [f"{named[-1]} or more"]
            levels = [*(f"{low} to less than {high}" for low, high in pairwise(named)), *last]
            return levels, [*edges, *more.values()], []
    raise ValueError(
        f'levels of {attribute} must be a list of names, {{"codes": {{CODE: NAME}}}}, {{"labels": names, "places": '
        f'true}}, {{"maxval": number}} with a number below {MOST_LEVELS:,}, or {{"edges": numbers}} with or without '
        f'"end": number, got {reprlib.repr(values)}'
    )


def _names(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) in (str, int) for value in values)


def _check_places(attribute: str, labels: Sequence[str]) -> None:
    """Refuse labels numbered from 1, and labels that are numbers other than their indices."""
    begins = [re.search(r"\d+", str(label)) for label in labels[:2]]
    from_1 = [int(begin[0]) for begin in begins if begin] == [1, 2]
    others = [label for place, label in enumerate(map(str, labels)) if label.isdecimal() and int(label) != place]
    if from_1 or others:
        raise ValueError(
            f"places of {attribute} are counted from 0, and its labels otherwise, got {(others or list(labels))[0]!r}: "
            'write what each code means, {"codes": {CODE: LABEL, ...}}'
        )


def _numbers(edges: Any) -> bool:
    return isinstance(edges, list) and bool(edges) and all(type(edge) in (int, float) for edge in edges)
