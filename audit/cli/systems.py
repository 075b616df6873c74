"""`plaudit list`, `release` and `explore`: what installed systems offer; what they do is theirs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from audit.cli.exits import WITHIN

__all__ = ["list_systems", "run_system"]


def list_systems(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> int:
    """List what `audit` knows by name: systems, benchmarks of the literature and known bugs."""
    from audit.installed import offered

    rows = {name: _described(system) for name, system in offered("systems").systems().items()}
    if as_json:
        print(json.dumps(rows, indent=1))
        return WITHIN
    width = max(map(len, rows))
    for name, row in rows.items():
        print(f"{name:{width}}  {row['about']}")
        parts = {"promise": [row["promise"]], **{part: row[part] for part in ("pairs", "stages", "presets")}}
        told = "; ".join(f"{part} {', '.join(words)}" for part, words in parts.items() if words)
        print(f"{'':{width}}    {told}")
    return WITHIN


def _described(system: Any) -> dict[str, Any]:
    """Return what a list says of a system; of one whose extra is not installed, no promise but which extra it needs."""
    try:
        promise, relation = str(system.claim), system.claim.relation
    except ImportError as error:
        promise, relation = str(error), ""
    pairs = ["any counts of people"] if system.of_counts else list(system.pairs)
    told = {"about": system.about, "promise": promise, "relation": relation, "pairs": pairs}
    return told | {"stages": list(system.stages), "presets": list(system.presets)}


def run_system(context: typer.Context) -> int:
    """Hand a command over to the systems, which know their own options."""
    from audit.installed import offered

    return int(offered("systems").run(context.info_name, context.args))
