"""The class and the registry of systems: a system has a name, mechanisms, pairs of neighbors to audit, and commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from inspect import Parameter, Signature, signature
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from algorithms.extras import check_extra
from algorithms.hierarchy import Hierarchy
from algorithms.population import EXTRACTS, load
from audit.neighbors import NeighborPair

__all__ = ["REGISTERED", "RUNS", "System", "as_it_is", "counting", "register"]

Group = Literal["reference implementations", "benchmarks", "known bugs"]
USUAL = "morocco"  # extract whose tree is the default
RUNS, FEWEST = 200_000, 200  # default runs of an audit; fewest runs of a slow system


@dataclass(frozen=True, kw_only=True)
class System:
    """A system to audit and, if it has commands, to use. Nothing is built or run before it is needed.

    Attributes
    ----------
    build : callable
        Returns the mechanism, which has a ``.claim``, from keywords with defaults, which ``plaudit audit --set`` sets.
        Estimates need the mechanism's method ``exact(data)``: an output without noise.
    pairs, pair_notes : mapping of str to callable, mapping of str to str
        Bundled pairs of neighbors by name, the default first, and descriptions of pairs whose names are not enough.
    stages : tuple of str
        Names that the mechanism's method ``stage(name)`` accepts: stages that are mechanisms by themselves.
    of_counts : bool
        Whether the system takes any counts of people, with the keyword ``tree``, which has an area for each count.
        Other systems are audited on their own pairs.
    below : float
        Epsilon must be below this.
    runs : int
        Default number of runs of an audit, over both databases, so that it takes less than a minute.
    presets : mapping of str to System
        The same system under other named settings, with pairs that go with them.
    no_budget : str
        How to set the budget of a system that takes neither epsilon nor rho.
    cell_name : callable, optional
        Describes a cell of the databases in words, given its index.
    own : callable, optional
        Returns the same system on the user's persons, from a file and keywords as in ``plaudit release``.
    commands, sheet : mapping of str to callable, callable
        Functions of ``plaudit release NAME`` and ``plaudit explore NAME``, with typed options; the latter's `Sheet`.
    extra : str
        The extra of plaudit that the system needs, except for ``plaudit explore``.
    """

    name: str
    about: str
    build: Callable[..., Any]
    pairs: Mapping[str, Callable[[], NeighborPair]]
    pair_notes: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[str, ...] = ()
    of_counts: bool = False
    below: float = math.inf
    runs: int = RUNS
    presets: Mapping[str, System] = field(default_factory=dict)
    no_budget: str = ""
    cell_name: Callable[..., str] | None = None
    own: Callable[..., System] | None = None
    commands: Mapping[str, Callable[..., int]] = field(default_factory=dict)
    sheet: Callable[[], Any] | None = None
    extra: str = ""
    group: Group = "reference implementations"

    @property
    def settings(self) -> Mapping[str, Parameter]:
        """Keywords that `mechanism` takes besides the stage, with their defaults."""
        return signature(self.build, eval_str=True).parameters

    @property
    def claim(self) -> Any:
        """Promise of the mechanism with its default settings."""
        return self.mechanism().claim

    def mechanism(self, *, stage: str = "", **settings: Any) -> Any:
        """Return the mechanism, or one stage of it."""
        self.check_installed()
        if stage:
            self._check_known("stage", stage, self.stages)
        built = self.build(**settings)
        return built.stage(stage) if stage else built

    def pair(self, name: str = "") -> NeighborPair:
        """Return a bundled pair of neighbors, by default the first."""
        self.check_installed()
        if name:
            self._check_known("pair", name, self.pairs)
        return self.described(self.pairs[name or next(iter(self.pairs))]())

    def described(self, pair: NeighborPair) -> NeighborPair:
        """Return a pair of counts; if the system has words for cells, the label also names the cells that differ."""
        if self.cell_name is None:
            return pair
        change = np.subtract(pair.y, pair.x)
        places = sorted(np.argwhere(change).tolist(), key=lambda place: change[tuple(place)])  # losing cell first
        cells = " to ".join(self.cell_name(*place) for place in places)
        return replace(pair, label=f"{pair.label}: {cells}")

    def preset(self, name: str) -> System:
        """Return the system with the settings of that name."""
        self._check_known("preset", name, self.presets)
        return self.presets[name]

    def _check_known(self, kind: str, name: str, known: Collection[str]) -> None:
        if not known:
            raise ValueError(f"{self.name} has no {kind}s, got {name!r}")
        if name not in known:
            raise ValueError(f"{kind} of {self.name} must be one of {', '.join(known)}, got {name!r}")

    def on(self, data: str, **options: Any) -> System:
        """Return the system on the user's persons, with fewer runs if their histogram is larger."""
        self.check_installed()
        if self.own is None:
            raise ValueError(f"{self.name} reads no file of persons, got {data}")
        takes = signature(self.own).parameters
        if unknown := options.keys() - takes.keys():
            raise ValueError(f"{self.name} takes no {min(unknown)}")
        needed = [name for name, one in takes.items() if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
        if missing := [name for name in needed if name not in options]:
            raise ValueError(f"{self.name} needs {missing[0]} with data of your own, as `plaudit release` does")
        described = self.own(data, **options)
        sizes = [np.size(system.pair().x) for system in (self, described)]
        return replace(described, runs=min(described.runs, max(FEWEST, described.runs * sizes[0] // sizes[1])))

    def check_installed(self) -> None:
        """Refuse, with an ImportError of one line, to run without the extra that it needs."""
        if self.extra:
            check_extra(self.extra, self.name)


REGISTERED: dict[str, System] = {}
"""Systems by name, in the order of registration; `algorithms.systems.systems` imports all of them."""


def register(system: System) -> None:
    """Register a system with a unique name."""
    if REGISTERED.setdefault(system.name, system) is not system:
        raise ValueError(f"every system must have a name of its own, and {system.name!r} is registered already")


def counting(
    name: str,
    kind: Callable[..., Any],
    *,
    below: float = math.inf,
    commands: Mapping[str, Callable[..., int]] = MappingProxyType({}),
    group: Group = "reference implementations",
    **settings: Any,
) -> System:
    """Return the system of a mechanism on counts: `kind` takes a budget first, ``tree`` if it has one, and `settings`.

    The first docstring line of `kind` is its description. Each pair adds one person to a bundled population.
    """
    budget, *others = signature(kind).parameters
    usual = partial(kind, **{budget: 0.5 if budget == "rho" else min(1.0, below / 2)}, **settings)

    def build(*, tree: Hierarchy | None = None, **given: Any) -> Any:
        if "tree" in others:
            given["tree"] = load(USUAL)[0] if tree is None else tree
        return usual(**given)

    of_kind = signature(usual, eval_str=True).parameters.items()
    free = [one for key, one in of_kind if key not in ("tree", *settings)]
    tree = Parameter("tree", Parameter.KEYWORD_ONLY, default=None, annotation=Hierarchy | None)
    build.__signature__ = Signature([*free, tree])  # type: ignore[attr-defined]
    about = (kind.__doc__ or "").strip().partition("\n")[0]
    if settings:
        about = f"{about.removesuffix('.')} ({', '.join(f'{key}={value!r}' for key, value in settings.items())})."
    pairs = {data: partial(_one_person_more, data) for data in sorted(EXTRACTS, reverse=True)}
    common: dict[str, Any] = {"about": about, "commands": commands, "group": group}
    return System(name=name, build=build, pairs=pairs, of_counts=True, below=below, **common)


def as_it_is(mechanism: Any) -> Callable[..., Any]:
    """Return a function that returns this mechanism; for a dataclass, its keywords replace the values of fields."""
    if not is_dataclass(mechanism):
        return lambda: mechanism
    kind: Any = type(mechanism)
    return partial(kind, **{one.name: getattr(mechanism, one.name) for one in fields(kind) if one.init})


def _one_person_more(data: str) -> NeighborPair:
    tree, counts = load(data)
    pair = NeighborPair.add_people(counts, 0)
    return NeighborPair(pair.x, pair.y, pair.relation, label=f"1 person added to {tree.label(0)}")
