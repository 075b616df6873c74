"""Common code of the systems' commands: options and messages of releases, and audits of the same persons."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian
from algorithms.release.engine import RECORD, Published, check_folder
from algorithms.release.intake import read_histogram
from algorithms.release.recoding import recoded
from algorithms.schema import Schema, read_specification
from audit.io.terminal import at_work
from audit.neighbors import NeighborPair

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
    "assigned",
    "cell_name",
    "columns_of",
    "counted",
    "on_persons",
    "pairs_of",
    "releasing",
]

Counts = NDArray[np.int64]

Data = Annotated[Path, typer.Option(help="Persons, .csv or .parquet: areas and attributes, one person per row.")]
Areas = Annotated[str, typer.Option(help="Columns of areas, the outermost first, such as state,county.")]
Spec = Annotated[Path, typer.Option(help="JSON file: public specification of the attributes and their values.")]
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
Open = Annotated[bool, typer.Option("--open", help="Show the page of --html in the browser.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the release: a new or an empty one.")]
Seed = Annotated[
    int | None, typer.Option(help="Seeded noise instead of secure noise: a simulation, not to be published.")
]


def releasing(prepare: Callable[..., Callable[[Path], Published] | None]) -> Callable[..., int]:
    """Turn `prepare`, which takes a source of noise and options, into a command with the options --out and --seed.

    `prepare` checks the options before data are read. It returns a function that reads the data and releases them into
    a folder, or None if the user asked for something else, which it has done. The folder appears in one step, so at any
    instant it shows whether there is a release: messages about that are true even if the command is interrupted.
    """

    @wraps(prepare)
    def run(*, out: Path | None = None, seed: int | None = None, **options: Any) -> int:
        target = None if out is None else check_folder(out)
        try:
            if seed is not None and seed < 0:
                raise ValueError(f"seed must be 0 or more, got {seed}")
            make = prepare("secure" if seed is None else np.random.default_rng(seed), **options)
            if make is None:
                return 0
            if out is None:
                raise ValueError("Missing option '--out'")
            if seed is None:
                DiscreteGaussian(1.0).sample(0, "secure")  # refuses a missing source of noise before data are read
            with at_work("reading, counting, drawing noise"):
                made = make(out)
            print(made.ledger)
            noise = "secure noise" if seed is None else f"noise from seed {seed}: a simulation, not to be published"
            print(f"{made.summary}, with {noise}, written to {out}.", flush=True)  # flush: a broken pipe raises here
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


def columns_of(areas: str) -> list[str]:
    """Split a list of column names at commas."""
    columns = [name.strip() for name in areas.split(",")]
    if not all(columns):
        raise ValueError(f"--areas must name columns with commas between, such as state,county, got {areas!r}")
    return columns


def assigned(option: str, text: str, example: str) -> tuple[str, float]:
    """Split NAME=NUMBER; refuse other forms."""
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"{option} is written as {example}, got {text!r}") from None


def counted(
    data: str, schema: Schema, areas: str, geo: str | None, count: str | None, recode: str | None = None
) -> tuple[Hierarchy, Counts]:
    """Count persons by area, from a public list or from the data, and by the cells of a schema."""
    columns = columns_of(areas)
    persons = recoded("data", data, recode, [*columns, *schema.attributes, count])
    return read_histogram(persons, schema, columns, count=count, places=geo)


def on_persons(
    describe: Callable[[Hierarchy, Schema, list[str]], Any],
    data: str,
    *,
    areas: str,
    spec: str,
    geo: str | None = None,
    count: str | None = None,
    recode: str | None = None,
) -> Any:
    """Return the system that `describe` makes from tree, schema and columns of areas, with pairs of the user's data."""
    schema = read_specification(Path(spec))
    tree, histogram = counted(data, schema, areas, geo, count, recode)
    described = describe(tree, schema, columns_of(areas))
    return replace(described, pairs=pairs_of(histogram), cell_name=partial(cell_name, tree, schema))


def cell_name(tree: Hierarchy, schema: Schema, leaf: int, cell: int) -> str:
    """Describe a cell of a histogram, shape (leaves, cells), in words: its levels and its area."""
    places = zip(schema.attributes.values(), np.unravel_index(cell, schema.shape), strict=True)
    return f"{', '.join(levels[int(place)] for levels, place in places)} in {tree.label(leaf)}"


def pairs_of(histogram: Counts, kept: Sequence[Counts] = ()) -> dict[str, Callable[[], NeighborPair]]:
    """Return pairs of neighbors from a histogram, shape (leaves, cells), if there are such cells.

    "added" adds a person to the fullest cell, "alone" to an empty cell of the same area. "replaced" moves a person from
    the fullest cell to the emptiest other cell of the area, so that totals of areas, which may be invariant, do not
    change. If totals of groups of cells are `kept`, nobody is added, and both cells are in the same groups.
    """
    leaf, full = (int(place) for place in np.unravel_index(histogram.argmax(), histogram.shape))
    order = [int(cell) for cell in np.argsort(histogram[leaf], kind="stable") if cell != full]
    pairs: dict[str, Callable[[], NeighborPair]] = {}
    if not kept:
        pairs["added"] = lambda: NeighborPair.add_people(histogram, (leaf, full))
        if order and histogram[leaf, order[0]] == 0:
            pairs["alone"] = lambda: NeighborPair.add_people(histogram, (leaf, order[0]))
    order = [cell for cell in order if all(groups[cell] == groups[full] for groups in kept)]
    if order and histogram[leaf, full] > 0:
        pairs["replaced"] = lambda: NeighborPair.move_people(histogram, (leaf, full), (leaf, order[0]))
    return pairs
