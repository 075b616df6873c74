"""What a project sets for the command, and what `plaudit doctor` says of an installation."""

import shlex
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import pytest

from audit.io.temporary import _machine
from tests.audit.cli.desk import USAGE, WITHIN, Command, refused, results, strict

AUDIT = ("audit", "gdpc", "--data", "counts.csv", "--json")


def write(text: str) -> None:
    Path("pyproject.toml").write_text(f"[tool.plaudit]\n{text}\n")


def test_a_project_sets_runs_confidence_and_seed(plaudit: Command) -> None:
    write("size = 2e3\nconfidence = 0.999\nseed = 7")
    (result,) = results(plaudit(*AUDIT)).values()
    assert (result.size, result.confidence, result.seed_entropy) == (2000, 0.999, 7)
    command = result.provenance["command"]
    assert command == "plaudit audit gdpc --data counts.csv --size 2000 --confidence 0.999 --seed 7"
    (other,) = results(plaudit(*AUDIT, "--size", "1000", "--seed", "8")).values()  # what is said counts more
    assert (other.size, other.confidence, other.seed_entropy) == (1000, 0.999, 8)
    Path("pyproject.toml").unlink()
    (again,) = results(plaudit(*shlex.split(command)[1:], "--json")).values()
    assert again.counts == result.counts
    write("confidence = 0.999")
    assert strict(plaudit("plan", "pure:1", "--json").out)["confidence"] == 0.999


def test_bad_settings_are_refused_by_what_would_use_them(plaudit: Command) -> None:
    write("sizes = 10")
    assert refused(plaudit(*AUDIT), "takes size, confidence, seed, report, got 'sizes'")
    assert plaudit("doctor").code == USAGE
    assert plaudit("--help").code == plaudit("list").code == plaudit("--version").code == WITHIN


def test_doctor_says_what_works_here(plaudit: Command) -> None:
    write("seed = 7\nreport = 'audits.json'")
    outcome = plaudit("doctor")
    assert (outcome.code, outcome.err) == (WITHIN, "")
    lines = outcome.out.splitlines()
    extras = {*metadata.metadata("plaudit").get_all("Provides-Extra", [])} - {"dev", "docs", "mutation"}
    for words in (
        f"- plaudit: {metadata.version('plaudit')}, in ",
        f"numpy {metadata.version('numpy')}",
        "- tested now: secure: exact, on the operating system's entropy",
        "- seed: 7",
        "- pytest plugin: on",
        *(f"- extra {extra}: " for extra in extras),
    ):
        assert any(words in line for line in lines), words


def test_doctor_says_what_is_missing(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("algorithms").mkdir()
    Path("algorithms/__init__.py").touch()
    monkeypatch.setattr("audit.results.provenance.version_of", lambda package: "")
    monkeypatch.setitem(sys.modules, "opendp", None)
    lines = plaudit("doctor").out.splitlines()
    assert "- extra census: without duckdb, numba, piqp: pip install 'plaudit[census]'" in lines
    assert "- none: secure noise needs the extra release: pip install 'plaudit[release]'" in lines
    assert "- none: [tool.plaudit] of pyproject.toml may hold size, confidence, seed, report" in lines
    assert any(line.endswith("has the name of one of its packages") for line in lines)


def test_doctor_removes_what_killed_runs_have_left(plaudit: Command) -> None:
    owner = f"{_machine()}-{2**22 + 1}-7-{'0a' * 8}"  # the number of no process
    part, temporary = f".{owner}.part", Path(tempfile.gettempdir(), f"plaudit-spilled-{owner}")
    for folder in ("out", "kept/deep"):
        Path(folder).mkdir(parents=True)
        Path(folder, part).write_bytes(bytes(1500))
    temporary.mkdir()
    assert plaudit("doctor", "--clean", "out") == (WITHIN, f"Removed out/{part}\n", "")
    nothing = ": nothing was left by a run that was killed\n"
    removed = f"Removed kept/deep/{part}\nRemoved {temporary}\n"
    assert plaudit("doctor", "--clean") == (WITHIN, removed, "")
    assert plaudit("doctor", "--clean") == (WITHIN, f".{nothing}{tempfile.gettempdir()}{nothing}", "")
    Path("out", part.replace(_machine(), "0" * 8)).touch()
    assert "stays: it is of another machine or container" in plaudit("doctor", "--clean", "out").out
