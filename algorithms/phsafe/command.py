"""The commands ``plaudit release phsafe`` and ``plaudit explore phsafe``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.phsafe.budget import Config
from algorithms.tables.commands import Html, Open, Out, Recode, Seed, Xlsx, noise_of, releasing

__all__ = ["explore_phsafe", "release_phsafe"]


@releasing
def release_phsafe(
    out: Out,
    persons: Annotated[
        str | None,
        typer.Option(
            help="Persons, .csv or .parquet, in the production layout or with --recode; of spark also a URL: hdfs://..."
        ),
    ] = None,
    units: Annotated[str | None, typer.Option(help="Housing units and group quarters.")] = None,
    geo: Annotated[str | None, typer.Option(help="Where the units are; public.")] = None,
    recode: Recode = None,
    config: Annotated[
        str, typer.Option(help="Settings in the Bureau's format, .json, us or pr; budgets: a person added or removed.")
    ] = "us",
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
    master: Annotated[
        str, typer.Option(help="Of spark: where it runs, such as local[2] or spark://host:7077. Default: its settings.")
    ] = "",
    partitions: Annotated[int, typer.Option(help="Work on this many parts one by one, for less memory.")] = 1,
    memory: Annotated[str, typer.Option(help="Most memory of duckdb, such as 4GB.")] = "",
    seed: Seed = None,
) -> int:
    """Release the S-DHC tables from persons, units and places, by PHSafe."""
    from algorithms.phsafe.budget import read_config
    from algorithms.phsafe.release import release
    from algorithms.phsafe.schema import FRAMES, UNDERIVED
    from algorithms.phsafe.tabulation.derive import derive_units
    from algorithms.phsafe.tabulation.intake import name_unused, recoded_frames
    from algorithms.phsafe.tabulation.validate import InvalidHouseholds
    from algorithms.tables.opening import opened
    from audit.io.terminal import console

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
    frames = recoded_frames(frames, recode)
    try:
        status = console(stderr=True).status("validating, counting, drawing noise")
        with status, opened(engine, frames, memory=memory, master=master) as database:
            if not bundled:
                name_unused(database, frames, UNDERIVED if derive else FRAMES)
            if derive:
                frames[1] = derive_units(frames[0], frames[1], engine=database)
            options: dict[str, Any] = {"engine": database, "partitions": partitions, "rng": rng}
            made = release(frames[0], frames[1], frames[2], settings, out=out, published=published, **options)
    except InvalidHouseholds as error:
        for finding in error.findings:
            print(finding, file=sys.stderr)
        number = "one rule" if len(error.findings) == 1 else f"{len(error.findings)} rules"
        raise ValueError(f"the households break {number}, above; nothing was written") from error
    print(made.ledger)
    rows = sum(map(len, made.tables.values()))
    print(f"\n{rows:,} rows in {len(made.tables)} tables, with {noise}, written to {out}.")
    return 0


def explore_phsafe(
    config: Annotated[str, typer.Option(help="Settings to start from: a .json file, us or pr.")] = "us",
    margin: Annotated[
        list[str] | None,
        typer.Option(help="Margin of error wanted, as PH3:state_A-G=20; several times. Other levels are left out."),
    ] = None,
    tau: Annotated[list[str] | None, typer.Option(help="Truncation threshold, as PH3=4; several times.")] = None,
    save: Annotated[Path | None, typer.Option(help="File for the new settings, in the Bureau's format.")] = None,
    html: Html = None,
    xlsx: Xlsx = None,
    opened: Open = False,
    persons: Annotated[str | None, typer.Option(help="Persons: --html says what thresholds leave out of them.")] = None,
    units: Annotated[str | None, typer.Option(help="Housing units and group quarters of --persons.")] = None,
    geo: Annotated[str | None, typer.Option(help="Where the units are.")] = None,
    recode: Recode = None,
) -> int:
    """Show budgets, margins of error and the total promise of PHSafe, for any levels and thresholds."""
    import json

    from algorithms.phsafe.budget import read_config
    from algorithms.phsafe.explore import Z_PRODUCTION, choose, sheet, state_of
    from algorithms.phsafe.tabulation.intake import recoded_frames
    from algorithms.phsafe.tabulation.tabulate import household_sizes
    from algorithms.tables.files import whole_file
    from audit.explorer.sheet import Explored

    margins: dict[str, dict[str, float]] = {}
    for text in margin or []:
        place, width = _assigned("--margin", text, "PH3:state_A-G=20")
        table, _, level = place.partition(":")
        margins.setdefault(table, {})[level] = width
    thresholds = {}
    for text in tau or []:
        table, value = _assigned("--tau", text, "PH3=4")
        if not value.is_integer():
            raise ValueError(f"--tau must be a whole number, got {text!r}")
        if table in thresholds:
            raise ValueError(f"--tau must name a query once, got {table} twice")
        thresholds[table] = int(value)
    start = read_config(config)
    # The formula is that of rho: a margin of epsilon is the exact one.
    z = Z_PRODUCTION if start.privacy_definition == "zcdp" else None
    settings = choose(start, margins=margins or None, tau=thresholds or None, z=z)
    if save is not None and save.exists():
        raise ValueError(f"--save must name a new file, got {save}")
    frames = (persons, units, geo)
    if any((*frames, recode)) and (html is None or not all(frames)):
        raise ValueError("--persons, --units and --geo go together, with --recode if any, and with --html FILE")
    drawn = html is not None or xlsx is not None or opened
    if drawn:
        rows = recoded_frames(frames, recode)
        sizes = household_sizes(rows[0], rows[1], rows[2], settings) if all(frames) else None
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


def _assigned(option: str, text: str, example: str) -> tuple[str, float]:
    """Split NAME=NUMBER."""
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"{option} is written as {example}, got {text!r}") from None
