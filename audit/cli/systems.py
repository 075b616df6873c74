"""`plaudit list`, and the commands `release` and `explore`, which the systems implement."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer

from audit.cli.exits import WITHIN
from audit.cli.helps import Sectioned
from audit.cli.inputs.options import suggestion, with_options

__all__ = ["list_systems", "run_system"]


@with_options
def list_systems(
    word: Annotated[
        str, typer.Argument(help="Describe names with this word in the description or at the start of a name part.")
    ] = "",
    as_json: Annotated[bool, "--json", "Print JSON."] = False,
) -> int:
    """List systems, benchmarks of the literature and known bugs by name."""
    from audit.installed import plugin
    from audit.io.terminal import say

    known = plugin("systems").systems()
    begins = re.compile(rf"(?<!\w){re.escape(word.strip())}", re.IGNORECASE)
    whole = re.compile(rf"{begins.pattern}(?!\w)", re.IGNORECASE)
    rows: dict[str, dict[str, Any]] = {}
    for name, system in known.items():
        if begins.search(f"{name} {system.group}") or whole.search(system.about):
            rows[name] = _described(system)
    if not rows:
        hint = suggestion(word, known, ": see `plaudit list`")
        raise ValueError(f"no name or description has the word {word!r}{hint}")
    if as_json:
        print(json.dumps(rows, indent=1))
        return WITHIN
    for number, group in enumerate(dict.fromkeys(row["group"] for row in rows.values())):  # in the order of the systems
        say(*[""] * (number > 0), f"{group[0].upper()}{group[1:]}")
        members = {name: row for name, row in rows.items() if row["group"] == group}
        if not word:
            say(", ".join(members))
        for name, row in members.items() if word else ():
            parts = {"Promise": [row["promise"]], **{part: row[part] for part in ("pairs", "stages", "presets")}}
            facts = "; ".join(f"{part} {', '.join(words)}" for part, words in parts.items() if words)
            say(f"- {name}: {row['about']} {facts}")
    notes = dict.fromkeys(f"- {pair}: {note}" for name in rows if word for pair, note in known[name].pair_notes.items())
    if notes:
        say("", "Pairs", *notes)
    if not word:
        say("", "`plaudit list WORD` says what those with it in their names are, and what they promise.")
    return WITHIN


def _described(system: Any) -> dict[str, Any]:
    """Return the row of a system in the list; if its extra is missing, the row names it instead of the promise."""
    try:
        promise, relation = str(system.claim), system.claim.relation
    except ImportError as error:
        promise, relation = str(error), ""
    pairs = ["any counts of people"] if system.of_counts else list(system.pairs)
    facts = {"about": system.about, "promise": promise, "relation": relation, "pairs": pairs}
    return facts | {"stages": list(system.stages), "presets": list(system.presets), "group": system.group}


def run_system(context: typer.Context) -> int:
    """Run a command of the systems, which read its options."""
    from audit.installed import plugin

    return int(plugin("systems").run(context.info_name, context.args, Sectioned))
