"""Registers the Census TopDown algorithm and its commands, with presets on a small nation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng
from algorithms.registry import RUNS, System, register
from algorithms.release import options as given
from algorithms.release.engine import Published
from algorithms.release.intake import read_facilities, store_histogram
from algorithms.release.reading import reading_of
from algorithms.release.recoding import recoded
from algorithms.release.spilled import Spilled
from algorithms.topdown import TopDown
from algorithms.topdown import preset as topdown_by
from algorithms.topdown.explorer.sheet import CURVE, MARGIN, PAYS, sheet, sheet_of
from algorithms.topdown.population import synthetic_1940
from algorithms.topdown.presets import PRESETS, SETTINGS, Preset, settings_of
from algorithms.topdown.release import release
from audit.claims import Relation
from audit.explorer.sheet import Sheet, Value, explored
from audit.io.workers import on_backend
from audit.neighbors import NeighborPair

__all__: list[str] = []

TREE = Hierarchy.regular(3, 2)
USUAL = "micro"
FEW = {"e2e-1940": 6_000, "pl94-2020": 100, "h1": 10_000}  # runs in a minute, solved family by family


def _people(name: str) -> NDArray[np.int64]:
    """Return 25 to 41 people in each cell if there are few cells, else up to two."""
    cells = PRESETS[name].schema.cells
    pattern = np.arange(TREE.n_leaves * cells).reshape(TREE.n_leaves, cells) * 5 % 17
    return 25 + pattern if cells < 10 else (16 - pattern) // 8


def _topdown(
    settings: str | Preset,
    tree: Hierarchy,
    levels: Sequence[str] | None,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    relation: Relation = "replace_one",
    shares: Sequence[Fraction] = (),
) -> TopDown:
    """Build TopDown by settings; `shares` replace the settings' shares of the levels, the outermost first."""
    made = topdown_by(settings, tree, levels=levels, relation=relation, epsilon=epsilon, rho=rho)
    return replace(made, budget=replace(made.budget, levels=shares)) if shares else made


def _replaced(name: str) -> NeighborPair:
    """Move a person to the last leaf and cell; only to the last cell if totals of blocks are invariant."""
    people, kept = _people(name), "block" in PRESETS[name].invariants
    return NeighborPair.move_people(people, (0, 0), (0 if kept else TREE.n_leaves - 1, people.shape[1] - 1))


def _added(name: str) -> NeighborPair:
    return NeighborPair.add_people(_people(name), (0, 0))


def _own(
    name: str,
    data: str,
    *,
    areas: str,
    spec: str | None = None,
    geo: str | None = None,
    count: str | None = None,
    recode: str | None = None,
) -> System:
    """Return the system with the settings of a preset or of a file, on the user's persons."""
    settings = settings_of(name or USUAL * (spec is None), spec)
    levels = settings.levels_of(given.columns_of(areas))
    tree, histogram = given.counted(data, settings.schema, areas, geo, count, recode)
    pairs = given.pairs_of(histogram, [settings.schema.query(query).groups for query in settings.invariants.values()])
    if not pairs:
        raise ValueError(f"a person must be able to have another cell within the invariants of {settings.name}")
    together = settings.solver == "batched" and not (settings.invariants or settings.rounding)  # not family by family
    return replace(
        SYSTEMS[USUAL],
        build=partial(_topdown, settings, tree, levels),
        pairs={key: pairs[key] for key in ("replaced", "added") if key in pairs},
        cell_name=partial(given.cell_name, tree, settings.schema),
        runs=RUNS if together else FEW.get(settings.name, max(FEW.values())),
    )


RELEASED = "e2e-1940"  # default settings of a release
REPLACED = "by default for one person replaced"
Epsilon = Annotated[float | None, typer.Option(help=f"Another budget, in nats, with geometric noise; {REPLACED}.")]
Rho = Annotated[float | None, typer.Option(help=f"Another budget, with discrete Gaussian noise; {REPLACED}.")]
Spec = Annotated[
    Path | None, typer.Option(help="JSON file of your settings: attributes, their levels, and what --print-spec shows.")
]
Data = Annotated[Path | None, typer.Option(help="Persons, .csv or .parquet: areas and attributes, one person per row.")]
PrintSpec = Annotated[
    bool, typer.Option("--print-spec", help="Print the settings of --preset as a file for --spec; release nothing.")
]
Areas = Annotated[str, typer.Option(help="Columns of areas, the outermost first, such as state,county,district.")]
Facilities = Annotated[
    Path | None, typer.Option(help="Housing units and facilities: areas, type (hhgq), count. Public.")
]
Neighbors = Annotated[
    str, typer.Option(help="Neighbor relation of the budget: replace_one, or add_remove (less noise).")
]
Backend = Annotated[
    str, typer.Option(help="Where the work runs: loky (processes), threads, dask or ray; or dask=tcp://HOST:8786.")
]
Bundled = Annotated[bool, typer.Option("--bundled", help="Run on a small synthetic nation of 1940 instead of files.")]


