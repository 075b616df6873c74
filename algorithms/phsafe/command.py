"""The commands ``plaudit release phsafe`` and ``plaudit explore phsafe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.phsafe.budget import Config
from algorithms.tables.commands import Html, Open, Out, Recode, Seed, Xlsx, assigned, noise_of, releasing

__all__ = ["explore_phsafe", "release_phsafe"]

Derive = Annotated[
    bool,
    typer.Option(
        "--derive", help="Derive household types, family sizes and householders' race from persons. Needs column QSEX."
    ),
]


@releasing
def release_phsafe(
    out: Out,
    persons: Annotated[
        str | None,
        typer.Option(
            help="Persons, .csv or .parquet, in the Bureau's layout or with --recode; with spark also a URL: hdfs://..."
        ),
    ] = None,
    units: Annotated[str | None, typer.Option(help="Housing units and group quarters.")] = None,
    geo: Annotated[str | None, typer.Option(help="Where the units are; public.")] = None,
    recode: Recode = None,
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
    seed: Seed = None,
) -> int:
    """Release the S-DHC tables from persons, units and places, by PHSafe."""
    from algorithms.phsafe.budget import read_config
    from algorithms.phsafe.release import release
    from algorithms.phsafe.tabulation.derive import own_households
    from algorithms.schema import read_named
    from audit.io.terminal import at_work

    rng, noise = noise_of(seed)
    settings = read_config(config)
    frames: list[Any] = [persons, units, geo]
    if bundled:
        from algorithms.phsafe.population import load_households

        if any(frame is not None for frame in (*frames, recode)) or derive:
            raise ValueError("--bundled goes without --persons, --units, --geo, --recode and --derive")
        households = load_households()
        frames = [households.persons, households.units, households.geo]
    elif None in frames:
        raise ValueError("--persons, --units and --geo are needed, or --bundled")
    status = at_work("validating, counting, drawing noise")
    whose = own_households(
        frames, recode, derive=derive, unused=not bundled, engine=engine, memory=memory, master=master
    )
    with status, whose as (database, rows):
        options: dict[str, Any] = {"engine": database, "partitions": partitions, "rng": rng}
        reading = {} if recode is None else read_named(recode, "recode")
        made = release(*rows, settings, out=out, published=published, reading=reading, **options)
    print(made.ledger)
    if published and made.coverage:
        print(f"\n{made.coverage}")
    number, more = sum(map(len, made.files.values())), len(made.files) - len(made.tables)
    after = f", {more} of them after post-processing" if more else ""
    print(f"\n{number:,} rows in {len(made.files)} tables{after}, with {noise}, written to {out}.")
    return 0


def explore_phsafe(
    config: Annotated[str, typer.Option(help="Settings to start from: a .json file, us or pr.")] = "us",
    margin: Annotated[
        list[str] | None,
        typer.Option(help="Wanted margin of error, as PH3:state_A-G=20; repeatable. Other levels are left out."),
    ] = None,
    tau: Annotated[list[str] | None, typer.Option(help="Truncation threshold, as PH3=4; repeatable.")] = None,
    save: Annotated[Path | None, typer.Option(help="File for the new settings, in the Bureau's format.")] = None,
    html: Html = None,
    xlsx: Xlsx = None,
    opened: Open = False,
    persons: Annotated[str | None, typer.Option(help="Persons; --html shows how many the thresholds omit.")] = None,
    units: Annotated[str | None, typer.Option(help="Housing units and group quarters of --persons.")] = None,
    geo: Annotated[str | None, typer.Option(help="Where the units are.")] = None,
    recode: Recode = None,
    derive: Derive = False,
) -> int:
    """Show budgets, margins of error and the total promise of PHSafe, for any levels and thresholds."""
    import json

    from algorithms.phsafe.budget import read_config
    from algorithms.phsafe.explore import Z_PRODUCTION, choose, sheet, state_of
    from algorithms.phsafe.tabulation.derive import own_households
    from algorithms.phsafe.tabulation.tabulate import household_sizes
    from algorithms.tables.files import whole_file
    from audit.explorer.sheet import Explored, check_files
    from audit.io.files import check_replaceable

    check_files(html, xlsx)
    if save is not None:
        check_replaceable(save)
    margins: dict[str, dict[str, float]] = {}
    for text in margin or []:
        place, width = assigned("--margin", text, "PH3:state_A-G=20")
        table, _, level = place.partition(":")
        margins.setdefault(table, {})[level] = width
    thresholds = {}
    for text in tau or []:
        table, value = assigned("--tau", text, "PH3=4")
        if not value.is_integer():
            raise ValueError(f"--tau must be a whole number, got {text!r}")
        if table in thresholds:
            raise ValueError(f"--tau must name a query once, got {table} twice")
        thresholds[table] = int(value)
    start = read_config(config)
    # The formula is that of rho: a margin of epsilon is the exact one.
    z = Z_PRODUCTION if start.privacy_definition == "zcdp" else None
    settings = choose(start, margins=margins or None, tau=thresholds or None, z=z)
    files = (persons, units, geo)
    if any((*files, recode, derive)) and (html is None or not all(files)):
        raise ValueError(
            "--persons, --units and --geo go together, with --recode and --derive if any, and with --html FILE"
        )
    drawn = html is not None or xlsx is not None or opened
    if drawn:
        sizes = None
        if all(files):
            with own_households(files, recode, derive=derive) as (engine, rows):
                sizes = household_sizes(*rows, settings, engine=engine)
        explored = Explored(sheet(sizes), state_of(settings))
        explored.show(html=html, xlsx=xlsx, opened=opened)
    if save is not None:
        with whole_file(save) as file:
            json.dump(settings.to_dict(), file, indent=4)
    if not drawn:
        _print(settings)
    if save is not None:
        print(f"Settings saved in {save}.")
    return 0


def _print(settings: Config) -> None:
    """Print a table of what is released, and the promise."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from algorithms.phsafe.explore import explore
    from algorithms.phsafe.ledger import Ledger
    from audit.io.terminal import console

    shown = Table(box=SIMPLE_HEAD)
    for title in ("query", "level", "budget", "sigma", "1.645 sigma", "covers", "exact 90% margin"):
        shown.add_column(title)
    for row in explore(settings).rows():
        name, level, budget, _, sigma, formula, coverage, exact = row
        shown.add_row(name, level, f"{budget:.6f}", f"{sigma:.1f}", f"{formula}", f"{coverage:.4f}", f"{exact}")
    console().print(shown)
    header, *lines = str(Ledger(settings)).splitlines()
    total = next(place for place, line in enumerate(lines) if line.startswith("total"))
    print(header, *lines[total:], sep="\n")
