"""The commands ``plaudit release topdown`` and ``plaudit explore topdown``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.tables.commands import (
    Count,
    Geo,
    Html,
    Memory,
    Open,
    Recode,
    Seed,
    assigned,
    columns_of,
    noise_of,
    releasing,
)
from audit.explorer.sheet import Sheet, Value
from audit.io.backends import Address, Backend, on_backend

__all__ = ["explore_topdown", "release_topdown"]

USUAL = "e2e-1940"
REPLACED = "by default for one person replaced"
Epsilon = Annotated[float | None, typer.Option(help=f"Another budget, in nats, with geometric noise; {REPLACED}.")]
Rho = Annotated[float | None, typer.Option(help=f"Another budget, with discrete Gaussian noise; {REPLACED}.")]
Spec = Annotated[
    Path | None, typer.Option(help="JSON file of your settings: attributes, their levels, and what --print-spec shows.")
]


@releasing
def release_topdown(
    context: typer.Context,
    out: Annotated[Path | None, typer.Option(help="Folder for the release: a new or an empty one.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Persons, .csv or .parquet: areas and attributes, one person per row.")
    ] = None,
    preset: Annotated[str, typer.Option(help=f"Settings: {USUAL} (the default), pl94-2020, h1 or micro.")] = "",
    spec: Spec = None,
    print_spec: Annotated[
        bool, typer.Option("--print-spec", help="Print the settings of --preset as a file for --spec; release nothing.")
    ] = False,
    areas: Annotated[
        str, typer.Option(help="Columns of areas, the outermost first, such as state,county,district.")
    ] = "",
    geo: Geo = None,
    count: Count = None,
    recode: Recode = None,
    facilities: Annotated[
        Path | None, typer.Option(help="Housing units and facilities: areas, type (hhgq), count. Public.")
    ] = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    relation: Annotated[
        str, typer.Option(help="Neighbor relation of the budget: replace_one, or add_remove (less noise).")
    ] = "replace_one",
    jobs: Annotated[int, typer.Option(help="Parallel blocks of noise, then parallel families of areas.")] = 1,
    backend: Backend = "",
    address: Address = "",
    bundled: Annotated[
        bool, typer.Option("--bundled", help="Run on a small synthetic nation of 1940 instead of files.")
    ] = False,
    memory: Memory = "4GB",
    seed: Seed = None,
) -> int:
    """Release consistent tables and microdata from persons, by TopDown."""
    from algorithms.hierarchy import Hierarchy
    from algorithms.tables.intake import read_facilities, store_histogram
    from algorithms.tables.intake.reading import reading_of
    from algorithms.tables.recoding import recoded
    from algorithms.tables.spilled import Spilled
    from algorithms.topdown import presets
    from algorithms.topdown.population import synthetic_1940
    from algorithms.topdown.release import release
    from audit.io.terminal import at_work

    settings = presets.settings_of(preset or USUAL * (spec is None), spec)
    if print_spec:
        if spec is not None:
            raise ValueError(f"--print-spec goes with --preset, got --spec {spec}")
        print(json.dumps(presets.SETTINGS[settings.name], indent=4, ensure_ascii=False))
        return 0
    if out is None:
        raise ValueError("Missing option '--out'")
    rng, noise = noise_of(seed)
    context.with_resource(on_backend(backend, address, jobs))
    options: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "relation": relation, "n_jobs": jobs}
    columns = [name.strip() for name in areas.split(",")]
    if bundled:
        files = (data, recode, geo, count, facilities)
        if areas or any(given is not None for given in files) or settings.name != USUAL:
            raise ValueError(
                "--bundled goes without --data, --recode, --areas, --geo, --count and --facilities, and with e2e-1940"
            )
        columns = ["state", "county", "district"]
    elif data is None or not areas:
        raise ValueError("--data and --areas are needed, or --bundled")
    options["levels"] = settings.levels_of(columns)
    presets.preset(settings, Hierarchy.regular(1, len(columns)), **options)  # settings are refused before data are read
    try:
        with at_work("counting, drawing noise, estimating"), Spilled() as spilled:
            histogram: Any = spilled
            reading: dict[str, Any] = {}
            if data is None:
                population = synthetic_1940(0, states=2, counties=3, districts=5)
                tree, histogram = population.tree, population.histogram
                options["facilities"] = population.facilities
            else:
                schema = settings.schema
                persons = recoded("data", data, recode, [*columns, *schema.attributes, count])
                reading = reading_of(persons, schema)
                tree = store_histogram(spilled, persons, schema, columns, count=count, places=geo, memory=memory)
                if facilities is not None:
                    options["facilities"] = read_facilities(facilities, schema, columns, tree)
            topdown = presets.preset(settings, tree, **options)
            listed = bundled or geo is not None
            about: dict[str, Any] = {"preset": settings.name, "listed": listed, "reading": reading}
            record = release(topdown, histogram, out=out, rng=rng, areas=columns, **about)
    except RuntimeError as error:  # a solver that does not converge, and no failsafe
        raise ValueError(f"{error}; nothing was written") from error
    print(record.ledger)
    names = (presets.kept_levels(settings, tree, options["levels"])[0], *columns)
    print("\nLevels: " + ", ".join(f"{level} {name}" for level, name in enumerate(names)) + ".")
    read = (
        "read from the data. Which areas exist is taken as public, and no promise covers it: --geo takes a public list"
    )
    print(f"Areas: {'from a public list' if listed else read}.")
    failures, families = record.outcome.failures, sum(record.outcome.routes.values())
    print(f"Failsafe: {len(failures):,} of {families:,} families{':' * bool(failures)}")
    print(*(f"  {failure.area}: {failure.reason}" for failure in failures[:5]), sep="\n", end="\n" * bool(failures))
    print(f"Tables of {tree.n_nodes:,} areas and {record.people:,} records, with {noise}, written to {out}.")
    return 0


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
    html: Html = None,
    opened: Open = False,
) -> int:
    """Show shares, noise, margins of error and the total promise of TopDown, query by query."""
    from algorithms.topdown.explorer.sheet import sheet, sheet_of
    from algorithms.topdown.presets import settings_of
    from audit.explorer.sheet import Explored

    if epsilon is not None and rho is not None:
        raise ValueError(f"epsilon and rho exclude each other, got {epsilon} and {rho}")
    if spec is not None:
        own = sheet_of(settings_of(preset, spec), columns_of(areas) if areas else (), epsilon=epsilon, rho=rho)
        Explored(own, _wanted(own, margin, share)).show(html=html, opened=opened)
        return 0
    if areas:
        raise ValueError("--areas goes with --spec")
    shown = sheet()
    preset = preset or next(iter(shown.presets))
    if preset not in shown.presets:
        raise ValueError(f"preset must be one of {', '.join(shown.presets)}, got {preset!r}")
    state: dict[str, Any] = {"topdown/all/all/preset": preset}
    if epsilon is not None:
        state |= {"topdown/all/all/privacy": "puredp", "topdown/all/all/budget": epsilon}
    if rho is not None:
        state |= {"topdown/all/all/privacy": "zcdp", "topdown/all/all/budget": rho}
    Explored(shown, state | _wanted(shown, margin, share)).show(html=html, opened=opened)
    return 0


def _wanted(shown: Sheet, margin: str, share: bool) -> dict[str, Value]:
    """Return the settings that a margin of error wanted is."""
    from algorithms.topdown.explorer.sheet import CURVE, MARGIN, PAYS

    if not margin:
        if share:
            raise ValueError("--share goes with --margin")
        return {}
    name, width = assigned("--margin", margin, "total:county=20")
    row = next(one for one in shown.inputs if one.key == CURVE)
    rows = {":".join(shown.words.get(f"topdown.{part}", part) for part in key.split("/")): key for key in row.choices}
    if name not in rows:
        levels = ", ".join(dict.fromkeys(known.partition(":")[2] for known in rows))
        raise ValueError(
            f"--margin must name a query at one of the levels {levels}, as total:county=20, got {margin!r}"
        )
    wanted = int(width) if width.is_integer() else width
    return {CURVE: rows[name], MARGIN: wanted, PAYS: "share" if share else "total"}
