"""Write down what each test of a row tried, as soon as it has ended, so that a run that was cut goes on from there."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

MARKER, LOG, ROWS = "reliability", "reliability_log", "reliability_rows"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take where the log is, and which rows are wanted."""
    parser.addoption("--reliability-log", dest=LOG, type=Path, help="file that a line is added to after each test")
    parser.addoption("--reliability-rows", dest=ROWS, default="", help="numbers of rows, with commas between")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tell each test of the rows wanted its own, and leave out the others and those whose outcome is known."""
    ended = {line["test"] for line in logged(config.getoption(LOG))}
    rows = {int(number) for number in config.getoption(ROWS).split(",")}
    wanted, others = [], []
    for item in items:
        marker = item.get_closest_marker(MARKER)
        if marker is None or marker.args[0] not in rows or item.nodeid in ended:
            others.append(item)
        else:
            item.user_properties.append(("row", marker.args[0]))
            wanted.append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = wanted


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
