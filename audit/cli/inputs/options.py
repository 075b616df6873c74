"""How a command reads its options; the options themselves are in `groups`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer

from audit.cli.inputs.parameters import whole_size

__all__ = ["PERSONS", "SETTINGS", "WHOLE", "known_names", "option_of", "refuse", "suggestion", "with_options"]

WHOLE = {"parser": whole_size, "metavar": "RUNS"}  # an option for a number of runs
PERSONS = "areas spec geo count public groups units config derive recode"  # options of systems that read persons
SETTINGS = {  # names that --set accepts besides the parameters of a mechanism
    name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    for kind, names in ((str, "preset geo public groups units config recode"), (float, "rho"), (bool, "derive"))
    for name in names.split()
}


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make each field of a dataclass parameter an option of typer, and call the command with the dataclass."""
    # An option is `Annotated[type, "help"]`. Its names, if they differ from the field's, and a dict of other arguments
    # of typer come before the help. A bool is a flag without a --no- form. The docstring is the section's title.
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
        section = (record.__doc__ or "").rstrip(".") if is_dataclass(record) else None
        for option in options:
            parameters.append(option.replace(annotation=_for_typer(option.name, option.annotation, section)))

    @wraps(command)
    def run(*arguments: Any, **values: Any) -> Any:
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name, field.default) for field in fields(record)})
        return command(*arguments, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _for_typer(name: str, hint: Any, section: str | None) -> Any:
    kind, *words = get_args(hint) or [hint]
    if not words or not isinstance(words[-1], str):  # for example a typer.Argument
        return hint
    settings = {key: value for part in words if isinstance(part, dict) for key, value in part.items()}
    names = [part for part in words[:-1] if isinstance(part, str)] or [f"--{name.replace('_', '-')}"]
    return Annotated[kind, typer.Option(*names, help=words[-1], rich_help_panel=section, **settings)]


def known_names(beginning: str) -> list[str]:
    """Return the names of `plaudit list` that start with `beginning`."""
    from audit.installed import plugin

    return [name for name in plugin("systems").systems() if name.startswith(beginning)]


def suggestion(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of an error message: the known words most similar to this one, or `otherwise`."""
    near = " or ".join(get_close_matches(word, [*known]))
    return f": did you mean {near}?" if near else otherwise


def refuse(context: typer.Context, options: str, why: str) -> None:
    """Raise an error if any of these options was given: it would have no effect."""
    given = {word.partition("=")[0] for word in context.params.get("set") or ()} & SETTINGS.keys()
    for option in options.split():
        source = context.get_parameter_source(option)
        if option in given or (source is not None and source.name == "COMMANDLINE"):
            raise ValueError(f"{option_of(option)} {why}")


def option_of(name: str) -> str:
    """Return how a user writes an option: `--name`, or `--set name`."""
    return f"--set {name}" if name in SETTINGS else f"--{name.replace('_', '-')}"
