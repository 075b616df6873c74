"""`plaudit list`, `release` and `explore`: what installed systems offer; what they do is theirs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from audit.cli.exits import WITHIN

__all__ = ["list_systems", "run_system"]


def list_systems(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> int:
    """List the algorithms and known bugs that `audit` knows by name."""
    from audit.cli.inputs.mechanisms import systems_of_counts

    rows = {name: system.about for name, system in systems_of_counts().items()}
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        width = max(map(len, rows))
        for name, about in rows.items():
            print(f"{name:{width}}  {about}")
    return WITHIN


def run_system(context: typer.Context) -> int:
    """Hand a command over to the systems, which know their own options."""
    from audit.installed import offered

    return int(offered("systems").run(context.info_name, context.args))
