"""Helps of commands: everyday options first, the rest with --help-all, and values in a user's words."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["HELP_ALL", "Sectioned"]

EVERYDAY = "data claim epsilon cell size runs pairs early confidence seed out verbose as_json help help_all"
TITLES = ("Arguments", "Everyday options", "Options")  # what --help shows if there is --help-all
KINDS = {"path": "FILE", "int": "NUMBER", "float": "NUMBER", "list[int]": "NUMBER"}  # of values; others have their name


def _print_all(context: typer.Context, requested: bool) -> None:
    if requested:
        context.meta[__name__] = True
        print(context.get_help())
        raise typer.Exit


HELP_ALL: dict[str, Any] = {"callback": _print_all, "is_eager": True}


class Sectioned(TyperCommand):
    """A command whose summary is whole. If it has --help-all, --help has one sentence on each everyday option."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first sentence of the help, however long it is."""
        return super().get_short_help_str(max(limit, 1000))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options in sections, which are the dataclasses of options."""
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in TITLES}
        several = any(one.name == "help_all" for one in self.params)
        brief = several and not ctx.meta.get(__name__)
        parameters: list[Any] = sorted(self.get_params(ctx), key=lambda one: one.name == "help_all")
        for parameter in parameters:
            title = "Everyday options" if several and parameter.name in EVERYDAY.split() else parameter.rich_help_panel
            title = "Arguments" if parameter.param_type_name == "argument" else title or "Options"
            name, about = parameter.get_help_record(ctx) or ("", "")
            name, *kinds = re.split(r" <(.+)>", name)[:2]
            if kinds and title != "Arguments":
                value = KINDS.get(kinds[0], str(parameter.name).rpartition("_")[2].upper())
                name += " FOLDER" if parameter.name in ("out", "store") else f" {value}"
            sections.setdefault(title, []).append((name, re.split(r"(?<=\.) +(?=[A-Z])", about)[0] if brief else about))
        for title, records in sections.items():
            if records and (title in TITLES or not brief):
                with formatter.section(title):
                    formatter.write_dl(records)
