"""Write down what each test of a row tried, as soon as it has ended, so that a run that was cut goes on from there."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest

MARKER, QUICK = "reliability", "quick"
LOG, ROWS, NAMES = "reliability_log", "reliability_rows", "reliability_names"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take which rows are wanted, where the log is, and where to write the names of their tests."""
    parser.addoption("--reliability-log", dest=LOG, type=Path, help="file that a line is added to after each test")
    parser.addoption("--reliability-names", dest=NAMES, type=Path, help="file for the row of each test; none is run")
    parser.addoption("--reliability-rows", dest=ROWS, default="", help="numbers of rows, with commas between")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tell each test of the rows wanted its own, and leave out the others and those whose outcome is known."""
    ended = {line["test"] for line in logged(config.getoption(LOG))}
    rows = {int(number) for number in config.getoption(ROWS).split(",")}
    wanted, others = [], []
    for item in items:
        marker = None if item.get_closest_marker(QUICK) else item.get_closest_marker(MARKER)
        if marker is None or marker.args[0] not in rows or item.nodeid in ended:
            others.append(item)
        else:
            item.user_properties.append(("row", marker.args[0]))
            wanted.append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = wanted
    if path := config.getoption(NAMES):
        path.write_text(json.dumps({item.nodeid: dict(item.user_properties)["row"] for item in wanted}), "utf-8")


def seed_of(config: pytest.Config) -> int:
    """Return the seed of what a row draws at random: where it is measured, the day, so that each measurement is new."""
    return int(date.today().strftime("%Y%m%d")) if config.getoption(LOG, None) else 1


def collected(rows: list[int], root: Path) -> dict[str, int]:
    """Return the tests of rows by name, each with its row, as a process of its own collects them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "names.json")
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", MARKER, "-p", __name__]
        command += ["--reliability-names", str(path), "--reliability-rows", ",".join(map(str, rows))]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if not path.exists():
            raise ValueError(f"the tests must be readable, got {done.stdout[-500:]!r}")
        return {str(name): int(row) for name, row in json.loads(path.read_text("utf-8")).items()}


class Log:
    """What the process that starts the others hears of every test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a line when a test is over, whatever became of it."""
        told: dict[str, Any] = dict(report.user_properties)
        taken = self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        ended = report.when == "call" or report.outcome != "passed"
        if "row" not in told or not ended:
            return
        line = {
            "test": report.nodeid,
            "row": told.pop("row"),
            "outcome": report.outcome,
            "seconds": taken,
            "day": date.today().isoformat(),
            "told": told,
        }
        if report.outcome == "skipped":
            line["why"] = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Write the log in one process."""
    path = config.getoption(LOG)
    if path is not None and not hasattr(config, "workerinput"):  # of xdist: those report to this process
        config.pluginmanager.register(Log(path))


def logged(path: Path | None) -> list[dict[str, Any]]:
    """Return the lines of a log; the last one may have been cut."""
    if path is None or not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
