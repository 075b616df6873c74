"""The page of reliability: every number is one that was saved."""

from __future__ import annotations

from typing import Any

from experiments.experiment import most_misses
from tests.reliability.numbers import often
from tests.reliability.rows import ROWS, Row

Numbers = dict[str, dict[str, Any]]  # by number of the row
COMMAND = "python -m tests.reliability measure"


def page(rows: Numbers) -> str:
    """Return the page in Markdown: what failed first, then the rows, then what some of them say in detail."""
    failed = sum(bool(row["failed"]) for row in rows.values())
    answer = f"In {failed} of {len(rows)} rows something failed" if failed else f"Nothing failed in {len(rows)} rows"
    missing = [str(row.number) for row in ROWS if str(row.number) not in rows]
    minutes = sum(row["seconds"] for row in rows.values()) / 60
    lines = [
        "# What was tried on plaudit itself",
        f"{answer}." + (f" Not measured yet: rows {', '.join(missing)}." if missing else ""),
        "Each row is what tests of plaudit tried, how often, and which of them failed. A row is measured again by its "
        f"command, all of them by `{COMMAND} --again`; one after the other, these tests took {minutes:.0f} minutes. "
        "Written by `make reliability` from [reliability.json](reliability.json); do not edit.",
        "![what was tried](reliability.svg)",
        "\n".join(
            [
                "| row | what | how often | tests | failed | measured | command | what others publish |",
                "|---|---|---|---|---|---|---|---|",
                *(_line(row, rows[str(row.number)]) for row in ROWS if str(row.number) in rows),
            ]
        ),
    ]
    if (first := rows.get("1")) and first["told"]:
        lines += ["## Coverage", _coverage(first["told"])]
    for row in ROWS:
        if found := rows.get(str(row.number)):
            lines += _details(row, found)
    return "\n\n".join(lines) + "\n"


def _line(row: Row, found: dict[str, Any]) -> str:
    failed = f"**{len(found['failed'])}**" if found["failed"] else "0"
    out = f"; {len(found['left_out'])} left out" if found["left_out"] else ""
    cells = [f"{row.title}. Counted: {row.tries}.", often(found), f"{found['tests']:,}{out}", failed, found["measured"]]
    return f"| {row.number} | {' | '.join(cells)} | `{COMMAND} {row.number}` | {row.others} |"


def _coverage(told: list[dict[str, Any]]) -> str:
    """Return the misses of every bound by confidence, and how many there may be."""
    levels = sorted({one["confidence"] for one in told})
    heads = " | ".join(f"{level:g}" for level in levels)
    lines = [f"| bound or audit | audits of each | {heads} |", "|---|---|" + "---|" * len(levels)]
    cases = list(dict.fromkeys((one["group"], one["case"]) for one in told))
    for group, case in cases:
        of = {one["confidence"]: one for one in told if (one["group"], one["case"]) == (group, case)}
        audits = {one["tried"] for one in of.values()}
        cells = [
            f"{of[level]['misses']} of {most_misses(of[level]['tried'], level)}" if level in of else ""
            for level in levels
        ]
        lines.append(f"| {group}: {case} | {', '.join(f'{n:,}' for n in sorted(audits))} | {' | '.join(cells)} |")
    return "Misses of the number that valid bounds exceed once in 10,000 rows.\n\n" + "\n".join(lines)


def _details(row: Row, found: dict[str, Any]) -> list[str]:
    """Return what of a row failed, was left out, or was told besides."""
    lines = [f"- failed: `{name}`" for name in found["failed"]]
    lines += [f"- left out: `{name}` ({why})" for name, why in found["left_out"].items()]
    if row.number != 1:
        lines += [f"- {one['words']}" for one in found["told"] if "words" in one]
    return [f"## Row {row.number}: {row.title}", "\n".join(lines)] if lines else []
