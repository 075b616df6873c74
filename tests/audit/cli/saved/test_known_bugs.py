"""A violation that a test expects is no violation to any command; only the file of its session can say that one is."""

import json
import re
from pathlib import Path

import pytest

from audit.results import AuditResult
from tests.audit.cli.desk import NO_POWER, VIOLATION, WITHIN, Command
from tests.audit.results.test_folder import entry, save_session
from tests.helpers import audited

KNOWN, PROMISED = {"expected": "violated"}, {"expected": "not refuted"}
FOUND = "Known bugs: 1 detected, as expected."
POWERLESS = audited(verdict="no power", detectable=3.0)
COMMANDS = ("check", "report", "verify")


def session(path: str, *audits: tuple[str, dict[str, str], AuditResult]) -> str:
    entries = (entry(name, audit=result.to_dict(), **expected) for name, expected, result in audits)
    return str(save_session(Path(path), *entries))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_known_bug_that_is_detected_is_as_expected(plaudit, workspace, sound, violated, command):
    path = session("audits.json", ("t::sound", PROMISED, sound), ("t::bug", KNOWN, violated))
    outcome = plaudit(command, path)
    assert (outcome.code, outcome.err) == (WITHIN, "")
    assert FOUND in outcome.out


@pytest.mark.parametrize("command", COMMANDS)
def test_no_other_violation_is_expected(plaudit, workspace, sound, violated, command):
    bug = ("t::bug", KNOWN, violated)
    assert plaudit(command, session("audits.json", ("t::other", PROMISED, violated), bug)).code == VIOLATION
    named = ("t::bug[x] call 1 (known bug)", PROMISED, violated)
    assert plaudit(command, session("audits.json", named, bug)).code == VIOLATION
    path = session("audits.json", ("t--bug", KNOWN, violated), ("t--bug", KNOWN, violated))
    assert plaudit(command, path).code == WITHIN
    for alone in ("t--bug call 1 (known bug).json", "t--bug call 1 (known bug) (2).json"):
        violated.to_json(alone)
        assert plaudit(command, path, alone).code == plaudit(command, alone, path).code == VIOLATION


def test_comparison_expects_known_bugs(plaudit: Command, workspace: Path, sound: AuditResult, violated: AuditResult):
    before = session("before.json", ("t::sound", PROMISED, sound))
    after = session("after.json", ("t::sound", PROMISED, sound), ("t::bug", KNOWN, violated))
    outcome = plaudit("compare", before, after)
    assert outcome.code == WITHIN
    assert "t::bug call 1 (known bug): the known bug is detected now: its test expects the violation" in outcome.out
    assert plaudit("compare", after, after).code == WITHIN
    worse = session("worse.json", ("t::sound", PROMISED, violated), ("t::bug", KNOWN, violated))
    outcome = plaudit("compare", after, worse)
    assert outcome.code == VIOLATION
    assert "REGRESSION: t::sound call 1: the verdict became violated" in outcome.out
    assert "REGRESSION: t::bug" not in outcome.out
    excused = session("excused.json", ("t::sound", KNOWN, violated))  # a promise that is declared to be a known bug
    outcome = plaudit("compare", before, excused)
    assert (outcome.code, "REGRESSION: t::sound call 1: the audit is gone" in outcome.out) == (VIOLATION, True)
    gone = plaudit("compare", after, before)
    assert (gone.code, "REGRESSION: t::bug call 1 (known bug): the audit is gone" in gone.out) == (VIOLATION, True)


def test_github_is_told_of_what_is_not_expected(plaudit, workspace, violated, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    path = session("audits.json", ("t::bug", KNOWN, violated), ("t::few", KNOWN, POWERLESS))
    printed = plaudit("check", path, "--format", "github")
    assert (printed.code, printed.out.count("::error"), printed.out.count("::warning")) == (NO_POWER, 0, 1)
    summary = Path("summary.md").read_text("utf-8")
    assert summary.startswith("### Privacy audits: of known bugs only\n\nKnown bugs: 1 detected, as expected; 1 not ")
    path = session("audits.json", ("t::bug", KNOWN, violated), ("t::other", PROMISED, violated))
    printed = plaudit("check", path, "--format", "github")
    assert (printed.code, printed.out.count("::error"), "t%3A%3Aother" in printed.out) == (VIOLATION, 1, True)


def test_forms_for_programs_are_of_audits_alone(plaudit: Command, workspace: Path, violated: AuditResult) -> None:
    path = session("audits.json", ("t::bug", KNOWN, violated))
    audited().to_json("sound.json")
    assert list(json.loads(plaudit("check", ".", "--json").out)) == ["t::bug call 1 (known bug)", "sound"]
    printed = plaudit("check", path, "--format", "csv")
    assert (printed.code, printed.err, printed.out.count("\r\n")) == (WITHIN, f"{FOUND}\n", 2)


@pytest.mark.parametrize("public", [(), ("--public",)])
def test_a_report_counts_known_bugs_by_themselves(plaudit, workspace, sound, violated, public):
    def headline(path: str) -> str:
        assert plaudit("report", path, "--out", "page.html", *public).code in (WITHIN, VIOLATION)
        page = Path("page.html").read_text("utf-8")
        assert page.count('<span class="badge known-bug">known bug</span>') == 3  # the tally, the table, the details
        return re.search(r'<h1 class="[^>]*>\s*(.*?)\s*</h1>', page, re.DOTALL)[1]  # type: ignore[index]

    bug = ("t::bug", KNOWN, violated)
    assert headline(session("a.json", bug, ("t::s", PROMISED, sound))) == "No violation found."
    assert headline(session("a.json", bug)).startswith("These audits are of known bugs only")
    other = headline(session("a.json", bug, ("t::s", PROMISED, sound), ("t::other", PROMISED, violated)))
    assert other == "1 of 2 audits shows a broken promise of privacy."
