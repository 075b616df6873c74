"""The command ``plaudit release``: options that systems share, and what is done and told of every release."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from algorithms.noise import DiscreteGaussian, Rng
from algorithms.release.engine import Published
from algorithms.release.folder import RECORD, check_folder
from audit.io.terminal import at_work

__all__ = [
    "Areas",
    "Count",
    "Data",
    "Epsilon",
    "Geo",
    "Html",
    "Memory",
    "Open",
    "Recode",
    "Spec",
    "Xlsx",
    "assigned",
    "columns_of",
    "releasing",
]

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
Out = Annotated[Path | None, typer.Option(help="Folder for the release: a new or an empty one.")]
Seed = Annotated[
    int | None, typer.Option(help="Seeded noise instead of secure noise: a simulation, not to be published.")
]


def releasing(prepare: Callable[..., Callable[[Path], Published] | None]) -> Callable[..., int]:
    """Turn a function of a source of noise and a system's options into its command, with the options --out and --seed.

    It refuses what is wrong with the options before data are read, and returns what reads them and releases into a
    folder; or nothing, where something else was asked for and is done. The folder appears in one step, so that what is
    in it tells whether there is a release, at any instant: whatever ends the command, what is told of that is true.
    """

    @wraps(prepare)
    def run(*, out: Path | None = None, seed: int | None = None, **options: Any) -> int:
        target = None if out is None else check_folder(out)
        try:
            make = prepare(_noise_of(seed), **options)
            if make is None:
                return 0
            if out is None:
                raise ValueError("Missing option '--out'")
            if seed is None:
                DiscreteGaussian(1.0).sample(0, "secure")  # a missing source of noise is told before data are read
            with at_work("reading, counting, drawing noise"):
                made = make(out)
            print(made.ledger)
            noise = "secure noise" if seed is None else f"noise from seed {seed}: a simulation, not to be published"
            print(f"{made.summary}, with {noise}, written to {out}.", flush=True)  # if nobody can read it, that is told
            return 0
        except BaseException as error:
            if target is not None and (target / RECORD).exists():
                error.add_note(f"{out} holds a whole release, and its budget is spent")
            elif isinstance(error, KeyboardInterrupt):
                error.add_note("nothing was written")
            raise

    _, *own = inspect.signature(prepare, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    first, last = (
        inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in (("out", Out), ("seed", Seed))
    )
    parameters = [first, *(one.replace(kind=keyword) for one in own), last]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _noise_of(seed: int | None) -> Rng:
    if seed is not None and seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    return "secure" if seed is None else np.random.default_rng(seed)


def columns_of(areas: str) -> list[str]:
    """Split names of columns at their commas."""
    columns = [name.strip() for name in areas.split(",")]
    if not all(columns):
        raise ValueError(f"--areas must name columns with commas between, such as state,county, got {areas!r}")
    return columns


def assigned(option: str, text: str, example: str) -> tuple[str, float]:
    """Split NAME=NUMBER; refuse what is not written so."""
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"{option} is written as {example}, got {text!r}") from None
