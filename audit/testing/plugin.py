"""The pytest plugin: it gives each audit of a test suite its own seed, and writes a report and a closing line.

Every test session of an environment with plaudit loads it, so slow imports wait until a test needs them.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import shlex
from collections import Counter
from collections.abc import Collection, Generator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.junitxml import xml_key

from audit.io.settings import project_settings
from audit.io.text import printable
from audit.testing.session import Running, entered, running, seed_of

if TYPE_CHECKING:
    import numpy as np

__all__ = ["audit_rng"]

ATTRIBUTE = "plaudit"  # of test reports: pytest-xdist sends it to the main process
PROPERTIES = ("verdict", "promised", "neighbors", "measured", "confidence", "detectable", "runs", "seed")
KINDS = {  # by expected verdict: the kind of audit, and the error that chance may cause
    "not refuted": ("promises", "if every promise holds, one is called violated"),
    "violated": ("known bugs", "if there is no bug, one is reported"),
}
OPTIONS = pytest.StashKey[list[str]]()  # command-line options of the session


@pytest.fixture
def audit_rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return a random generator for this test, seeded from its node id and --audit-seed."""
    import numpy as np

    return np.random.default_rng(seed_of(request.config.getoption("audit_seed"), request.node.nodeid, "audit_rng"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("plaudit", "audits of privacy loss")
    seed = "seed of all audits and of audit_rng, besides the node id of the test"
    default = "(default: that of [tool.plaudit] in pyproject.toml, or 0)"
    runs = "runs of every audit asserted, in place of its size"
    report = "write all audits of the session to a file (default: that of [tool.plaudit], or none)"
    group.addoption("--audit-seed", type=partial(_whole, least=0), metavar="N", help=f"{seed} {default}")
    group.addoption("--audit-runs", type=partial(_whole, least=20), metavar="N", help=runs)
    group.addoption("--audit-report", metavar="FILE.json", help=report)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and check that the report can be written."""
    config.addinivalue_line(
        "markers",
        "audit(**options): the test audits privacy loss; options, such as size and confidence, are defaults for the "
        "assertions in it and in its own fixtures, and not for those in fixtures of a class, module or session",
    )
    try:
        settings, file = project_settings(config.rootpath, above=False)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    defaults = {name: value for name, value in settings.items() if name in ("size", "confidence")}
    if config.option.audit_seed is None:
        config.option.audit_seed = settings.get("seed", 0)
    name = config.getoption("audit_report")
    if name is None and file is not None and "report" in settings:
        name = str(file.parent / settings["report"])
    input_of_worker = getattr(config, "workerinput", None)  # of xdist: only the main process writes the report
    report = None if name is None or input_of_worker is not None else _writable(name)
    config.stash[OPTIONS] = (input_of_worker or {}).get(ATTRIBUTE) or _options_given(config)
    session = _Session(config, None if config.option.collectonly else report, defaults)
    config.pluginmanager.register(session, "plaudit-session")


class _Session:
    """The hooks and the collected audits of one test session."""

    def __init__(self, config: pytest.Config, report: Path | None, defaults: dict[str, Any]) -> None:
        self.config, self.report, self.defaults = config, report, defaults
        self.audits: dict[str, dict[str, Any]] = {}
        self.problem = ""

    def pytest_sessionstart(self) -> None:
        if self.report is not None:  # delete an old report: if there is one at the end, this session finished
            try:
                self.report.unlink(missing_ok=True)
            except OSError as error:
                raise pytest.UsageError(f"--audit-report must be a file that can be replaced: {error}") from None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:  # of xdist: a worker does not know the command-line options
        node.workerinput[ATTRIBUTE] = self.config.stash[OPTIONS]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        seed, runs = self.config.getoption("audit_seed"), self.config.getoption("audit_runs")
        with entered(Running(item.nodeid, seed, partial(_command, item), runs, attempt=0)):
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        test = running()
        if test is not None:  # None if another plugin replaces the protocol
            # All attempts have the same seeds, so that no retry turns a failure into a pass.
            test.attempt, test.options, test.calls = test.attempt + 1, self.defaults | _options(item), count(1)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        __tracebackhide__ = True
        test = running()
        if test is None or fixturedef.scope == "function":
            return (yield)
        case = f"[{getattr(request, 'param_index', 0)}]" if hasattr(request, "param") else ""
        name = f"{request.node.nodeid}::{fixturedef.argname}{case}"
        # Seeds and defaults of a fixture do not depend on the test that sets it up.
        with entered(replace(test, name=name, attempt=1, options=self.defaults, calls=count(1))):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        test = running()
        if test is not None and test.entries:
            setattr(report, ATTRIBUTE, test.entries.copy())
            test.entries.clear()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for entry in map(json.loads, getattr(report, ATTRIBUTE, ())):
            # Several processes may set up the same fixture. It counts once, since entries agree except for times.
            timeless = {**entry, "audit": {**entry["audit"], "seconds": 0.0, "provenance": {}}}
            self.audits.setdefault(json.dumps(timeless, sort_keys=True), entry)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        order = ("node_id", "attempt", "call")
        audits = sorted(self.audits.items(), key=lambda item: ([item[1][key] for key in order], item[0]))
        junit = self.config.stash.get(xml_key, None)
        if junit is not None and audits:  # for the suite: test cases have no properties in pytest's default format
            from audit.results.folder import audits_of_session
            from audit.results.formatting import row

            for name, result, _ in audits_of_session([entry for _, entry in audits]):
                words = row(result.summary())
                for key in PROPERTIES:
                    junit.add_global_property(f"{name}: {key}", words[key])
        if self.report is None:
            return
        from audit.results.files import write_json

        confidential = any(entry["audit"]["confidential"] for entry in self.audits.values())
        values = {
            "kind": "session",
            "seed": self.config.getoption("audit_seed"),
            "runs": self.config.getoption("audit_runs"),
            "exit_status": int(exitstatus),
            "false_alarm": _by_chance(self.audits.values(), "not refuted"),
            "false_detection": _by_chance(self.audits.values(), "violated"),
            "confidential": confidential,
            "audits": [entry for _, entry in audits],
        }
        try:
            write_json(self.report, values, private=confidential)
        except OSError as error:
            self.problem = printable(f"plaudit: --audit-report could not be written: {error}")
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.audits:
            terminalreporter.write_line(_closing_line(self.audits.values()))
        if self.problem:
            terminalreporter.write_line(self.problem, red=True)


def _whole(text: str, least: int) -> int:
    with suppress(ValueError):
        if (number := int(text)) >= least:
            return number
    raise argparse.ArgumentTypeError(f"must be a whole number of {least} or more, got {text[:40]!r}")


def _writable(name: str) -> Path:
    from audit.io.files import check_replaceable
    from audit.results.files import kind_of

    path = Path(name).absolute()
    try:
        if not path.parent.is_dir():
            raise ValueError("there is no such folder")
        with suppress(FileNotFoundError):
            path.stat()  # raises an error for an invalid name
        check_replaceable(path, kind_of("session"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise pytest.UsageError(f"--audit-report must be a file that can be written, got {name!r}: {reason}") from None
    return path


def _options(item: pytest.Item) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers("audit"))):
        if mark.args:
            pytest.fail(f"pytest.mark.audit takes options by name, got {len(mark.args)} without a name", pytrace=False)
        options |= mark.kwargs
    if options:
        from audit.measure.loss import measure_loss

        parameters = inspect.signature(measure_loss).parameters.values()
        known = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
        if unknown := ", ".join(repr(name) for name in options if name not in known):
            pytest.fail(f"pytest.mark.audit takes the options {', '.join(known)}, got {unknown}", pytrace=False)
    return options


def _command(item: pytest.Item) -> str:
    """Return the shell command that runs one test alone with the same seeds, from the folder of the session."""
    path = Path(os.path.relpath(item.path, item.config.invocation_params.dir)).as_posix()
    _, separator, name = item.nodeid.partition("::")
    return shlex.join(["python", "-m", "pytest", f"{path}{separator}{name}", *item.config.stash[OPTIONS]])


def _options_given(config: pytest.Config) -> list[str]:
    """Return the options of a session without its report, and with the root folder of node ids."""
    words: list[str] = []
    arguments = iter(map(str, config.invocation_params.args))
    for word in arguments:
        if word == "--audit-report":
            next(arguments, None)
        elif not word.startswith("--audit-report="):
            words.append(word)
    for path in getattr(config.option, "file_or_dir", ()):
        if path in words:
            del words[len(words) - 1 - words[::-1].index(path)]  # the last: an earlier one is the value of an option
    if not any(word.startswith("--rootdir") for word in words):
        words += ["--rootdir", os.path.relpath(config.rootpath, config.invocation_params.dir)]
    return words


def _by_chance(audits: Collection[dict[str, Any]], expected: str) -> float:
    """Return the union bound on the probability that any audit with this expectation is wrong by chance."""
    chances = (1 - entry["audit"]["confidence"] for entry in audits if entry["expected"] == expected)
    return min(1.0, math.fsum(chances))


def _closing_line(audits: Collection[dict[str, Any]]) -> str:
    outcomes = Counter((entry["expected"], entry["audit"]["verdict"]) for entry in audits)
    numbers = Counter(entry["expected"] for entry in audits)
    kinds = [f"{numbers[kind]} of {name}" for kind, (name, _) in KINDS.items() if numbers[kind]]
    counts = {
        "violated": outcomes["not refuted", "violated"],
        "without power": outcomes["not refuted", "no power"],
        "not detected": numbers["violated"] - outcomes["violated", "violated"],
    }
    line = f"plaudit: {len(audits)} audit{'s' * (len(audits) > 1)} ({', '.join(kinds)})"
    line += "".join(f", {count} {name}" for name, count in counts.items() if count)
    for kind, (_, error) in KINDS.items():
        if numbers[kind]:
            line += f"; {error} by chance with probability at most {_by_chance(audits, kind):.2g}"
    return line
