"""Where the numbers of a report come from, and how to make them again."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import islice
from typing import Any

from audit.report.words import visible
from audit.results import AuditResult, LossEstimate
from audit.results.formatting import percent
from audit.results.provenance import PACKAGES

__all__ = ["day_of", "full_origin", "origin", "public_origin", "reproduction"]

MOST, LONGEST = 60, 1000  # entries of a provenance, letters of an entry
CALLS = {
    "coins": ("measure_loss", "mechanism, pair"),
    "outputs": ("measure_loss_from_outputs", "outputs_x, outputs_y"),
    "one_run": ("measure_loss_one_run", "mechanism, canaries"),
}
VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}((a|b|rc|\.post|\.dev)\d{1,4})?")


def origin(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Return values, such as a provenance, as rows of a table: names and values."""
    rows = [(visible(key, LONGEST), visible(_plain(value), LONGEST)) for key, value in islice(values.items(), MOST)]
    return [*rows, ("and more", f"{len(values) - MOST} entries")] if len(values) > MOST else rows


def full_origin(result: AuditResult) -> list[tuple[str, str]]:
    """Return where a result comes from, but for its command."""
    seed = "taken out" if result.seed_entropy is None else str(result.seed_entropy)
    provenance = {key: value for key, value in result.provenance.items() if key != "command"}
    return [("seed", seed), ("seconds", f"{result.seconds:.3g}"), *origin(provenance)]


def public_origin(result: AuditResult) -> list[tuple[str, str]]:
    """Return the part of a provenance that discloses nothing: versions of known packages, and the day."""
    versions = result.provenance.get("software")
    versions = versions if isinstance(versions, dict) else {}
    software = {name: versions.get(name) for name in PACKAGES} | {"Python": result.provenance.get("python")}
    texts = [
        f"{name} {version}"
        for name, version in software.items()
        if isinstance(version, str) and VERSION.fullmatch(version)
    ]
    rows = [("software", ", ".join(texts)), ("made on", day_of(result))]
    return [(name, text) for name, text in rows if text]


def day_of(result: Any) -> str:
    """Return the day on which a result was made; nothing if it is not known."""
    provenance = result.settings if isinstance(result, LossEstimate) else result.provenance
    try:
        return datetime.fromisoformat(str(provenance.get("created"))).date().isoformat()
    except ValueError:
        return ""


def reproduction(result: AuditResult) -> tuple[str, list[str]]:
    """Return how to make a result again, in words and in lines: the command that made it, or Python.

    In the lines of Python, whatever comes from a file stands in comments, except numbers.
    """
    command = result.provenance.get("command")
    if isinstance(command, str):
        return "In a shell. The command is from the result file: read it before you run it.", [visible(command)]
    parameters, design = result.parameters, result.design
    numbers = {name: value for name, value in parameters.items() if isinstance(value, int | float)}
    of_design: dict[str, dict[str, Any]] = {
        "coins": {"size": numbers.get("size", result.size)}
        | ({"stop": "early"} if parameters.get("stop") == "early" else {}),
        "outputs": {"relation": result.relation, "distance": result.distance, "unit": result.unit},
        "one_run": {},
    }
    options = of_design[design]
    event = ["event=event"] if result.selection == 0 and design != "one_run" else []
    share = "share" if design == "one_run" else "selection"
    options |= {share: numbers[share]} if share in numbers and not event else {}
    options |= {"confidence": result.confidence, "rng": result.seed_entropy}
    arguments = [*event, *(f"{name}={value!r}" for name, value in options.items())]
    lines = [
        f"from audit import {type(result.claim).__name__}, {CALLS[design][0]}",
        "",
        f"# mechanism: {visible(result.mechanism, LONGEST)}",
        f"# databases: {visible(result.pair, LONGEST)}",
        *([f"# event: {visible(result.event, LONGEST)}"] if event else []),
        f"result = {CALLS[design][0]}(",
        f"    {CALLS[design][1]}, {result.claim!r},",
        f"    {', '.join(arguments)},",
        ")",
    ]
    words = f"In Python, with the same mechanism, databases and software, at {percent(result.confidence)} confidence:"
    if parameters.get("seedable") is False:
        words = f"Its randomness is not from the seed: other runs, other counts. {words}"
    return words, lines


def _plain(value: Any) -> str:
    """Return a value of JSON as text; of one that is nested too deeply, say so."""
    try:
        if isinstance(value, dict):
            entries = ((key, entry) for key, entry in islice(value.items(), MOST) if entry != {})
            return ", ".join(
                f"{key} ({_plain(entry)})" if isinstance(entry, dict) else f"{key} {_plain(entry)}"
                for key, entry in entries
            )
        return str(value)
    except RecursionError:
        return "(nested too deeply)"
