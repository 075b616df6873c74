"""Format audits as lines, tables and data, with the same text and numbers in every format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence

from audit.io.text import in_cell, printable
from audit.report.words import bugs_found, remedy
from audit.results import AuditResult, ReplayRecord
from audit.results.formatting import COLUMNS, WARNING, row, texts

__all__ = ["FORMS", "Named", "to_annotations", "to_csv", "to_github", "to_json", "to_lines", "to_markdown"]

Named = Sequence[tuple[str, AuditResult]]  # at least one audit, each with its name
Results = Sequence[tuple[str, AuditResult | ReplayRecord]]

LEVELS = {"violated": "error", "no power": "warning"}  # of annotations
RIGHT = {"measured", "confidence", "detectable", "ceiling"}  # right-aligned
HOSTILE = {"name", "mechanism", "event", "attack", "notes", "witness", "pair"}  # may be hostile


def to_lines(audits: Named) -> str:
    """Return one line for each audit; it begins with the name, unless that is the name of the mechanism."""
    return _lines([str(audit) if name == audit.mechanism else f"{printable(name)}: {audit}" for name, audit in audits])


def to_markdown(audits: Named) -> str:
    """Return a table in GitHub Markdown, with hostile text in code spans."""
    rule = ["---:" if key in RIGHT else ":---" for key in COLUMNS]
    cells_of = (row(audit.summary(name)) for name, audit in audits)
    rows = [[_in_code(words) if key in HOSTILE else words for key, words in cells.items()] for cells in cells_of]
    lines = [f"| {' | '.join(entries)} |" for entries in (COLUMNS.values(), rule, *rows)]
    warning = [f"**{WARNING}**\n"] if any(audit.confidential for _, audit in audits) else []
    return _lines([*warning, *lines])


def to_csv(audits: Named) -> str:
    """Return CSV (RFC 4180) with text in quotes and formulas disarmed."""
    lines = []
    for name, audit in audits:
        summary = audit.summary(name)
        number = {key for key, value in summary.items() if isinstance(value, int | float) and key != "confidential"}
        cells = texts(summary).items()
        lines.append(",".join(words if key in number or not words else _quoted(words) for key, words in cells))
    return "".join(f"{entry}\r\n" for entry in [",".join(summary), *lines])


def to_json(results: Results) -> str:
    """Return strict JSON in ASCII: an object that maps each name to all fields of its result."""
    return json.dumps({name: result.to_dict() for name, result in results}, indent=1, allow_nan=False) + "\n"


def to_annotations(results: Results, known_bugs: Collection[str] = ()) -> str:
    """Return GitHub workflow commands: errors for unexpected violations, warnings for results without power."""
    lines = []
    for name, result in results:
        expected = result.verdict == "violated" and name in known_bugs
        if (level := LEVELS.get(result.verdict)) is not None and not expected:
            advice = remedy(result, "--size") if isinstance(result, AuditResult) else ""
            words = f"{result}. What would help: {advice}." if advice else f"{result}"
            title = _escaped(printable(f"{result.verdict}: {name}"), {":": "%3A", ",": "%2C"})
            lines.append(f"::{level} title={title}::{_escaped(printable(words), {})}")
    return _lines(lines)


def to_github(results: Results, known_bugs: Collection[str] = ()) -> str:
    """Return the summary of a GitHub job: a heading that counts promises, a table of audits, a line for each replay."""
    verdicts = [result.verdict for name, result in results if name not in known_bugs]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    audits = [(name, result) for name, result in results if isinstance(result, AuditResult)]
    records = [(name, result) for name, result in results if isinstance(result, ReplayRecord)]
    replays = [f"- {_in_code(printable(f'{name}: {record}'))}" for name, record in records]
    bugs = [f"{words}\n"] if (words := bugs_found(audits, known_bugs)) else []
    heading = f"### Privacy audits: {counts or 'of known bugs only'}\n"
    return _lines([heading, *bugs, *([to_markdown(audits)] if audits else []), *replays])


FORMS: dict[str, Callable[[Named], str]] = {"markdown": to_markdown, "csv": to_csv, "line": to_lines, "json": to_json}


def _escaped(words: str, more: dict[str, str]) -> str:
    return "".join(({"%": "%25"} | more).get(letter, letter) for letter in words)


def _lines(lines: list[str]) -> str:
    return "".join(f"{entry}\n" for entry in lines)


def _in_code(words: str) -> str:
    """Return text in code spans, which Markdown does not interpret; pipes, which would end the cell, are escaped."""
    spans = []
    for part in words.split("|"):
        fence = "`" * (1 + max((len(run) for run in re.findall("`+", part)), default=0))
        edge = " " if part.strip("`") != part or part != part.strip() else ""  # Markdown strips one space at each end
        spans.append(part and f"{fence}{edge}{part}{edge}{fence}")
    return "&#124;".join(spans)


def _quoted(words: str) -> str:
    return '"' + in_cell(words).replace('"', '""') + '"'
