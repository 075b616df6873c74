"""Registers PHSafe and its commands, on the known pairs with the largest loss, or on the user's households."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.noise import Rng
from algorithms.phsafe.budget import PRESETS, Settings, read_config
from algorithms.phsafe.explore import choose, sheet, state_of
from algorithms.phsafe.measurement import PHSafe, joined_to, tabulated
from algorithms.phsafe.neighbors.pairs import Model
from algorithms.phsafe.neighbors.worst import joint_pair
from algorithms.phsafe.population import load_households
from algorithms.phsafe.postprocessing.published import PublishedTables
from algorithms.phsafe.release import Release, release
from algorithms.phsafe.schema import LARGEST_FAMILY
from algorithms.phsafe.tabulation.derive import own_households
from algorithms.phsafe.tabulation.tabulate import household_sizes, tabulation
from algorithms.registry import System, register
from algorithms.release import options as given
from algorithms.release.engine import whole_file
from algorithms.schema import read_named
from audit.explorer.sheet import check_files, explored
from audit.io.files import check_replaceable
from audit.neighbors import NeighborPair

__all__: list[str] = []

USUAL = "us"
FEW = 300  # default runs of an audit of published tables, which are slow
MODELS: tuple[Model, ...] = ("VAL", "DER", "API")
NOTES = {
    "VAL": "both databases are valid",
    "DER": "the model of the paper: the row of a unit may be any function of its members",
    "API": "neighbors as the code declares them: one row of persons and any two rows of units",
}


def _phsafe(
    settings: Settings, *, config: Settings = "", only: Sequence[tuple[str, str]] | None = None, times: float = 1.0
) -> PHSafe:
    """Build PHSafe by settings, with every budget multiplied by `times`."""
    chosen = read_config(config or settings)
    budgets = {table: {level: times * one for level, one in of.items()} for table, of in chosen.privacy_budget.items()}
    return PHSafe(replace(chosen, privacy_budget=budgets), only)


def _published(settings: Settings, *, config: Settings = "") -> PublishedTables:
    return PublishedTables(_phsafe(settings, config=config))


@cache
def _pair(settings: str, model: Model) -> NeighborPair:
    return tabulated(joint_pair(model), read_config(settings))


def _own(
    preset: str, data: str, *, units: str, geo: str, config: str = "", derive: bool = False, recode: str | None = None
) -> System:
    """Return the system on the user's households, to which the households of each pair are added."""
    if preset and config:
        raise ValueError(f"preset and config exclude each other, got {preset} and {config}")
    chosen = read_config(config or preset or USUAL)
    with own_households((data, units, geo), recode, derive=derive) as (engine, frames):
        own = tabulation(*frames, config=chosen, engine=engine)
    if not own.states:
        raise ValueError(f"units must have a housing unit at least, got none in {units}")
    there = replace(chosen, state_filter=own.states)

    def pair(model: Model) -> NeighborPair:
        return joined_to(own, tabulated(joint_pair(model, config=there), there))

    models = MODELS if max(there.tau.values()) <= LARGEST_FAMILY - 2 else MODELS[1:]  # no valid family is larger
    pairs: dict[str, Callable[[], NeighborPair]] = {model: cache(partial(pair, model)) for model in models}
    return replace(_system(preset or USUAL), build=partial(_phsafe, chosen), pairs=pairs)


Derive = Annotated[
    bool,
    typer.Option(
        "--derive", help="Derive household types, family sizes and householders' race from persons. Needs column QSEX."
    ),
]


@given.releasing
def release_phsafe(
    rng: Rng,
    persons: Annotated[
        str | None,
        typer.Option(
            help="Persons, .csv or .parquet, in the Bureau's layout or with --recode; with spark also a URL: hdfs://..."
        ),
    ] = None,
    units: Annotated[str | None, typer.Option(help="Housing units and group quarters.")] = None,
    geo: Annotated[str | None, typer.Option(help="Where the units are; public.")] = None,
    recode: given.Recode = None,
    config: Annotated[
        str, typer.Option(help="us, pr or .json in the Bureau's format; budgets are for a person added or removed.")
    ] = "us",
    bundled: Annotated[
        bool, typer.Option("--bundled", help="Run on the bundled simulated households instead of files.")
    ] = False,
    derive: Derive = False,
    published: Annotated[
        bool, typer.Option("--published", help="Also write PH1 to PH8 post-processed, with 90% intervals.")
    ] = False,
    engine: Annotated[str, typer.Option(help="duckdb, in this process, or spark.")] = "duckdb",
    master: Annotated[
        str, typer.Option(help="Spark master, such as local[2] or spark://host:7077. Default: Spark's settings.")
    ] = "",
    partitions: Annotated[int, typer.Option(help="Work on this many parts one by one, for less memory.")] = 1,
    memory: Annotated[str, typer.Option(help="duckdb's memory limit, such as 4GB.")] = "",
) -> Callable[[Path], Release]:
    """Release the S-DHC tables from persons, units and places, by PHSafe."""
    settings = read_config(config)
    frames: list[Any] = [persons, units, geo]
    if bundled:
        if any(frame is not None for frame in (*frames, recode)) or derive:
            raise ValueError("--bundled goes without --persons, --units, --geo, --recode and --derive")
        households = load_households()
        frames = [households.persons, households.units, households.geo]
    elif None in frames:
        raise ValueError("--persons, --units and --geo are needed, or --bundled")
    reading = {} if recode is None else read_named(recode, "recode")

    def make(out: Path) -> Release:
        opened: dict[str, Any] = {"engine": engine, "memory": memory, "master": master}
        with own_households(frames, recode, derive=derive, unused=not bundled, **opened) as (database, rows):
            options: dict[str, Any] = {"engine": database, "partitions": partitions, "rng": rng}
            return release(*rows, settings, out=out, published=published, reading=reading, **options)

    return make


