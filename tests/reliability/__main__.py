"""Measure the rows of the page of reliability, or write the page from what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer

from audit.cli.exits import INTERRUPTED, finished, run_typed
from audit.io.files import Kind, write_atomically
from audit.results.files import read_json, write_json
from audit.results.provenance import provenance
from tests.reliability.numbers import added_up
from tests.reliability.page import page
from tests.reliability.plugin import collected, logged
from tests.reliability.rows import ROWS

ROOT = Path(__file__).parents[2]
LOG = ROOT / "build" / "reliability" / "tests.jsonl"
NUMBERS, PAGE = ROOT / "docs" / "reliability.json", ROOT / "docs" / "reliability.md"
KINDS = {LOG: Kind("a log of tests", b"{"), PAGE: Kind("the page of reliability", b"# What was tried on plaudit")}

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__)


@app.command()
def measure(
    rows: Annotated[list[int] | None, typer.Argument(help="Numbers of rows; default all.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Forget what was measured of them before.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Tests at work at the same time.")] = 2,
) -> int:
    """Run what is not measured yet, slow tests too, and save the numbers; a run that was cut goes on from there.

    Rows that are not measured now stay as they were saved.
    """
    numbers = [row.number for row in ROWS]
    wanted = rows or numbers
    if unknown := [number for number in wanted if number not in numbers]:
        raise ValueError(f"rows must be of {numbers[0]} to {numbers[-1]}, got {unknown[0]}")
    LOG.parent.mkdir(parents=True, exist_ok=True)
    if again:
        kept = [line for line in logged(LOG) if line["row"] not in wanted]
        write_atomically(LOG, "".join(f"{json.dumps(line)}\n" for line in kept), KINDS[LOG])
    tests = collected(wanted, ROOT)
    options = ["-q", "-m", "reliability", "--numprocesses", str(jobs), "-p", "tests.reliability.plugin"]
    options += ["--reliability-log", str(LOG), "--reliability-rows", ",".join(map(str, wanted))]
    ended = subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, check=False)
    if ended.returncode == pytest.ExitCode.INTERRUPTED:
        return INTERRUPTED
    saved = read_json(NUMBERS)["rows"] if NUMBERS.exists() else {}
    measured = added_up(logged(LOG), tests)
    write_json(NUMBERS, {"kind": "reliability", "rows": saved | measured, "provenance": provenance()})
    return write()


@app.command("page")
def write() -> int:
    """Write docs/reliability.md from the saved numbers, and from nothing else."""
    saved = read_json(NUMBERS)
    write_atomically(PAGE, page(saved["rows"]), KINDS[PAGE])
    print(f"Written: {PAGE.relative_to(ROOT)}.")
    return 0


def main() -> None:
    """Run the command; every error is one line and exit code 2."""
    command, given = typer.main.get_command(app), sys.argv[1:] or ["--help"]
    sys.exit(finished(lambda: run_typed(command, "python -m tests.reliability", given), "reliability"))


if __name__ == "__main__":
    main()
