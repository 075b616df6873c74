"""The page of reliability: every number is one that was saved."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from audit.bounds.limits import clopper_pearson_lower, clopper_pearson_upper
from audit.results.formatting import at_most
from experiments.experiment import most_misses
from tests.reliability.numbers import often, sums
from tests.reliability.rows import ROWS, Row

Numbers = dict[str, dict[str, Any]]  # by number of the row
COMMAND = "python -m tests.reliability measure"


def page(rows: Numbers) -> str:
    """Return the page in Markdown: what failed first, then the rows, then each by itself."""
    failed = sum(bool(row["failed"]) for row in rows.values())
    answer = f"In {failed} of {len(rows)} rows something failed" if failed else f"Nothing failed in {len(rows)} rows"
    missing = [str(row.number) for row in ROWS if str(row.number) not in rows]
    minutes = sum(row["seconds"] for row in rows.values()) / 60
    lines = [
        "# What was tried on plaudit itself",
        f"{answer}." + (f" Not measured yet: rows {', '.join(missing)}." if missing else ""),
        'This page is a gate: a test fails while a row has a failure, so "0 failed" is no evidence by itself. Look at '
        "the failure rate that would have shown, and at what a row does not cover.",
        f"`{COMMAND} N` measures row N again, `{COMMAND} --again` all of them; their tests took {minutes:.0f} minutes "
        "one after the other. `make reliability` writes the page from [reliability.json](reliability.json).",
        "\n".join(
            [
                "| row | what was tried | tries | failed | rate that would have shown | measured |",
                "|---|---|---|---|---|---|",
                *(_line(row, rows[str(row.number)]) for row in ROWS if str(row.number) in rows),
            ]
        ),
        '"1 in 300" means: if 1 try in 300 failed, at least one failure would have shown here, with 95% probability. '
        "Such tries are drawn anew on each day of measurement. A failure that is mended that day is tried again on the "
        "same draws. The column is empty where tries are not drawn at random: each is a case of its own, or its "
        "section states the limits.",
    ]
    for row in ROWS:
        if numbers := rows.get(str(row.number)):
            lines += _details(row, numbers)
    return "\n\n".join(lines) + "\n"


def _line(row: Row, numbers: dict[str, Any]) -> str:
    failed = f"**{len(numbers['failed'])}**" if numbers["failed"] else "0"
    shown = row.independent and not numbers["failed"]
    rate = f"1 in {math.floor(1 / clopper_pearson_upper(0, numbers['tried'], confidence=0.95)):,}" if shown else ""
    return f"| {row.number} | {row.title} | {often(numbers)} | {failed} | {rate} | {numbers['measured']} |"


def _details(row: Row, numbers: dict[str, Any]) -> list[str]:
    """Return what a row counts, what of it failed or was left out, and its tables."""
    told = numbers["told"]
    parts = {"Counted": row.tries, "A failure": row.failure, "Not covered": row.uncovered, "Others publish": row.others}
    lines = [f"- {head}: {words}." for head, words in parts.items() if words]
    lines += [f"- failed: `{name}`" for name in numbers["failed"]]
    lines += [f"- left out: `{name}` ({why})" for name, why in numbers["left_out"].items()]
    lines += [f"- {one['words']}" for one in told if "words" in one]
    lines += [f"- {line}" for line in sums([one["counts"] for one in told if "counts" in one])]
    tables = [_misses([one for one in told if "misses" in one]), _shares([one for one in told if "found" in one])]
    return [f"## Row {row.number}: {row.title}", "\n".join(lines), *filter(None, tables)]


def _misses(told: list[dict[str, Any]]) -> str:
    """Return how often every bound missed by confidence, how often it may, and which true rate would have shown."""
    if not told:
        return ""
    levels = sorted({one["confidence"] for one in told})
    heads = "|".join(f" {level:g} " for level in levels)
    lines = [f"| bound or audit | audits of each |{heads}|", "|---|---|" + "---|" * len(levels)]
    for audits in sorted({one["tried"] for one in told}, reverse=True):
        most = [most_misses(audits, level) for level in levels]
        rates = [100 * clopper_pearson_upper(misses, audits, confidence=0.95) for misses in most]
        lines.append(f"| **may miss** | {audits:,} | {' | '.join(f'{misses:,}' for misses in most)} |")
        shown = " | ".join(f"{at_most(float(rate), 2)}%" for rate in rates)
        lines.append(f"| **smallest true rate that would have failed (95%)** | | {shown} |")
        for group, case in dict.fromkeys((one["group"], one["case"]) for one in told if one["tried"] == audits):
            misses = {one["confidence"]: one["misses"] for one in told if (one["group"], one["case"]) == (group, case)}
            cells = " | ".join(f"{misses[level]:,}" if level in misses else "" for level in levels)
            lines.append(f"| {group}: {case} | {audits:,} | {cells} |")
    return "\n".join(lines)


def _shares(told: list[dict[str, Any]]) -> str:
    """Return in how many audits each case was found, with a 95% interval, beside what was announced.

    Cases that all of as many audits found are in one line.
    """
    announced = ["announced"] * any("announced" in one for one in told)
    heads = ["case", "audits of each", "found", "95% interval", *announced]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lists: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for place, one in enumerate(told):
        always = one["found"] == one["tried"] and not announced
        lists[one["tried"] if always else ("by itself", place)].append(one)
    for one, *others in lists.values():
        found, tried = one["found"], one["tried"]
        low = 100 * clopper_pearson_lower(found, tried, confidence=0.975)
        high = 100 * clopper_pearson_upper(found, tried, confidence=0.975)
        case = ", ".join(each["case"] for each in (one, *others))
        cells = [case, f"{tried:,}", f"{found:,}", f"{math.floor(low)}% to {math.ceil(high)}%"]
        cells += [f"{100 * one[key]:.0f}%" for key in announced]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) if told else ""
