"""Where the numbers of a report come from, and how to make them again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from audit.report.words import visible
from audit.results import AuditResult
from audit.results.formatting import percent
from audit.results.provenance import PACKAGES

__all__ = ["day_of", "full_origin", "origin", "public_origin", "reproduction"]

MOST, LONGEST = 60, 1000  # entries of a provenance, letters of an entry
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
    rows = [("software", ", ".join(texts)), ("made on", day_of(result.provenance))]
    return [(name, text) for name, text in rows if text]


def day_of(provenance: Mapping[str, Any]) -> str:
    """Return the day on which a result was made; nothing if it is not known."""
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
    parameters = result.parameters
    family = type(result.claim).__name__
    sure, seed = f"confidence={result.confidence!r}", f"rng={result.seed_entropy!r}"
    if result.design == "one_run":
        share = parameters.get("share")
        share = share if isinstance(share, int | float) else None
        name, first, rest = "measure_loss_one_run", "mechanism, canaries", [f"share={share!r}"]
    elif result.design == "outputs":
        name, first = "measure_loss_from_outputs", "outputs_x, outputs_y"
        rest = [f"relation={result.relation!r}", f"distance={result.distance}", f"unit={result.unit!r}"]
        rest += _choice(result, parameters)
    else:
        name, first = "measure_loss", "mechanism, pair"
        size = parameters.get("size")
        size = size if isinstance(size, int) else result.size
        stop = ['stop="early"'] if parameters.get("stop") == "early" else []
        rest = [f"size={size}", *_choice(result, parameters), *stop]
    lines = [
        f"from audit import {family}, {name}",
        "",
        f"# mechanism: {visible(result.mechanism, LONGEST)}",
        f"# databases: {visible(result.pair, LONGEST)}",
        *([f"# event: {visible(result.event, LONGEST)}"] if "event=event" in rest else []),
        f"result = {name}(",
        f"    {first}, {result.claim!r},",
        f"    {', '.join([*rest, sure, seed])},",
        ")",
    ]
    words = f"In Python, with the same mechanism, databases and software, at {percent(result.confidence)} confidence:"
    if parameters.get("seedable") is False:
        words = f"Its randomness is not from the seed: other runs, other counts. {words}"
    return words, lines


def _choice(result: AuditResult, parameters: dict[str, Any]) -> list[str]:
    share = parameters.get("selection")
    if result.selection == 0:
        return ["event=event"]
    return [f"selection={share!r}"] if isinstance(share, int | float) else []


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