def explore_phsafe(
    config: Annotated[str, typer.Option(help="Settings to start from: a .json file, us or pr.")] = "us",
    margin: Annotated[
        list[str] | None,
        typer.Option(help="Wanted margin of error, as PH3:state_A-G=20; repeatable. Other levels are left out."),
    ] = None,
    tau: Annotated[list[str] | None, typer.Option(help="Truncation threshold, as PH3=4; repeatable.")] = None,
    save: Annotated[Path | None, typer.Option(help="File for the new settings, in the Bureau's format.")] = None,
    html: given.Html = None,
    xlsx: Annotated[
        Path | None, typer.Option(help="File for the explorer's workbook of formulas, instead of printed tables.")
    ] = None,
    opened: given.Open = False,
    persons: Annotated[str | None, typer.Option(help="Persons; --html shows how many the thresholds omit.")] = None,
    units: Annotated[str | None, typer.Option(help="Housing units and group quarters of --persons.")] = None,
    geo: Annotated[str | None, typer.Option(help="Where the units are.")] = None,
    recode: given.Recode = None,
    derive: Derive = False,
) -> int:
    """Show budgets, margins of error and the total promise of PHSafe, for any levels and thresholds."""
    check_files(html, xlsx)
    if save is not None:
        check_replaceable(save)
    margins: dict[str, dict[str, float]] = {}
    for text in margin or []:
        place, width = given.assigned("--margin", text, "PH3:state_A-G=20")
        table, _, level = place.partition(":")
        margins.setdefault(table, {})[level] = width
    thresholds = {}
    for text in tau or []:
        table, value = given.assigned("--tau", text, "PH3=4")
        if not value.is_integer():
            raise ValueError(f"--tau must be a whole number, got {text!r}")
        if table in thresholds:
            raise ValueError(f"--tau must name a query once, got {table} twice")
        thresholds[table] = int(value)
    settings = choose(config, margins=margins or None, tau=thresholds or None)
    files = (persons, units, geo)
    if any((*files, recode, derive)) and (html is None or not all(files)):
        raise ValueError(
            "--persons, --units and --geo go together, with --recode and --derive if any, and with --html FILE"
        )
    sizes = None
    if all(files):
        with own_households(files, recode, derive=derive) as (engine, rows):
            sizes = household_sizes(*rows, settings, engine=engine)
    explored(sheet(sizes), state_of(settings)).show(html=html, xlsx=xlsx, opened=opened)
    if save is not None:
        with whole_file(save) as file:
            json.dump(settings.to_dict(), file, indent=4)
        print(f"Settings saved in {save}.")
    return 0


def _system(settings: str) -> System:
    return System(
        name="phsafe",
        about="PHSafe: household tables of the 2020 Census, with noise on the cells of nine queries.",
        build=partial(_phsafe, settings),
        pairs={model: partial(_pair, settings, model) for model in MODELS},
        pair_notes=NOTES,
        no_budget="--set times=2 doubles its budgets, and --set config=FILE, with --data, sets each",
        commands={"release": release_phsafe, "explore": explore_phsafe},
        sheet=sheet,
        extra="census",
    )


SYSTEMS = {settings: replace(_system(settings), own=partial(_own, settings)) for settings in PRESETS}
register(replace(SYSTEMS[USUAL], own=partial(_own, ""), presets=SYSTEMS))
register(
    System(
        name="phsafe-published",
        about="PHSafe's tables PH1 to PH8 after post-processing: slow, and so few runs by default.",
        build=partial(_published, USUAL),
        pairs=SYSTEMS[USUAL].pairs,
        pair_notes=NOTES,
        runs=FEW,
        extra="census",
    )
)
