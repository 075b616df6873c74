"""Named presets (the Census Bureau's, and a small one for audits) and settings from JSON files in the same format."""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from algorithms.hierarchy import Hierarchy
from algorithms.release.ledger import exact_shares
from algorithms.schema import DETAILED, Grouping, Schema, read_named, read_specification
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import Bounds, Invariant, facility_bounds, structural_zeros
from algorithms.topdown.mechanism import TopDown
from algorithms.topdown.plan import Passes
from audit.arguments import whole_number
from audit.claims import ZCDP, PureDP, Relation

__all__ = ["FORMS", "PRESETS", "SETTINGS", "Preset", "kept_levels", "preset", "settings_of"]


@dataclass(frozen=True)
class Preset:
    """Settings of a release, level by level, in the format of a file (`FORMS`)."""

    name: str
    schema: Schema
    about: str = ""  # the release and its source
    promise: PureDP | ZCDP | None = None  # promise of the published release
    levels: Mapping[str, Fraction] = field(default_factory=dict)  # share of each level, the outermost first
    queries: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)  # shares of the queries at each level
    drop: Sequence[str] = ()  # levels that a smaller tree omits, in this order
    invariants: Mapping[str, str] = field(default_factory=dict)  # by level, the query that is published exactly
    total_first: Sequence[str] = ()  # levels at which the total is fitted first, in a separate pass
    rounding: Passes | Mapping[str, Passes] = ()  # passes of the rounding, for all levels or by level; none: by cell
    minimal: str | None = None  # query of the failsafe
    persons_a_unit: tuple[int, int] = (0, 99)  # fewest and most in a housing unit, if facilities are given
    facility_zeros: Sequence[Mapping[str, str]] = ()  # impossible levels of attributes, if facilities are given
    solver: str = "batched"

    def queries_at(self, level: str) -> Mapping[str, Fraction]:
        """Return the shares of the queries at a level."""
        return self.queries.get(level, {DETAILED: Fraction(1)})

    def levels_of(self, areas: Sequence[str]) -> list[str] | None:
        """Return the levels with the names of these columns, and the level above; None if other names are used."""
        known, columns = list(self.levels), [_plain(column) for column in areas]
        if not known:
            return ["nation", *areas]
        plain = [_plain(level) for level in known]
        if not self.drop and columns != plain[1:]:
            raise ValueError(
                f"columns of areas must be named after the levels of {self.name} below {known[0]}, which is all areas "
                f"together: {', '.join(known[1:]) or 'none'}; got {', '.join(areas)}"
            )
        if not set(columns) <= set(plain[1:]):
            return None
        places = [plain.index(column) for column in columns]
        return [known[place] for place in (places[0] - 1, *places)]


KINDS: Mapping[str, type[PureDP | ZCDP]] = {"epsilon": PureDP, "rho": ZCDP}
FORMS: Mapping[str, Any] = {
    "about": "what release, which source",
    "promise": {"epsilon": 1},
    "attributes": {},  # see `algorithms.schema.read_specification`
    "groupings": {"adult": ("age", {"minor": ["0-17"], "major": ["18-64", "65+"]})},
    "levels": {"nation": 1},
    "queries": {"nation": {"detailed": 1}},
    "drop": ["nation"],
    "invariants": {"state": "total"},
    "total_first": ["state"],
    "rounding": [["total"], ["detailed"]],
    "minimal": "total",
    "persons_a_unit": (0, 99),
    "facility_zeros": [{"hhgq": "nursing"}],
    "solver": "piqp",
}
"""The keys of a file of settings, with an example of each; a tuple is a list of fixed length."""


def settings_of(preset: str = "", spec: str | os.PathLike[str] | None = None) -> Preset:
    """Return the settings of a preset, or of a .json file with attributes and other keys of `FORMS`."""
    if spec is not None:
        if preset:
            raise ValueError(f"preset and spec exclude each other, got {preset} and {os.fspath(spec)}")
        return _read(Path(spec).name, read_named(spec, "specification"))
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    return PRESETS[preset]


