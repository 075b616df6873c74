"""Helps of commands: everyday options first, the rest with --help-all, and values in a user's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["FOLDER", "HELP_ALL", "Complete", "Sectioned"]

OTHERS = "Options of this command"
SECTIONS = {  # of the help: options by title
    "Arguments": "",
    "Everyday options": "data claim epsilon cell size runs early confidence seed out verbose as_json help help_all",
    OTHERS: "",
    "Kinds of audits": "one_run attack event",
    "Neighboring databases": "cells people move_to add_row at replace_row relation distance public_data",
    "Systems of `plaudit list`": "set stage pair",
    "Files for systems": "areas count spec",
    "Outputs of another program": "outputs_x outputs_y",
    "Time and machines": "jobs backend store timeout",
}
EVERYDAY = ("Arguments", "Everyday options", OTHERS)  # what --help shows of a command that has --help-all
VALUES = {  # of options, in words
    "DATA": "data",
    "PROMISE": "claim",
    "EVENT": "event",
    "COLUMNS": "areas",
    "COLUMN": "count weight",
    "FILE": "spec persons units geo config",
    "NAME": "cells relation stage pair attack method preset design backend engine law noise form",
    "VALUES": "add_row",
}
KINDS = {"path": "FILE", "int": "NUMBER", "float": "NUMBER", "list[int]": "NUMBER"}  # the others, by type
FOLDER: dict[str, Any] = {"metavar": "FOLDER"}


def _print_all(context: typer.Context, requested: bool) -> None:
    if requested:
        context.meta[__name__] = True
        print(context.get_help())
        raise typer.Exit


HELP_ALL: dict[str, Any] = {"callback": _print_all, "is_eager": True}


class Complete(TyperCommand):
    """A command whose help shows all options in one section."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first sentence of the help, however long it is."""
        return super().get_short_help_str(max(limit, 1000))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        with formatter.section("Options"):
            formatter.write_dl([record for _, record in self.records(ctx)])

    def records(self, ctx: Any) -> Iterator[tuple[Any, tuple[str, str]]]:
        """Yield parameters, each with its column of names and its help."""
        words = {name: value for value, names in VALUES.items() for name in names.split()}
        for parameter in self.get_params(ctx):
            name, about = parameter.get_help_record(ctx) or ("", "")
            name, *kinds = re.split(r" <(.+)>", name)[:2]
            if kinds and parameter.param_type_name != "argument":
                name += f" {KINDS.get(kinds[0]) or words.get(parameter.name, 'TEXT')}"
            if name:
                yield parameter, (name, about)


class Sectioned(Complete):
    """A command whose help has sections; if it has --help-all, --help has one sentence on each everyday option."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        titles = {name: title for title, names in SECTIONS.items() for name in names.split()}
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS}
        for parameter, (name, about) in sorted(self.records(ctx), key=lambda one: one[0].name == "help_all"):
            title = "Arguments" if parameter.param_type_name == "argument" else titles.get(parameter.name, OTHERS)
            sections[title].append((name, self._cut(about, ctx)))
        for title, records in sections.items():
            if records and (title in EVERYDAY or self._cut("A. B", ctx) == "A. B"):
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, and what stands below them."""
        examples, _, limits = (self.epilog or "").partition("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join(filter(None, (examples, self._cut(limits.strip(), ctx)))))

    def _cut(self, text: str, ctx: Any) -> str:
        """Return the first sentence of a text if the help is short, else the whole text."""
        short = not ctx.meta.get(__name__) and any(one.name == "help_all" for one in self.params)
        return re.split(r"(?<=\.) +(?=[A-Z])", text)[0] if short else text
