"""Sections of options in `--help`, everyday options first."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

__all__ = ["Sectioned"]

MOST = 10  # options that need no sections
OTHERS = "Options of this command"  # all that would stand in a section alone
SECTIONS = {
    "Everyday options": "data claim epsilon cell size runs confidence seed out as_json help",
    OTHERS: "",
    "Neighboring databases": "cells people move_to add_row at replace_row relation public_data",
    "Systems of `plaudit list`": "set stage pair",
    "Files for systems": "areas count spec",
    "Outputs of another program": "outputs_x outputs_y distance",
    "Time and machines": "jobs backend store timeout",
}


class Sectioned(TyperCommand):
    """A command whose help has sections, if it has many options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        arguments: list[tuple[str, str]] = []
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS}
        titles = {name: title for title, names in SECTIONS.items() for name in names.split()}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append(record)
            else:
                sections[titles.get(parameter.name or "", OTHERS)].append(record)
        if sum(map(len, sections.values())) <= MOST:
            sections = {"Options": [record for records in sections.values() for record in records]}
        alone = [title for title, records in sections.items() if len(records) == 1]
        sections.setdefault(OTHERS, []).extend(sections.pop(title)[0] for title in alone if title != OTHERS)
        for title, records in {"Arguments": arguments, **sections}.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