def _read(name: str, content: Any) -> Preset:
    if not isinstance(content, dict):
        raise ValueError(f'{name} must hold an object, {{"attributes": ...}}, got {reprlib.repr(content)}')
    if unknown := [key for key in content if key not in FORMS]:
        raise ValueError(f"keys of {name} must be of {', '.join(FORMS)}, got {unknown[0]!r}")
    schema = read_specification(content)
    settings = {key: value for key, value in content.items() if key != "attributes"}
    for key, value in settings.items():
        example = {"state": FORMS[key]} if key == "rounding" and isinstance(value, dict) else FORMS[key]
        if not _fits(value, example):
            form = json.dumps(example)
            raise ValueError(f"{key} in {name} must have the form {form}, got {reprlib.repr(value)}")
    groupings = {key: Grouping(*parts) for key, parts in settings.pop("groupings", {}).items()}
    schema = replace(schema, groupings=groupings)
    if "promise" in settings:
        settings["promise"] = _promise(name, settings["promise"])
    if "persons_a_unit" in settings:
        words, (fewest, most) = f"persons_a_unit in {name}", settings["persons_a_unit"]
        settings["persons_a_unit"] = (whole_number(words, fewest, least=0), whole_number(words, most, least=fewest))
    if "levels" in settings:
        settings["levels"] = exact_shares("the levels", settings["levels"])
    queries = settings.pop("queries", {}).items()
    settings["queries"] = {level: exact_shares("the queries", shares, f" at {level}") for level, shares in queries}
    return Preset(name, schema, **settings)


def _fits(value: Any, form: Any) -> bool:
    """Return whether a JSON value has the form of an example."""
    if isinstance(form, tuple):
        return isinstance(value, list) and len(value) == len(form) and all(map(_fits, value, form))
    if isinstance(form, list):
        return isinstance(value, list) and all(_fits(one, form[0]) for one in value)
    if isinstance(form, dict):
        (example, *_) = form.values()
        return isinstance(value, dict) and all(_fits(one, example) for one in value.values())
    return type(value) in ((int, float, str) if isinstance(form, int) else (str,))


def _promise(name: str, given: Mapping[str, Any]) -> PureDP | ZCDP:
    try:
        ((kind, budget),) = given.items()
        number = float(Fraction(budget) if "/" in str(budget) else budget)
        return KINDS[kind](number, "replace_one")
    except (ArithmeticError, KeyError, ValueError):
        example = '{"epsilon": number} or {"rho": number}'
        raise ValueError(f"promise in {name} must be {example}, 0 or more, got {reprlib.repr(given)}") from None


def _plain(name: str) -> str:
    return name.lower().replace("_", " ")


SETTINGS: Mapping[str, Any] = json.loads(resources.files(__package__).joinpath("presets.json").read_text("utf-8"))
"""The published settings, in the format of files."""
PRESETS: Mapping[str, Preset] = {name: _read(name, content) for name, content in SETTINGS.items()}
"""The published settings by name."""
PERSON_QUERIES = tuple(PRESETS["pl94-2020"].queries["nation"])


