"""Measure the rows of docs/reliability.md, or write the page from what was measured."""

import json
import math
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import typer

from audit.bounds.limits import clopper_pearson_lower, clopper_pearson_upper
from audit.cli.exits import INTERRUPTED, VIOLATION, WITHIN, finished, run_typed
from audit.io.files import Kind, write_atomically
from audit.results.files import read_json, write_json
from audit.results.formatting import at_most
from audit.results.provenance import provenance
from experiments.experiment import MarkdownTable, most_misses

ROOT = Path(__file__).parents[2]
NUMBERS, PAGE = ROOT / "docs" / "reliability.json", ROOT / "docs" / "reliability.md"
KIND = Kind("the page of reliability", b"# What was tried on plaudit")
ROWS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("rows.toml").read_text("utf-8"))
TEXTS = ROWS.pop("page")
LIMITS = clopper_pearson_lower, clopper_pearson_upper
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__)


@app.command()
def measure(row: Annotated[str, typer.Argument(help="The number of the row.")]) -> int:
    """Run the tests of a row, slow ones too, and save what they tried. Random draws are those of the day."""
    if row not in ROWS:
        raise ValueError(f"the row must be one of {', '.join(ROWS)}, got {row!r}")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "-m", f"reliability(row={row}) and not quick", "--numprocesses", "2"]
        options += ["-o", "junit_family=xunit1", f"--junitxml={report}"]
        environment = os.environ | {"PLAUDIT_TEST_SEED": date.today().strftime("%Y%m%d")}
        ended = subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, env=environment).returncode
        if ended not in (0, 1):
            return INTERRUPTED
        measured = added_up(ElementTree.parse(report).iter("testcase"))
    rows = read_json(NUMBERS)["rows"] if NUMBERS.exists() else {}
    write_json(NUMBERS, {"kind": "reliability", "rows": {**rows, row: measured}, "provenance": provenance()})
    write()
    return VIOLATION if measured["failed"] else WITHIN


@app.command("page")
def write() -> int:
    """Write docs/reliability.md from the saved numbers, and from nothing else."""
    write_atomically(PAGE, page(read_json(NUMBERS)["rows"]), KIND)
    print(f"Written: {PAGE.relative_to(ROOT)}.")
    return 0


