"""What the commands ``plaudit release`` and ``plaudit explore`` run: one subcommand a system."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["run"]

MODEL = "Promised when one person is added or removed (unbounded) or replaced (bounded), in the paper's model."
OPTIONS: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
releases, choices = typer.Typer(**OPTIONS), typer.Typer(**OPTIONS)


def run(command: str, arguments: list[str]) -> int:
    """Run ``plaudit release`` or ``plaudit explore``.

    Parameters
    ----------
    command : {"release", "explore"}
        Which.
    arguments : list of str
        What follows it.

    Returns
    -------
    int
        Exit code: 0, or 2 where nothing was asked for.

    Raises
    ------
    ValueError
        If input is bad; nothing was written.
    """
    app = {"release": releases, "explore": choices}[command]
    try:
        code = app(arguments or ["--help"], prog_name=f"plaudit {command}", standalone_mode=False)
    except ImportError as error:  # an extra that is not installed
        raise ValueError(str(error)) from error
    return int(code or 0) if arguments else 2


@releases.callback()
def _release() -> None:
    """Run a reference implementation on data of your own: tables with secure noise, and what they cost."""


@choices.callback()
def _explore() -> None:
    """See what budgets and thresholds mean for accuracy, and the reverse."""


@releases.command("phsafe")
def release_phsafe(
    out: Annotated[Path, typer.Option(help="Folder for the tables: a new or an empty one.")],
    persons: Annotated[Path | None, typer.Option(help="Persons, .csv or .parquet, in the production layout.")] = None,
    units: Annotated[Path | None, typer.Option(help="Housing units and group quarters.")] = None,
    geo: Annotated[Path | None, typer.Option(help="Where the units are; public.")] = None,
    config: Annotated[str, typer.Option(help="Settings in the Bureau's format: a .json file, us or pr.")] = "us",
    bundled: Annotated[
        bool, typer.Option("--bundled", help="Run on the bundled simulated households instead of files.")
    ] = False,
    derive: Annotated[
        bool,
        typer.Option(
            "--derive",
            help="Derive household types, family sizes and householders' race from the persons, who need QSEX.",
        ),
    ] = False,
    published: Annotated[
        bool, typer.Option("--published", help="Write PH1 to PH8 after post-processing too, with 90% intervals.")
    ] = False,
    engine: Annotated[str, typer.Option(help="duckdb, in this process, or spark.")] = "duckdb",
    partitions: Annotated[int, typer.Option(help="Work on this many parts one by one, for less memory.")] = 1,
    memory: Annotated[str, typer.Option(help="Most memory of duckdb, such as 4GB.")] = "",
    seed: Annotated[
        int | None, typer.Option(help="Seeded noise instead of secure noise: a simulation, not to be published.")
    ] = None,
) -> int:
    """Release the S-DHC tables from persons, units and places, by PHSafe."""
    from rich.console import Console

    from algorithms.files import check_folder
    from algorithms.phsafe.budget import read_config
    from algorithms.phsafe.derive import derive_units
    from algorithms.phsafe.duck import DuckDB
    from algorithms.phsafe.engine import opened
    from algorithms.phsafe.release import release
    from algorithms.phsafe.validate import InvalidHouseholds

    rng, noise = _noise(seed)
    if memory and engine != "duckdb":
        raise ValueError(f"--memory is for duckdb, got the engine {engine}")
    check_folder(out)
    settings = read_config(config)
    given: list[Any] = [persons, units, geo]
    if bundled:
        from algorithms.phsafe.population import load_households

        if any(frame is not None for frame in given) or derive:
            raise ValueError("--bundled goes without --persons, --units, --geo and --derive")
        households = load_households()
        given = [households.persons, households.units, households.geo]
    elif None in given:
        raise ValueError("--persons, --units and --geo are needed, or --bundled")
    own = DuckDB(given, memory=memory) if engine == "duckdb" else engine
    try:
        status = Console(stderr=True).status("validating, counting, drawing noise")
        with _interruptible(), status, opened(own, given) as database:
            if derive:
                given[1] = derive_units(persons, units, engine=database)
            options: dict[str, Any] = {"engine": database, "partitions": partitions, "rng": rng}
            made = release(given[0], given[1], given[2], settings, out=out, published=published, **options)
    except InvalidHouseholds as error:
        for finding in error.findings:
            print(finding, file=sys.stderr)
        number = "one rule" if len(error.findings) == 1 else f"{len(error.findings)} rules"
        raise ValueError(f"the households break {number}, above; nothing was written") from error
    finally:
        if not isinstance(own, str):
            own.close()
    print(made.ledger)
    rows = sum(map(len, made.tables.values()))
    print(f"\n{rows:,} rows in {len(made.tables)} tables, with {noise}, written to {out}.")
    print(MODEL)
    return 0


@releases.command("topdown")
def release_topdown(
    out: Annotated[Path, typer.Option(help="Folder for the release: a new or an empty one.")],
    data: Annotated[
        Path | None, typer.Option(help="Persons, .csv or .parquet: areas and attributes, one a row.")
    ] = None,
    preset: Annotated[str, typer.Option(help="Settings: e2e-1940, pl94-2020, h1 or micro.")] = "e2e-1940",
    areas: Annotated[
        str, typer.Option(help="Columns of areas, the outermost first, such as state,county,district.")
    ] = "",
    geo: Annotated[
        Path | None,
        typer.Option(
            help="Public list of every finest area, one a row. Without it, which areas exist is read from the data and "
            "taken as public: no promise covers it."
        ),
    ] = None,
    count: Annotated[str | None, typer.Option(help="Column of the number of persons that a row stands for.")] = None,
    facilities: Annotated[
        Path | None, typer.Option(help="Public housing units and facilities: areas, type (hhgq) and count.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Another budget, in nats, with geometric noise.")] = None,
    rho: Annotated[float | None, typer.Option(help="Another budget, with discrete Gaussian noise.")] = None,
    relation: Annotated[str, typer.Option(help="Neighbors: replace_one or add_remove.")] = "replace_one",
    jobs: Annotated[int, typer.Option(help="Families of areas that are solved at the same time.")] = 1,
    bundled: Annotated[
        bool, typer.Option("--bundled", help="Run on a small synthetic nation of 1940 instead of files.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Seeded noise instead of secure noise: a simulation, not to be published.")
    ] = None,
) -> int:
    """Release consistent tables and microdata from persons, by TopDown."""
    from rich.console import Console

    from algorithms.files import check_folder
    from algorithms.hierarchy import Hierarchy
    from algorithms.topdown import presets
    from algorithms.topdown.intake import read_facilities, read_histogram
    from algorithms.topdown.population import synthetic_1940
    from algorithms.topdown.release import release

    rng, noise = _noise(seed)
    if preset not in presets.PRESETS:
        raise ValueError(f"preset must be one of {', '.join(presets.PRESETS)}, got {preset!r}")
    check_folder(out)
    options: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "relation": relation, "n_jobs": jobs}
    columns = [name.strip() for name in areas.split(",")]
    if bundled:
        if areas or any(given is not None for given in (data, geo, count, facilities)) or preset != "e2e-1940":
            raise ValueError(
                "--bundled goes without --data, --areas, --geo, --count and --facilities, and with e2e-1940"
            )
        columns = ["state", "county", "district"]
    elif data is None or not areas:
        raise ValueError("--data and --areas are needed, or --bundled")
    options["levels"] = _levels(list(presets.PRESETS[preset].levels), columns)
    presets.preset(preset, Hierarchy.regular(1, len(columns)), **options)  # settings are refused before data are read
    try:
        with _interruptible(), Console(stderr=True).status("counting, drawing noise, estimating"):
            if bundled:
                population = synthetic_1940(0, states=2, counties=3, districts=5)
                tree, histogram = population.tree, population.histogram
                options["facilities"] = population.facilities
            else:
                schema = presets.PRESETS[preset].schema
                tree, histogram = read_histogram(data, schema, columns, count=count, places=geo)
                if facilities is not None:
                    options["facilities"] = read_facilities(facilities, schema, columns, tree)
            topdown = presets.preset(preset, tree, **options)
            listed = bundled or geo is not None
            made = release(topdown, histogram, out=out, rng=rng, areas=columns, preset=preset, listed=listed)
    except RuntimeError as error:  # a solver that does not converge, and no failsafe
        raise ValueError(f"{error}; nothing was written") from error
    print(made.ledger)
    print("\nLevels: " + ", ".join(f"{level} {name}" for level, name in enumerate(("root", *columns))) + ".")
    read = (
        "read from the data. Which areas exist is taken as public, and no promise covers it: --geo takes a public list"
    )
    print(f"Areas: {'from a public list' if listed else read}.")
    failures, families = made.estimate.failures, sum(made.estimate.routes.values())
    print(f"Failsafe: {len(failures):,} of {families:,} families{':' * bool(failures)}")
    print(*(f"  {failure.area}: {failure.reason}" for failure in failures[:5]), sep="\n", end="\n" * bool(failures))
    print(f"Tables of {tree.n_nodes:,} areas and {made.people:,} records, with {noise}, written to {out}.")
    return 0


def _noise(seed: int | None) -> tuple[Any, str]:
    """Return the source of noise of a release, and what it is, in words."""
    import numpy as np

    if seed is None:
        return "secure", "secure noise"
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    return np.random.default_rng(seed), f"noise from seed {seed}: a simulation, not to be published"


@contextmanager
def _interruptible() -> Iterator[None]:
    """Turn an interrupt, or a request to end, into one line: what was half done is removed on the way."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise ValueError("interrupted; nothing was written") from None