@given.releasing
def release_topdown(
    rng: Rng,
    context: typer.Context,
    data: Data = None,
    preset: Annotated[str, typer.Option(help=f"Settings: {RELEASED} (the default), pl94-2020, h1 or micro.")] = "",
    spec: Spec = None,
    print_spec: PrintSpec = False,
    areas: Areas = "",
    geo: given.Geo = None,
    count: given.Count = None,
    recode: given.Recode = None,
    facilities: Facilities = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    relation: Neighbors = "replace_one",
    jobs: Annotated[int, typer.Option(help="Parallel blocks of noise, then parallel families of areas.")] = 1,
    backend: Backend = "",
    bundled: Bundled = False,
    memory: given.Memory = "4GB",
) -> Callable[[Path], Published] | None:
    """Release consistent tables and microdata from persons, by TopDown."""
    settings = settings_of(preset or RELEASED * (spec is None), spec)
    if print_spec and spec is not None:
        raise ValueError(f"--print-spec goes with --preset, got --spec {spec}")
    if print_spec:
        print(json.dumps(SETTINGS[settings.name], indent=4, ensure_ascii=False))
        return None
    context.with_resource(on_backend(backend, jobs))
    files = (data, recode, geo, count, facilities)
    if bundled and (areas or settings.name != RELEASED or any(file is not None for file in files)):
        raise ValueError(
            "--bundled goes without --data, --recode, --areas, --geo, --count and --facilities, and with e2e-1940"
        )
    if not bundled and (data is None or not areas):
        raise ValueError("--data and --areas are needed, or --bundled")
    columns, schema = given.columns_of(areas or "state,county,district"), settings.schema
    budget: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "relation": relation, "n_jobs": jobs}
    built: Callable[..., TopDown] = partial(topdown_by, settings, levels=settings.levels_of(columns), **budget)
    built(Hierarchy.regular(1, len(columns)))  # refuses bad settings before data are read
    persons = None if data is None else recoded("data", data, recode, [*columns, *schema.attributes, count])
    about: dict[str, Any] = {"preset": settings.name, "listed": bundled or geo is not None, "areas": columns}
    about |= {} if persons is None else {"reading": reading_of(persons, schema)}

    def make(out: Path) -> Published:
        with Spilled() as spilled:
            people: Spilled | NDArray[np.int64] = spilled
            if persons is not None:
                tree = store_histogram(spilled, persons, schema, columns, count=count, places=geo, memory=memory)
                units = None if facilities is None else read_facilities(facilities, schema, columns, tree)
            else:
                nation = synthetic_1940(0, states=2, counties=3, districts=5)
                tree, units, people = nation.tree, nation.facilities, nation.histogram
            try:
                return release(built(tree, facilities=units), people, out=out, rng=rng, **about)
            except RuntimeError as error:  # the solver did not converge, and there is no failsafe
                raise ValueError(f"{error}; nothing was written") from error

    return make


def explore_topdown(
    preset: Annotated[str, typer.Option(help="Settings to start from: pl94-2020 (the default), e2e-1940 or h1.")] = "",
    spec: Spec = None,
    areas: Annotated[str, typer.Option(help="With --spec: columns of areas, if it names no levels.")] = "",
    epsilon: Epsilon = None,
    rho: Rho = None,
    margin: Annotated[
        str,
        typer.Option(
            help="Wanted margin of error of a query's measurements, as total:county=20. It sets the total budget."
        ),
    ] = "",
    share: Annotated[
        bool, typer.Option("--share", help="With --margin: keep the total and change the query's share.")
    ] = False,
    html: given.Html = None,
    opened: given.Open = False,
) -> int:
    """Show shares, noise, margins of error and the total promise of TopDown, query by query."""
    if epsilon is not None and rho is not None:
        raise ValueError(f"epsilon and rho exclude each other, got {epsilon} and {rho}")
    state: dict[str, Any] = {}
    if spec is not None:
        shown = sheet_of(settings_of(preset, spec), given.columns_of(areas) if areas else (), epsilon=epsilon, rho=rho)
    elif areas:
        raise ValueError("--areas goes with --spec")
    else:
        shown = sheet()
        state["topdown/all/all/preset"] = preset = preset or next(iter(shown.presets))
        if preset not in shown.presets:
            raise ValueError(f"preset must be one of {', '.join(shown.presets)}, got {preset!r}")
        for privacy, budget in (("puredp", epsilon), ("zcdp", rho)):
            if budget is not None:
                state |= {"topdown/all/all/privacy": privacy, "topdown/all/all/budget": budget}
    explored(shown, state | _wanted(shown, margin, share)).show(html=html, opened=opened)
    return 0


def _wanted(shown: Sheet, margin: str, share: bool) -> dict[str, Value]:
    """Return the settings of the sheet for a requested margin of error."""
    if not margin:
        if share:
            raise ValueError("--share goes with --margin")
        return {}
    name, width = given.assigned("--margin", margin, "total:county=20")
    row = next(one for one in shown.inputs if one.key == CURVE)
    rows = {":".join(shown.words.get(f"topdown.{part}", part) for part in key.split("/")): key for key in row.choices}
    if name not in rows:
        levels = ", ".join(dict.fromkeys(known.partition(":")[2] for known in rows))
        raise ValueError(
            f"--margin must name a query at one of the levels {levels}, as total:county=20, got {margin!r}"
        )
    wanted = int(width) if width.is_integer() else width
    return {CURVE: rows[name], MARGIN: wanted, PAYS: "share" if share else "total"}


def _system(name: str) -> System:
    """Return the system with the settings of a preset; with invariants, its pairs add nobody."""
    pairs = {"replaced": partial(_replaced, name)}
    if not PRESETS[name].invariants:
        pairs["added"] = partial(_added, name)
    return System(
        name="topdown",
        about="The Census TopDown algorithm: noisy measurements of every level, made into tables that agree. "
        "Presets have the Bureau's settings, not its solver or its optimized areas.",
        build=partial(_topdown, name, TREE, None),
        pairs=pairs,
        cell_name=partial(given.cell_name, TREE, PRESETS[name].schema),
        stages=("measurements", "estimate", "rounded", "microdata"),
        runs=FEW.get(name, RUNS),
        own=partial(_own, name),
        commands={"release": release_topdown, "explore": explore_topdown},
        sheet=sheet,
        extra="census",
    )


SYSTEMS = {name: _system(name) for name in PRESETS}
register(replace(SYSTEMS[USUAL], own=partial(_own, ""), presets=SYSTEMS))
