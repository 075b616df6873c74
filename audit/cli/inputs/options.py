"""Options of commands, grouped in dataclasses; a command has one parameter for each dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from audit.claims.families import claim_forms
from audit.cli.inputs import HEADER
from audit.cli.inputs.parameters import read_parameters, whole_size
from audit.io.workers import on_backend

__all__ = [
    "PERSONS",
    "SETTINGS",
    "WHOLE",
    "AsJson",
    "Confidence",
    "DatabaseOptions",
    "Name",
    "Out",
    "Seed",
    "TargetOptions",
    "WorkerOptions",
    "known_names",
    "option_of",
    "refuse",
    "suggestion",
    "with_options",
]

PERSONS = "areas spec geo count public groups units config derive recode"  # options of systems that read persons
SETTINGS = {  # names that --set accepts besides the parameters of a mechanism
    name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    for kind, names in ((str, "preset geo public groups units config recode"), (float, "rho"), (bool, "derive"))
    for name in names.split()
}


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make each field of a dataclass parameter an option of typer, and call the command with the dataclass."""
    # An option is `Annotated[type, "help"]`. Its names, if they differ from the field's, and a dict of other arguments
    # of typer come before the help. A bool is a flag without a --no- form.
    parameters: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        options = [parameter]
        if is_dataclass(record := parameter.annotation):
            records[parameter.name] = record
            hints = get_type_hints(record, include_extras=True)
            options = [
                inspect.Parameter(field.name, parameter.kind, default=field.default, annotation=hints[field.name])
                for field in fields(record)
            ]
        parameters += [option.replace(annotation=_for_typer(option.name, option.annotation)) for option in options]

    @wraps(command)
    def run(*arguments: Any, **values: Any) -> Any:
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name, field.default) for field in fields(record)})
        return command(*arguments, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _for_typer(name: str, hint: Any) -> Any:
    kind, *words = get_args(hint) or [hint]
    if not words or not isinstance(words[-1], str):  # for example a typer.Argument
        return hint
    settings = {key: value for part in words if isinstance(part, dict) for key, value in part.items()}
    names = [part for part in words[:-1] if isinstance(part, str)] or [f"--{name.replace('_', '-')}"]
    return Annotated[kind, typer.Option(*names, help=words[-1], **settings)]


def known_names(beginning: str) -> list[str]:
    """Return the names of `plaudit list` that start with `beginning`."""
    from audit.installed import plugin

    return [name for name in plugin("systems").systems() if name.startswith(beginning)]


def suggestion(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of an error message: the known words most similar to this one, or `otherwise`."""
    near = " or ".join(get_close_matches(word, [*known]))
    return f": did you mean {near}?" if near else otherwise


WHOLE = {"parser": whole_size, "metavar": "RUNS"}
Name = Annotated[
    str,
    typer.Argument(
        autocompletion=known_names,
        help="A name from `plaudit list`, or module:object for a mechanism of your own, callable as (data, size, rng).",
    ),
]
Confidence = Annotated[float, "One-sided confidence of each audit, or jointly of all pairs of a mechanism."]
Seed = Annotated[int | None, "Seed. Default: a random one, recorded in the result."]
Out = Annotated[Path | None, "Folder for JSON results, and for figures of estimates. Existing results stay."]
AsJson = Annotated[bool, "--json", "Print the results as JSON."]


@dataclass(frozen=True)
class TargetOptions:
    """The data of the databases, the settings of the mechanism, and its promise."""

    data: Annotated[
        str | None,
        "--data",
        "--persons",
        "morocco, midwest or brazil (bundled), uniform (simulated people, see --set), or a file of counts: .npy, or "
        f".csv with a count per line; {HEADER}. With --add-row or --replace-row: a .csv or .parquet file of records. "
        "With --areas or --spec: of persons. Default: morocco. A mechanism of your own needs --data.",
    ] = None
    areas: Annotated[
        str | None,
        "Columns of areas in --data, the outermost first, such as state,county. Without --count a row is one person.",
    ] = None
    spec: Annotated[str | None, "JSON file of attributes and their levels, as for `plaudit release`."] = None
    count: Annotated[str | None, "Column of the number of persons that a row of --data stands for."] = None
    set: Annotated[
        list[str] | None,
        {"metavar": "NAME=VALUE"},
        "Parameter of a system or --data uniform, such as parts=8; a wrong name lists all. Use commas between values. "
        "Also preset=NAME (see `plaudit list NAME`), rho=RHO as budget, and files as for `plaudit release`: geo=FILE, "
        "recode=FILE.json; for nist public=FILE or groups=FILE.json; for phsafe units=FILE, derive=true and config=us, "
        "pr or config=FILE.json.",
    ] = None
    epsilon: Annotated[float | None, "Budget of a system from `plaudit list`, in nats. Default: the system's."] = None
    stage: Annotated[
        str, "Run a stage of a system, such as measurements, instead of its release; `plaudit list NAME` lists stages."
    ] = ""
    pair: Annotated[str, "Bundled pair of databases of a system; `plaudit list NAME` lists them."] = ""
    claim: Annotated[str, f"The promise, {claim_forms()}. Default: the system's."] = ""
    relation: Annotated[str, "Neighbor relation of --claim, or of a bundled pair: add_remove or replace_one."] = ""
    cell: Annotated[
        list[int] | None,
        "Area whose count differs between the databases. Default: 0. If repeated, each area is audited; the confidence "
        "holds for all together.",
    ] = None
    public_data: Annotated[bool, "The data are public. Otherwise results of files are confidential."] = False

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The values that `--set` gives for names in `SETTINGS`."""
        return read_parameters([word for word in self.set or () if _name_in(word) in SETTINGS], SETTINGS, "")

    @property
    def parameters(self) -> list[str]:
        """The other values of `--set`: parameters of a mechanism, as NAME=VALUE."""
        return [word for word in self.set or () if _name_in(word) not in SETTINGS]

    def given(self, names: str) -> dict[str, Any]:
        """Return the values of those of the named options that were given, directly or with `--set`."""
        values = {name: self.settings.get(name, getattr(self, name, None)) for name in names.split()}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class DatabaseOptions:
    """How the two databases differ, beyond one person in a cell."""

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
    """The backend of the runs, and the number of parallel jobs."""

    backend: Annotated[
        str,
        "Where the work runs: loky (processes of this machine), threads, dask or ray: a cluster of this machine, with "
        "--jobs workers, for this command alone; or one at an address, dask=tcp://HOST:8786 or ray=ray://HOST:10001. "
        "Default: threads for mechanisms that can share them, loky for others.",
    ] = ""
    jobs: Annotated[int, "Blocks of runs to work on at the same time; -1 for all cores."] = -1

    def started(self) -> AbstractContextManager[None]:
        """Return a context in which blocks of runs use this backend."""
        if self.jobs < 1 and self.jobs != -1:
            raise ValueError(f"jobs must be a positive number, or -1 for all cores, got {self.jobs}")
        name, _, address = self.backend.partition("=")
        return on_backend(name, address, self.jobs)


def refuse(context: typer.Context, options: str, why: str) -> None:
    """Raise an error if any of these options was given: it would have no effect."""
    given = {_name_in(word) for word in context.params.get("set") or ()} & SETTINGS.keys()
    for option in options.split():
        source = context.get_parameter_source(option)
        if option in given or (source is not None and source.name == "COMMANDLINE"):
            raise ValueError(f"{option_of(option)} {why}")


def option_of(name: str) -> str:
    """Return how a user writes an option: `--name`, or `--set name`."""
    return f"--set {name}" if name in SETTINGS else f"--{name.replace('_', '-')}"


def _name_in(word: str) -> str:
    return word.partition("=")[0]