def _levels(known: list[str], areas: list[str]) -> list[str] | None:
    """Return the levels of the settings that columns are named after, and above them the one before the first."""
    plain = [name.lower().replace("_", " ") for name in areas]
    return [known[known.index(plain[0]) - 1], *plain] if set(plain) <= set(known[1:]) else None


@choices.command("phsafe")
def explore_phsafe(
    config: Annotated[str, typer.Option(help="Settings to start from: a .json file, us or pr.")] = "us",
    margin: Annotated[
        list[str] | None,
        typer.Option(help="Margin of error wanted, as PH3:state_A-G=20; several times. Other levels are left out."),
    ] = None,
    tau: Annotated[list[str] | None, typer.Option(help="Truncation threshold, as PH3=4; several times.")] = None,
    save: Annotated[Path | None, typer.Option(help="File for the new settings, in the Bureau's format.")] = None,
) -> int:
    """Show budgets, margins of error and the total promise of PHSafe, for any levels and thresholds."""
    import json

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from algorithms.files import whole_file
    from algorithms.phsafe.budget import ledger, read_config
    from algorithms.phsafe.explore import Z_PRODUCTION, choose, explore

    margins: dict[str, dict[str, float]] = {}
    for text in margin or []:
        place, wanted = _assigned("--margin", text, "PH3:state_A-G=20")
        table, _, level = place.partition(":")
        margins.setdefault(table, {})[level] = wanted
    thresholds = {}
    for text in tau or []:
        table, value = _assigned("--tau", text, "PH3=4")
        if not value.is_integer():
            raise ValueError(f"--tau must be a whole number, got {text!r}")
        if table in thresholds:
            raise ValueError(f"--tau must name a query once, got {table} twice")
        thresholds[table] = int(value)
    start = read_config(config)
    z = (
        Z_PRODUCTION if start.privacy_definition == "zcdp" else None
    )  # the formula is that of rho: else the exact margin
    settings = choose(start, margins=margins or None, tau=thresholds or None, z=z)
    if save is not None:
        if save.exists():
            raise ValueError(f"--save must name a new file, got {save}")
        with whole_file(save) as file:
            json.dump(settings.to_dict(), file, indent=4)
    shown = Table(box=SIMPLE_HEAD)
    for title in ("query", "level", "budget", "sigma", "1.645 sigma", "covers", "exact 90% margin"):
        shown.add_column(title)
    for row in explore(settings).rows():
        name, level, budget, _, sigma, formula, coverage, exact = row
        shown.add_row(name, level, f"{budget:.6f}", f"{sigma:.1f}", f"{formula}", f"{coverage:.4f}", f"{exact}")
    console = Console(highlight=False)
    console.print(shown)
    header, *lines = str(ledger(settings)).splitlines()
    total = next(place for place, line in enumerate(lines) if line.startswith("total"))
    print(header, *lines[total:], MODEL, sep="\n")
    if save is not None:
        print(f"Settings saved in {save}.")
    return 0


def _assigned(option: str, text: str, example: str) -> tuple[str, float]:
    """Split NAME=NUMBER."""
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"{option} is written as {example}, got {text!r}") from None