def preset(
    name: str | Preset,
    tree: Hierarchy,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    relation: Relation = "replace_one",
    levels: Sequence[str] | None = None,
    facilities: ArrayLike | None = None,
    **overrides: Any,
) -> TopDown:
    """Return TopDown with published settings, for your tree.

    Parameters
    ----------
    name : str or Preset
        A name in `PRESETS`: ``"e2e-1940"`` (Petti and Flaxman, "Differential privacy in the 2020 US census: what will
        it do? Quantifying the accuracy/privacy tradeoff", 2019), ``"pl94-2020"`` (US Census Bureau, "2020 Census
        Production Settings: Redistricting Data (P.L. 94-171)", 2021), ``"h1"`` or ``"micro"``; or a result of
        `settings_of`.
    epsilon, rho : float, optional
        Another budget, in nats, which also sets the kind of noise. Give at most one of the two.
    relation : {"replace_one", "add_remove"}
        Neighbor relation of the promise. The published settings are bounded: one person's record is replaced.
    levels : sequence of str, optional
        The levels of the settings that the tree has, the outermost first; for settings without levels, their names. By
        default a tree of fewer levels omits block groups, then the nation, and so on. The shares of the remaining
        levels are scaled to add up to 1.
    facilities : array_like of int, shape (areas of the finest level, 8), optional
        Public numbers of housing units, then of facilities of each type of group quarters, which bound persons. A
        housing unit has 0 to 99,999 persons in the redistricting data, and a nursing facility has no minors.
    **overrides
        Attributes of `TopDown` except the tree.
    """
    published = name if isinstance(name, Preset) else settings_of(name)
    promise, names = _chosen_promise(published, epsilon, rho, relation), kept_levels(published, tree, levels)
    number, rounding = {level: j for j, level in enumerate(names)}, published.rounding
    parts = published.levels or dict.fromkeys(names, Fraction(1, len(names)))
    scale = sum((parts[level] for level in names), Fraction()) or Fraction(1)
    shares, queries = [parts[level] / scale for level in names], [published.queries_at(level) for level in names]
    rest = {
        j: tuple(query for query, share in own.items() if query != "total" and share) for j, own in enumerate(queries)
    }
    exact = ((query, number[level]) for level, query in published.invariants.items() if level in number)
    settings: dict[str, Any] = {
        "schema": published.schema,
        "tree": tree,
        "budget": Budget(promise, shares, queries),
        "invariants": tuple(Invariant(*given) for given in exact),
        "bounds": _bounds(published, tree, facilities),
        "passes": {j: (("total",), rest[j]) for level, j in number.items() if level in published.total_first},
        "rounding": {number[level]: passes for level, passes in rounding.items() if level in number}
        if isinstance(rounding, Mapping)
        else rounding,
        "minimal": published.minimal,
        "solver": published.solver,
    }
    return TopDown(**{**settings, **overrides})


def _chosen_promise(published: Preset, epsilon: float | None, rho: float | None, relation: Relation) -> PureDP | ZCDP:
    if epsilon is not None and rho is not None:
        raise ValueError(f"epsilon and rho exclude each other, got {epsilon} and {rho}")
    if epsilon is not None:
        return PureDP(epsilon, relation)
    if rho is not None:
        return ZCDP(rho, relation)
    if published.promise is None:
        raise ValueError(f"a budget is needed, --epsilon or --rho: {published.name} has no promise")
    return type(published.promise)(published.promise.budget, relation)


def _bounds(published: Preset, tree: Hierarchy, facilities: ArrayLike | None) -> tuple[Bounds, ...]:
    """Return the bounds on residents that follow from housing units and facilities."""
    if facilities is None:
        return ()
    if "hhgq" not in published.schema.attributes:
        raise ValueError(f"facilities must be given with settings of persons, got them with {published.name}")
    bounds = facility_bounds("hhgq", tree.depth, facilities, published.persons_a_unit)
    if not published.facility_zeros:
        return (bounds,)
    return bounds, structural_zeros(published.schema, tree.depth, published.facility_zeros)


def kept_levels(published: Preset, tree: Hierarchy, levels: Sequence[str] | None) -> list[str]:
    """Return the levels of the settings that the tree has."""
    if not isinstance(tree, Hierarchy):
        raise TypeError(f"tree must be a Hierarchy, got {type(tree).__name__}")
    unnamed = ("nation", *(f"level {j}" for j in range(1, tree.depth + 1)))
    known = list(published.levels or levels or unnamed)
    rounded = published.rounding if isinstance(published.rounding, Mapping) else ()
    named = (*published.queries, *published.invariants, *published.total_first, *rounded, *published.drop)
    if unknown := [level for level in (*named, *(levels or ())) if level not in known]:
        raise ValueError(f"levels must be of {', '.join(known)}, got {unknown[0]!r}")
    chosen = list(levels or known)
    if levels is None:
        for level in published.drop[: max(len(chosen) - tree.depth - 1, 0)]:
            chosen.remove(level)
    elif chosen != [level for level in known if level in chosen]:
        raise ValueError(f"levels must be in the order {', '.join(known)}, each once, got {', '.join(chosen)}")
    if len(chosen) != tree.depth + 1:
        raise ValueError(
            f"the tree must have the levels of {published.name}, {', '.join(chosen)}: {len(chosen)}, "
            f"got {tree.depth + 1}"
        )
    return chosen