def added_up(cases: Iterable[ElementTree.Element]) -> dict[str, Any]:
    """Return what the tests of pytest's report tried and told, and which failed or were left out."""
    failed, left_out, tried, seconds, told = [], {}, 0, 0.0, []
    for case in cases:
        if not case.get("classname") and case.find("error") is None:  # a module of another row that needs an extra
            continue
        name = f"{case.get('classname')}::{case.get('name')}"
        if (skipped := case.find("skipped")) is not None:
            left_out[name] = skipped.get("message", "")
            continue
        properties = {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
        texts = ("words", "case", "group")
        told.append({key: one if key in texts else json.loads(one) for key, one in properties.items()})
        tried += told[-1].get("tried", 1)
        seconds += float(case.get("time", 0))
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
    kept = sorted((one for one in told if one.keys() - {"tried"}), key=json.dumps)
    day = date.today().isoformat()
    return {"tried": tried, "failed": failed, "left_out": left_out, "seconds": seconds, "measured": day, "told": kept}


def page(rows: dict[str, dict[str, Any]]) -> str:
    """Return the page in Markdown: what failed first, then the rows, then each by itself."""
    failed = sum(bool(row["failed"]) for row in rows.values())
    answer = (
        f"In {failed} of {len(rows)} rows something failed."
        if failed
        else f"Nothing failed in {len(rows)} rows. {TEXTS['gate']}"
    )
    if missing := [number for number in ROWS if number not in rows]:
        answer += f" Not measured yet: {', '.join(f'row {number}' for number in missing)}."
    lines, sections = [], []
    for number, row in ROWS.items():
        if number not in rows:
            continue
        one = rows[number]
        reached = [part["reached"] for part in one["told"] if "reached" in part]
        often = f"{sum(reached):,} of {one['tried']:,}" if reached else f"{one['tried']:,}"
        shown = row.get("independent") and not one["failed"]
        rate = f"1 in {math.floor(1 / clopper_pearson_upper(0, one['tried'], confidence=0.95)):,}" if shown else ""
        many = f"**{len(one['failed'])}**" if one["failed"] else "0"
        minutes = math.ceil(one["seconds"] / 60)
        lines.append(f"| {number} | {row['title']} | {often} | {many} | {rate} | {minutes:,} | {one['measured']} |")
        sections.append(_section(number, row, one))
    return "\n".join([TEXTS["head"].format(answer=answer, table="\n".join(lines)), *sections])


def _section(number: str, row: dict[str, Any], one: dict[str, Any]) -> str:
    """Return what a row counts, what of it failed or was left out, and its tables."""
    heads = {"tries": "Counted", "failure": "A failure", "uncovered": "Not covered"}
    lines = [f"- {head}: {row[key]}." for key, head in heads.items()]
    lines += [f"- failed: `{name}`" for name in one["failed"]]
    lines += [f"- left out: {often} tests ({why})" for why, often in Counter(one["left_out"].values()).items()]
    for words in (part["words"] for part in one["told"] if "words" in part):
        first, more, others = words.partition("; not noticed: ")
        lines.append(f"- {first}" + f"; not noticed and not explained: {others.count('(not explained)')}" * bool(more))
    tables = [show([part for part in one["told"] if key in part]) for key, show in TABLES.items()]
    shown = [str(table) for table in tables if table.rows]
    return "\n\n".join([f"## Row {number}: {row['title']}", "\n".join(lines), *shown]) + "\n"


def _misses(told: list[dict[str, Any]]) -> MarkdownTable:
    """Return how often the worst case of a group missed by confidence, and how often it may."""
    levels = sorted({one["confidence"] for one in told})
    rows: list[tuple[str, ...]] = []
    for audits in sorted({one["tried"] for one in told}, reverse=True):
        most = [most_misses(audits, level) for level in levels]
        rates = [100 * clopper_pearson_upper(misses, audits, confidence=0.95) for misses in most]
        rows.append(("**may miss**", "", f"{audits:,}", *(f"{misses:,}" for misses in most)))
        shown = [f"{at_most(float(rate), 2)}%" for rate in rates]
        rows.append(("**smallest true rate that would have failed (95%)**", "", "", *shown))
        for group in dict.fromkeys(one["group"] for one in told if one["tried"] == audits):
            own = [one for one in told if (one["group"], one["tried"]) == (group, audits)]
            misses = [[one["misses"] for one in own if one["confidence"] == level] for level in levels]
            cells = [f"{max(some):,}" if some else "" for some in misses]
            rows.append((group, str(len({one["case"] for one in own})), f"{audits:,}", *cells))
    heads = ("most misses of a case, by confidence", "cases", "audits of each", *(f"{level:g}" for level in levels))
    return MarkdownTable(heads, rows)


def _shares(told: list[dict[str, Any]]) -> MarkdownTable:
    """Return in how many audits cases were found: together those of one announced power, or found as often."""
    lists: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for one in sorted(told, key=itemgetter("found")):
        power = one.get("announced")
        lists[one["tried"], one["found"] if power is None else f"announced {power:.0%}"].append(one)
    rows = []
    for (tried, kind), own in lists.items():
        names = f"{kind}, {len(own)} cases" if isinstance(kind, str) else ", ".join(one["case"] for one in own)
        low, high = (limit(own[0]["found"], tried, confidence=0.975) for limit in LIMITS)
        fewest = f"{own[0]['found']:,} ({math.floor(100 * low)}% to {math.ceil(100 * high)}%)"
        rows.append((names, f"{tried:,}", fewest, f"{own[-1]['found']:,}"))
    return MarkdownTable(("cases", "audits of each", "fewest found (95% interval)", "most found"), rows)


TABLES = {"misses": _misses, "found": _shares}


def main() -> None:
    """Run the command; every error is one line and exit code 2."""
    command, given = typer.main.get_command(app), sys.argv[1:] or ["--help"]
    sys.exit(finished(lambda: run_typed(command, "python -m tests.reliability", given), "reliability"))


if __name__ == "__main__":
    main()
