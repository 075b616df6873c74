"""Options that several commands have, each said once, and how they are refused where they would do nothing."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

import typer

from audit.cli.inputs import HEADER

__all__ = [
    "OF_PERSONS",
    "Areas",
    "AsJson",
    "Budget",
    "Cell",
    "ClaimText",
    "Confidence",
    "Config",
    "Count",
    "Data",
    "Derive",
    "Geo",
    "Jobs",
    "Name",
    "Out",
    "Pair",
    "Preset",
    "Public",
    "PublicData",
    "RelationName",
    "Rho",
    "Seed",
    "Spec",
    "Stage",
    "Units",
    "check_numbers",
    "known_names",
    "refuse",
    "whole_size",
]

DIGITS = 18  # of the largest number that is read: how many runs are too many is decided elsewhere
OF_PERSONS = "areas spec geo count public units config derive"  # options of systems that read persons


def known_names(begun: str) -> list[str]:
    """Return the names of `plaudit list` that a word may become."""
    from audit.installed import offered

    return [name for name in offered("systems").systems() if name.startswith(begun)]


Name = Annotated[
    str,
    typer.Argument(
        autocompletion=known_names,
        help="A name from `plaudit list`, or module:object for a mechanism of your own, callable as (data, size, rng).",
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        "--persons",
        help="morocco, midwest or brazil (bundled), or a file of counts: .npy, or .csv with one count a line; "
        f"{HEADER}. With --add-row or --replace-row of `plaudit audit`: a .csv or .parquet file of records; with "
        "--areas or --spec of persons. Default: morocco; a mechanism of your own needs data.",
    ),
]
Budget = Annotated[
    float | None, typer.Option(help="Budget that a system of `plaudit list` promises, in nats. Default: its own.")
]
Rho = Annotated[float | None, typer.Option(help="Budget of a system that promises zero-concentrated privacy.")]
Stage = Annotated[
    str,
    typer.Option(
        help="Look at a stage of a system instead of its release, such as measurements; `plaudit list` names stages."
    ),
]
Pair = Annotated[
    str, typer.Option(help="Which of its bundled pairs of databases a system runs on; `plaudit list` names them.")
]
Preset = Annotated[str, typer.Option(help="Settings of a system by their name; `plaudit list` names them.")]
Areas = Annotated[
    str | None,
    typer.Option(
        help="Systems that `plaudit release` runs on persons: columns of areas in --data, the outermost first, such as "
        "state,county."
    ),
]
Spec = Annotated[str | None, typer.Option(help="Their attributes and levels, .json, as for `plaudit release`.")]
Geo = Annotated[str | None, typer.Option(help="Public list of every finest area. Default: those that the data name.")]
Count = Annotated[str | None, typer.Option(help="Column of the number of persons that a row of --data stands for.")]
Public = Annotated[str | None, typer.Option(help="Of nist: public records, by which fields are grouped.")]
Units = Annotated[
    str | None,
    typer.Option(help="Of phsafe: housing units and group quarters of the persons in --data; --geo: places."),
]
Config = Annotated[
    str | None, typer.Option(help="Of phsafe: settings in the Bureau's format, a .json file, us or pr. Default: us.")
]
Derive = Annotated[
    bool | None,
    typer.Option("--derive", help="Of phsafe: derive household types and the like from the persons, who need QSEX."),
]
ClaimText = Annotated[
    str,
    typer.Option(help="The promise, pure:EPSILON, approx:EPSILON,DELTA, zcdp:RHO or gaussian:MU. Default: its own."),
]
RelationName = Annotated[
    str, typer.Option(help="Neighbor relation of --claim, or of a bundled pair: add_remove or replace_one.")
]
Cell = Annotated[
    list[int] | None,
    typer.Option(
        help="Area whose count differs between the two databases; default: 0. Given several times, each is "
        "looked at, and the confidence is that of all of them together."
    ),
]
Confidence = Annotated[
    float, typer.Option(help="One-sided confidence of each audit, or of all pairs of a mechanism together.")
]
Seed = Annotated[int | None, typer.Option(help="Seed; default: fresh entropy, recorded in the result.")]
Jobs = Annotated[int, typer.Option(help="Blocks of runs at work at the same time; -1 for all cores.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the JSON results and a figure; what is there stays.")]
PublicData = Annotated[
    bool, typer.Option("--public-data", help="The data are no secret: results of files are else confidential.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


def whole_size(text: str) -> int:
    """Read a number of runs as people write it: 200000, 200_000, 1e6.

    Examples
    --------
    >>> whole_size("1e6"), whole_size("2.5e3"), whole_size("200_000")
    (1000000, 2500, 200000)
    """
    try:
        number = Decimal(text)
        if number.is_finite() and number.adjusted() < DIGITS and number == int(number):
            return int(number)
    except InvalidOperation:
        pass
    raise typer.BadParameter(f"must be a whole number, such as 200000, 200_000 or 1e6, got {text!r}")


def refuse(context: typer.Context, options: str, why: str) -> None:
    """Refuse options that would silently do nothing."""
    for option in options.split():
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{option.replace('_', '-')} {why}")


def check_numbers(context: typer.Context) -> None:
    """Refuse relations, seeds and jobs that there are not."""
    from audit.claims import check_relation

    given = context.params
    if given.get("relation"):
        check_relation(given["relation"])
    if (seed := given.get("seed")) is not None and seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    if (jobs := given.get("jobs", -1)) < 1 and jobs != -1:
        raise ValueError(f"jobs must be a positive number, or -1 for all cores, got {jobs}")
