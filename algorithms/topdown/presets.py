"""Published settings of the Bureau's releases by name, for any tree with their levels, and a small one for audits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.schema import Grouping, Schema
from algorithms.tables.shares import Share, exact_share
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import Bounds, GroupedTotal, Invariant, facility_bounds, structural_zeros
from algorithms.topdown.mechanism import TopDown
from algorithms.topdown.plan import Plan
from algorithms.topdown.population import SCHEMA_1940
from audit.claims import ZCDP, PureDP, Relation

__all__ = ["PRESETS", "Preset", "levels_named", "preset"]


@dataclass(frozen=True)
class Preset:
    """Settings of a release, level by level."""

    about: str  # what release, which source
    schema: Schema
    promise: PureDP | ZCDP  # of the published release
    levels: Mapping[str, Share]  # share of each level, the outermost first
    queries: Mapping[str, Mapping[str, Share]]  # shares of the queries at each level
    drop: Sequence[str] = ()  # levels that a smaller tree goes without, in this order
    invariants: Mapping[str, str] = field(default_factory=dict)  # by level, the query that is published exactly
    total_first: Sequence[str] = ()  # levels at which the total is fitted in a pass of its own
    rounding: Sequence[Sequence[str]] = ()  # passes of the rounding; none: cell by cell
    minimal: str | None = None  # query of the failsafe
    solver: str = "piqp"


def _read(
    promise: Mapping[str, Any],
    attributes: Mapping[str, Sequence[str]] = SCHEMA_1940,
    groupings: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Preset:
    schema = Schema(attributes, {name: Grouping(*given) for name, given in (groupings or {}).items()})
    ((kind, budget),) = promise.items()
    claim = ZCDP if kind == "rho" else PureDP
    return Preset(schema=schema, promise=claim(float(Fraction(budget)), "replace_one"), **settings)


_SETTINGS = json.loads(resources.files(__package__).joinpath("presets.json").read_text("utf-8"))
PRESETS: Mapping[str, Preset] = {name: _read(**settings) for name, settings in _SETTINGS.items()}
"""The settings by name."""
PERSON_QUERIES = tuple(PRESETS["pl94-2020"].queries["nation"])


def preset(
    name: str,
    tree: Hierarchy,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    relation: Relation = "replace_one",
    levels: Sequence[str] | None = None,
    facilities: ArrayLike | None = None,
    inside: ArrayLike | None = None,
    **overrides: Any,
) -> TopDown:
    """Return TopDown with published settings, for a tree of one's own.

    Parameters
    ----------
    name : str
        A name in `PRESETS`: ``"e2e-1940"``, ``"pl94-2020"``, ``"h1"`` or ``"micro"``.
    tree : Hierarchy
        The areas.
    epsilon, rho : float, optional
        Another budget, in nats, and with it the kind of noise: one of both at most.
    relation : {"replace_one", "add_remove"}
        Neighbors that the promise is about. The published settings are bounded: one person's record is replaced.
    levels : sequence of str, optional
        Which levels of the settings the tree has, the outermost first. By default a tree of fewer levels goes without
        block groups, then the nation, and so on. The shares of those that remain are scaled to add up to 1.
    facilities : array_like of int, shape (areas of the finest level, 8), optional
        Housing units, then facilities of each type of group quarters: public, and bounds on persons. With them there
        are no minors in nursing facilities in the redistricting data.
    inside : array_like of bool, shape (n_leaves,), optional
        Which leaves lie in American Indian and Alaska Native areas. The redistricting data divide every state into
        these and the remainder, and publish the total of both together.
    **overrides
        Any attribute of `algorithms.topdown.plan.Plan` but the tree.

    Returns
    -------
    TopDown
        A mechanism.

    Raises
    ------
    ValueError
        If there are no such settings, the tree has levels that they have not, or both budgets are given.
    TypeError
        If an override is no attribute.

    References
    ----------
    .. [1] Petti and Flaxman, "Differential privacy in the 2020 US census: what will it do? Quantifying the
       accuracy/privacy tradeoff", 2019: the configuration of the 1940 runs.
    .. [2] US Census Bureau, "2020 Census Production Settings: Redistricting Data (P.L. 94-171)", 2021.

    Examples
    --------
    >>> topdown = preset("pl94-2020", Hierarchy.regular(2, 5))
    >>> topdown.schema.cells, round(topdown.claim.rho, 4), round(topdown.claim.epsilon_at(1e-10), 3)
    (2016, 2.5562, 17.144)
    """
    if name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
    if not isinstance(tree, Hierarchy):
        raise TypeError(f"tree must be a Hierarchy, got {type(tree).__name__}")
    if unknown := sorted(set(overrides) - {one.name for one in fields(Plan)} | set(overrides) & {"tree", "_"}):
        raise TypeError(
            f"override must be epsilon, rho, relation, levels, facilities, inside or of the plan, got {unknown[0]}"
        )
    if epsilon is not None and rho is not None:
        raise ValueError(f"one of epsilon and rho must be given at most, got {epsilon} and {rho}")
    published = PRESETS[name]
    promise: PureDP | ZCDP = type(published.promise)(published.promise.budget, relation)
    if epsilon is not None:
        promise = PureDP(epsilon, relation)
    if rho is not None:
        promise = ZCDP(rho, relation)
    if "budget" in overrides and (epsilon is not None or rho is not None):
        raise ValueError("a budget must be given once: as epsilon, as rho, or as a Budget")
    if name == "micro":
        if any(given is not None for given in (facilities, levels, inside)):
            raise ValueError("micro must go without facilities, levels and inside, got one of them")
        names, shares = [], [Fraction(1, tree.depth + 1)] * (tree.depth + 1)
        queries: list[Mapping[str, Share]] = [{"detailed": 1}] * len(shares)
    else:
        names = _levels(name, published, tree, levels)
        scale = sum((exact_share(level, published.levels[level]) for level in names), Fraction(0))
        shares = [exact_share(level, published.levels[level]) / scale for level in names]
        queries = [published.queries[level] for level in names]
    invariants: list[Invariant | GroupedTotal] = [
        Invariant(query, names.index(level)) for level, query in published.invariants.items() if level in names
    ]
    if inside is not None:
        if name != "pl94-2020" or "state" not in names:
            raise ValueError(f"inside must be given with pl94-2020 and states, got it with {name}, {', '.join(names)}")
        tree, groups = split_spine(tree, names.index("state"), inside)
        invariants = [GroupedTotal(names.index("state"), groups)]
    bounds: tuple[Bounds, ...] = ()
    if facilities is not None:
        if "hhgq" not in published.schema.attributes:
            raise ValueError(f"facilities must be given with settings of persons, got them with {name}")
        bounds = (facility_bounds("hhgq", tree.depth, facilities),)
        if name == "pl94-2020":
            minors = {"hhgq": "nursing", "votingage": published.schema.attributes["votingage"][0]}
            bounds = (*bounds, structural_zeros(published.schema, tree.depth, [minors]))
    settings: dict[str, Any] = {
        "schema": published.schema,
        "tree": tree,
        "budget": Budget(promise, shares, queries),
        "invariants": tuple(invariants),
        "bounds": bounds,
        "passes": {
            j: (
                ("total",),
                tuple(query for query, share in published.queries[level].items() if query != "total" and share),
            )
            for j, level in enumerate(names)
            if level in published.total_first
        },
        "rounding": published.rounding,
        "minimal": published.minimal,
        "solver": published.solver,
    }
    return TopDown(**{**settings, **overrides})


def _levels(name: str, published: Preset, tree: Hierarchy, levels: Sequence[str] | None) -> list[str]:
    """Return which levels of the settings the tree has."""
    if levels is None:
        chosen = list(published.levels)
        for level in published.drop[: max(len(chosen) - tree.depth - 1, 0)]:
            chosen.remove(level)
    else:
        chosen = list(levels)
        if unknown := [level for level in chosen if level not in published.levels]:
            raise ValueError(f"levels must be of {', '.join(published.levels)}, got {unknown[0]!r}")
        if chosen != [level for level in published.levels if level in chosen]:
            raise ValueError(
                f"levels must be in the order {', '.join(published.levels)}, each once, got {', '.join(chosen)}"
            )
    if len(chosen) != tree.depth + 1:
        raise ValueError(
            f"the tree must have the levels of {name}, {', '.join(chosen)}: {len(chosen)}, got {tree.depth + 1}"
        )
    return chosen


def levels_named(name: str, areas: Sequence[str]) -> list[str] | None:
    """Return the levels of the settings that columns are named after, and above them the one before the first."""
    known, plain = list(PRESETS[name].levels), [column.lower().replace("_", " ") for column in areas]
    return [known[known.index(plain[0]) - 1], *plain] if set(plain) <= set(known[1:]) else None


def split_spine(tree: Hierarchy, level: int, inside: ArrayLike) -> tuple[Hierarchy, NDArray[np.int64]]:
    """Divide every area of a level in two: what lies inside a region (marks of the leaves), and the remainder.

    The Bureau divides states so into American Indian and Alaska Native (AIAN) areas and the rest. The total of a state
    is then that of two siblings together (`GroupedTotal`). The new tree has the same leaves in the same order, and
    areas are divided as far down as they hold leaves of both kinds. With it comes, for each of its areas at the level,
    the number of the area that it was part of.
    """
    marks = np.asarray(inside, np.bool_)
    if not 1 <= level <= tree.depth:
        raise ValueError(f"level must be in 1..{tree.depth}, got {level}")
    if marks.shape != (tree.n_leaves,):
        raise ValueError(f"inside must have one mark for each of {tree.n_leaves} leaves, got shape {marks.shape}")
    if tree.leaves.min() < tree.offsets[level]:
        raise ValueError(f"every leaf must lie at level {level} or below, got {tree.label(int(tree.leaves.argmin()))}")
    known: dict[tuple[int, int], int] = {}
    kinds: dict[int, set[bool]] = {}
    for leaf, mark in enumerate(marks):
        for node in tree.path(leaf):
            kinds.setdefault(int(node), set()).add(bool(mark))
    parents, labels, origin = [-1], [tree.labels[0]], [0]
    for leaf, mark in enumerate(marks):
        above = 0
        for j, node in enumerate(map(int, tree.path(leaf)[1:]), start=1):
            key = (node, int(mark) if j >= level else 0)
            if key not in known:
                known[key] = len(parents)
                divided = j >= level and len(kinds[node]) == 2
                labels.append(tree.labels[node] + (", inside" if mark else ", remainder") * divided)
                parents.append(above)
                origin.append(node)
            above = known[key]
    # A node's number in the new tree: as `from_parents` orders them, level by level, siblings side by side. Leaves keep
    # their order only if their numbers ascend, which the numbering on first sight ensures.
    new = Hierarchy.from_parents(parents, [f"{place}\0{label}" for place, label in enumerate(labels)])
    places = np.array([int(label.split("\0")[0]) for label in new.labels])
    named = Hierarchy(new.parent, new.offsets, new.leaves, tuple(labels[place] for place in places))
    return named, np.unique(np.array(origin)[places[named.cut(level)]], return_inverse=True)[1]
