"""What the commands of systems share: their options, where noise comes from, and how an interrupt ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["Areas", "Count", "Data", "Epsilon", "Geo", "Out", "Seed", "Spec", "columns_of", "interruptible", "noise_of"]

Out = Annotated[Path, typer.Option(help="Folder for the release: a new or an empty one.")]
Data = Annotated[Path, typer.Option(help="Persons, .csv or .parquet: areas and attributes, one a row.")]
Areas = Annotated[str, typer.Option(help="Columns of areas, the outermost first, such as state,county.")]
Spec = Annotated[Path, typer.Option(help="Public specification of attributes and their levels, .json.")]
Epsilon = Annotated[float, typer.Option(help="Budget in nats, one record added or removed.")]
Geo = Annotated[
    Path | None,
    typer.Option(
        help="Public list of every finest area, one a row. Without it, which areas exist is read from the data and "
        "taken as public: no promise covers it."
    ),
]
Count = Annotated[str | None, typer.Option(help="Column of the number of persons that a row stands for.")]
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


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn an interrupt, or a request to end, into one line: what was half done is removed on the way."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise ValueError("interrupted; nothing was written") from None
