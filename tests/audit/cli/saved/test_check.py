"""`plaudit check` and `verify`: saved audits are what they were, or are refused by name."""

import math
import os
import re
from pathlib import Path

import pytest

from audit.results import AuditResult
from audit.results.folder import read_audits
from tests.audit.cli.desk import QUICK, VIOLATION, WITHIN, Command, refused, results, strict
from tests.audit.io.test_terminal import on_screen
from tests.helpers import audited


@pytest.fixture
def saved(tmp_path: Path, sound: AuditResult, violated: AuditResult) -> Path:
    """A folder with an audit within its claim, and a violation."""
    sound.to_json(tmp_path / "saved" / "gdpc.json")
    violated.to_json(tmp_path / "saved" / "gdpc-half-noise.json")
    return tmp_path / "saved"


@pytest.fixture
def out(sound: AuditResult) -> Path:
    """A folder called out of the one within its claim."""
    sound.to_json("out/gdpc.json")
    return Path("out")


def test_what_is_saved_is_checked_to_the_same_table_and_code(plaudit: Command) -> None:  # three audits
    outcome = plaudit("audit", "gdpc", "gdpc-half-noise", "gaussian-counts", *QUICK, "--out", "deep/er")
    assert (outcome.code, outcome.err) == (VIOLATION, "")
    assert "Losses are epsilon in nats, rho in nats, for one person added or removed." in " ".join(outcome.out.split())
    assert sorted(os.listdir("deep/er")) == ["gaussian-counts.json", "gdpc-half-noise.json", "gdpc.json"]
    table, _, last = outcome.out.rstrip("\n").rpartition("\n")
    assert last == "Saved in deep/er/: one JSON file an audit."
    checked = plaudit("check", "deep/er")
    assert (checked.code, checked.err) == (VIOLATION, "")
    assert sorted(checked.out.split()) == sorted(table.split())
    saved = results(plaudit("check", "deep/er", "--json"))
    assert saved["gdpc"].to_dict() == dict(read_audits(Path("deep/er")))["gdpc"].to_dict()


@pytest.mark.parametrize(("width", "most"), [(60, 17), (80, 13), (100, 12)])  # `plaudit audit --out` has one more
def test_four_audits_are_a_few_lines_that_a_terminal_wraps(
    plaudit: Command, monkeypatch, width: int, most: int
) -> None:
    for name in ("gdpc", "rdpc", "rdpc-all", "adpc"):
        command = f"plaudit audit {name} --data morocco --epsilon 1.0 --cells smallest,largest"
        audited(provenance={"next": [command]}).to_json(f"out/{name}.json")
    with on_screen(monkeypatch, width) as screen:
        plaudit("check", "out")
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()).splitlines()]
    assert sum(math.ceil(len(line) / width) for line in lines) <= most
    assert max(len(line) for line in lines if not line.startswith("    plaudit")) <= width
    for words in ("(95%)", "for one person added or removed", "A pass is no proof", "events and power: --verbose"):
        assert words in " ".join(" ".join(lines).split())


def test_folders_and_files_are_read_together(plaudit: Command, saved: Path, out: Path) -> None:
    half = str(saved / "gdpc-half-noise.json")
    for command in ("check", "verify"):
        assert plaudit(command, "out").code == WITHIN
        assert plaudit(command, "out", half).code == plaudit(command, half, "out").code == VIOLATION
    printed = strict(plaudit("check", "out", "out/gdpc.json", str(saved), "--json").out)
    names = {path.stem for path in saved.glob("*.json")}
    assert set(printed) == {"gdpc", "gdpc (2)"} | names  # one file is read once, another of its name has a number
    assert plaudit("report", "out", half).out.startswith("Wrote out/report.html: 2 audits, 1 violated; 0 estimates.")
    assert "<title>Privacy audit of GDPC, HalfNoiseGDPC</title>" in Path("out/report.html").read_text("utf-8")


def test_check_tells_github(plaudit: Command, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = ("check", str(saved), "--format", "github")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    needed = "--format github needs a job of GitHub Actions: GITHUB_STEP_SUMMARY must name a file"
    assert refused(plaudit(*check), needed)
    Path("summary.md").write_text("of another step\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    printed = plaudit(*check)
    assert (printed.code, printed.err) == (VIOLATION, "")
    assert printed.out.startswith("::error title=violated%3A gdpc-half-noise::")
    assert Path("summary.md").read_text("utf-8").startswith("of another step\n### Privacy audits: ")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no/such/folder.md")
    assert refused(plaudit(*check), "no such file or directory")


def test_what_others_wrote_begins_no_line(plaudit: Command) -> None:
    audited(event="one\nforged", pair="two\nforged", verdict="no power", detectable=3.0).to_json("out/a\nforged.json")
    lines = plaudit("check", "out", "--verbose").out.splitlines()
    assert not [line for line in lines if line.startswith("forged")]
    assert any("Rule of a forged that guesses the database: one forged" in line for line in lines)
