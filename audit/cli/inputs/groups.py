"""Options of commands, grouped in dataclasses; a command has one parameter for each dataclass."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from audit.claims.families import claim_forms
from audit.cli.helps import HELP_ALL
from audit.cli.inputs import HEADER
from audit.cli.inputs.options import SETTINGS, known_names
from audit.cli.inputs.parameters import read_parameters
from audit.io.workers import on_backend

__all__ = ["AsJson", "Confidence", "DatabaseOptions", "Name", "ResultOptions", "Seed", "TargetOptions", "WorkerOptions"]

NAME = "A name from `plaudit list`, or module:object for a mechanism of your own, callable as (data, size, rng)."
Name = Annotated[str, typer.Argument(autocompletion=known_names, help=NAME)]
Confidence = Annotated[float, "One-sided confidence of each audit, or jointly of all pairs of a mechanism."]
Seed = Annotated[int | None, "Seed; by default a random one, recorded in the result."]
AsJson = Annotated[bool, "--json", "Print the results as JSON."]
Verbose = Annotated[bool, "Also print the databases, events and power."]


@dataclass(frozen=True)
class TargetOptions:
    """Data, mechanism and promise."""

    data: Annotated[
        str | None,
        "--data",
        "--persons",
        "morocco (the default), midwest or brazil (bundled), uniform (simulated people, see --set), or a file of "
        "counts, records or persons; a mechanism of your own needs it. Counts are .npy, or .csv with a count per line; "
        f"{HEADER}. Records, for --add-row or --replace-row, and persons, for --areas or --spec, are .csv or .parquet.",
    ] = None
    areas: Annotated[
        str | None,
        "Columns of areas in --data, the outermost first, such as state,county. Without --count a row is one person.",
    ] = None
    spec: Annotated[str | None, "JSON file of attributes and their values, as for `plaudit release`."] = None
    count: Annotated[str | None, "Column of the number of persons that a row of --data stands for."] = None
    set: Annotated[
        list[str] | None,
        {"metavar": "NAME=VALUE"},
        "Parameter of a system or --data uniform, such as parts=8; an unknown name prints the list. Use commas between "
        "values. Also preset=NAME (see `plaudit list NAME`), rho=RHO as budget, and files as for `plaudit release`: "
        "geo=FILE, recode=FILE.json; for nist public=FILE or groups=FILE.json; for phsafe units=FILE, derive=true and "
        "config=us, pr or config=FILE.json.",
    ] = None
    epsilon: Annotated[float | None, "Budget of a system from `plaudit list`, in nats; by default the system's."] = None
    stage: Annotated[
        str, "Run a stage of a system, such as measurements, instead of its release; `plaudit list NAME` lists stages."
    ] = ""
    pair: Annotated[str, "Bundled pair of databases of a system; `plaudit list NAME` lists them."] = ""
    claim: Annotated[str, f"The promise, {claim_forms()}; by default the system's."] = ""
    relation: Annotated[str, "Neighbor relation of --claim, or of a bundled pair: add_remove or replace_one."] = ""
    cell: Annotated[
        list[int] | None,
        "Area whose count differs between the databases; by default 0. If repeated, each is audited, at a joint "
        "confidence.",
    ] = None
    help_all: Annotated[bool, "--help-all", HELP_ALL, "Show all options and exit."] = False
    public_data: Annotated[bool, "The data are public. Otherwise results of files are confidential."] = False

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The values that `--set` gives for names in `SETTINGS`."""
        return read_parameters([word for word in self.set or () if word.partition("=")[0] in SETTINGS], SETTINGS, "")

    @property
    def parameters(self) -> list[str]:
        """The other values of `--set`: parameters of a mechanism, as NAME=VALUE."""
        return [word for word in self.set or () if word.partition("=")[0] not in SETTINGS]

    def given(self, names: str) -> dict[str, Any]:
        """Return the values of those of the named options that were given, directly or with `--set`."""
        values = {name: self.settings.get(name, getattr(self, name, None)) for name in names.split()}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class DatabaseOptions:
    """How the two databases differ."""

    cells: Annotated[str, "Choose areas by count: smallest,largest,empty, or some of these."] = ""
    people: Annotated[int, "By how many people the databases differ. The bound is divided as group privacy allows."] = 1
    move_to: Annotated[int | None, "Move the people to this area instead of adding them (replace_one)."] = None
    add_row: Annotated[
        list[str] | None,
        "Record to add, as a JSON object or as values in the order of the columns. null is an empty field of the file. "
        "If repeated, each is a pair.",
    ] = None
    at: Annotated[
        str, {"metavar": "PLACE"}, "Where --add-row puts the record: first, last, random, or an index from 0."
    ] = "last"
    replace_row: Annotated[
        tuple[int, str] | None,
        {"metavar": "INDEX VALUES"},
        "Number of the record to replace, from 0, and the new record.",
    ] = None


@dataclass(frozen=True)
class WorkerOptions:
    """Where the work runs."""

    backend: Annotated[
        str,
        "Where the work runs: loky (processes of this machine), threads, dask or ray: a cluster of this machine, with "
        "--jobs workers, for this command alone; or one at an address, dask=tcp://HOST:8786 or ray=ray://HOST:10001. "
        "Default: threads for mechanisms that can share them, loky for others.",
    ] = ""
    jobs: Annotated[int, "Blocks of runs to work on at the same time; -1 for all cores."] = -1

    def started(self) -> AbstractContextManager[None]:
        """Return a context in which blocks of runs use this backend."""
        return on_backend(self.backend, self.jobs)


@dataclass(frozen=True)
class ResultOptions:
    """Results."""

    out: Annotated[Path | None, "Folder for results (JSON). Existing results stay."] = None
    verbose: Verbose = False
    as_json: AsJson = False
