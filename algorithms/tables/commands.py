"""What the commands of systems share: their options, where noise comes from, and what is told of a release."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.tables.files import RECORD, check_folder

__all__ = [
    "Areas",
    "Count",
    "Data",
    "Epsilon",
    "Geo",
    "Html",
    "Memory",
    "Open",
    "Out",
    "Recode",
    "Seed",
    "Spec",
    "Xlsx",
    "assigned",
    "columns_of",
    "noise_of",
    "releasing",
]

Out = Annotated[Path, typer.Option(help="Folder for the release: a new or an empty one.")]
Data = Annotated[Path, typer.Option(help="Persons, .csv or .parquet: areas and attributes, one person per row.")]
Areas = Annotated[str, typer.Option(help="Columns of areas, the outermost first, such as state,county.")]
Spec = Annotated[Path, typer.Option(help="JSON file: public specification of the attributes and their levels.")]
Epsilon = Annotated[float, typer.Option(help="Budget in nats, one record added or removed.")]
Geo = Annotated[
    Path | None,
    typer.Option(
        help="Public list of every finest area, one per row. Without it the areas are those in the data, and the "
        "promise does not cover which areas exist."
    ),
]
Count = Annotated[str | None, typer.Option(help="Column of the number of persons that a row stands for.")]
Recode = Annotated[Path | None, typer.Option(help="JSON file: how to make the columns from those of your files.")]
Memory = Annotated[
    str, typer.Option(help="Limit of memory for reading, such as 16GB. Larger data go to disk, which is slower.")
]
Html = Annotated[Path | None, typer.Option(help="File for the explorer's page, instead of printed tables.")]
Xlsx = Annotated[
    Path | None, typer.Option(help="File for the explorer's workbook of formulas, instead of printed tables.")
]
Open = Annotated[bool, typer.Option("--open", help="Show the page of --html in the browser.")]
Seed = Annotated[
    int | None, typer.Option(help="Seeded noise instead of secure noise: a simulation, not to be published.")
]


def noise_of(seed: int | None) -> tuple[Any, str]:
    """Return the source of noise of a release, a seeded generator or ``"secure"``, and what it is in words."""
    import numpy as np

    if seed is None:
        return "secure", "secure noise"
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    return np.random.default_rng(seed), f"noise from seed {seed}: a simulation, not to be published"


def columns_of(areas: str) -> list[str]:
    """Split names of columns at their commas."""
    columns = [name.strip() for name in areas.split(",")]
    if not all(columns):
        raise ValueError(f"--areas must name columns with commas between, such as state,county, got {areas!r}")
    return columns


def releasing(command: Callable[..., int]) -> Callable[..., int]:
    """Decorate a command that writes a release into its folder `out`: whatever ends it, what is told of that is true.

    The folder appears in one step, so that what is in it tells whether there is a release, at any instant.
    """

    @wraps(command)
    def run(out: Path | None = None, **options: Any) -> int:
        if out is None:  # of a command that has something else to do, too
            return command(out=out, **options)
        target = check_folder(out)
        try:
            code = command(out=out, **options)
            print(end="", flush=True)  # if nobody can read it, that is told here
            return code
        except BaseException as error:
            if (target / RECORD).exists():
                error.add_note(f"{out} holds a whole release, and its budget is spent")
            elif isinstance(error, KeyboardInterrupt):
                error.add_note("nothing was written")
            raise

    return run


def assigned(option: str, text: str, example: str) -> tuple[str, float]:
    """Split NAME=NUMBER; refuse what is not written so."""
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"{option} is written as {example}, got {text!r}") from None
