"""What the command ``plaudit release`` runs: one subcommand a system, on data of the user's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["release"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def release(arguments: list[str]) -> int:
    """Run ``plaudit release``.

    Parameters
    ----------
    arguments : list of str
        What follows those two words.

    Returns
    -------
    int
        Exit code: 0, or 2 where nothing was asked for.

    Raises
    ------
    ValueError
        If input is bad; nothing was written.
    """
    code = app(arguments or ["--help"], prog_name="plaudit release", standalone_mode=False)
    return int(code or 0) if arguments else 2


@app.callback()
def _release() -> None:
    """Run a reference implementation on data of your own: tables with secure noise, and what they cost."""


@app.command()
def phsafe(
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
    engine: Annotated[str, typer.Option(help="duckdb, in this process, or spark.")] = "duckdb",
    partitions: Annotated[int, typer.Option(help="Work on this many parts one by one, for less memory.")] = 1,
    memory: Annotated[str, typer.Option(help="Most memory of duckdb, such as 4GB.")] = "",
    seed: Annotated[
        int | None, typer.Option(help="Seeded noise instead of secure noise: a simulation, not to be published.")
    ] = None,
) -> int:
    """Release the S-DHC tables from persons, units and places, by PHSafe."""
    import numpy as np
    from rich.console import Console

    from algorithms.noise import Rng
    from algorithms.phsafe.budget import read_config
    from algorithms.phsafe.derive import derive_units
    from algorithms.phsafe.engine import DuckDB
    from algorithms.phsafe.release import check_folder
    from algorithms.phsafe.release import release as run
    from algorithms.phsafe.validate import InvalidHouseholds

    if seed is not None and seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
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
    if derive:
        given[1] = derive_units(persons, units, engine=engine)
    database = DuckDB(given, memory=memory) if memory else engine
    rng: Rng = "secure" if seed is None else np.random.default_rng(seed)
    try:
        with Console(stderr=True).status("validating, counting, drawing noise"):
            made = run(given[0], given[1], given[2], settings, out=out, rng=rng, engine=database, partitions=partitions)
    except InvalidHouseholds as error:
        for finding in error.findings:
            print(finding, file=sys.stderr)
        number = "one rule" if len(error.findings) == 1 else f"{len(error.findings)} rules"
        raise ValueError(f"the households break {number}, above; nothing was written") from error
    finally:
        if not isinstance(database, str):
            database.close()
    print(made.ledger)
    rows = sum(map(len, made.tables.values()))
    noise = "secure noise" if seed is None else f"noise from seed {seed}: a simulation, not to be published"
    print(f"\n{rows:,} rows in {len(made.tables)} tables, with {noise}, written to {out}.")
    print("Promised when one person is added or removed (unbounded) or replaced (bounded), in the paper's model.")
    return 0
