"""Faults that matter, planted one by one in a copy of the sources: a default test notices each of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAULTS = tomllib.loads(Path(__file__).with_name("planted.toml").read_text("utf-8"))["fault"]
NOT_COPIED = (".*", "__pycache__", "build", "dist")


def outcome(folder, *tests):
    """The exit code of tests that run in a folder with the sources, and what they print."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = [sys.executable, "-m", "pytest", "-q", "-x", "--numprocesses", "0", *tests]
    done = subprocess.run(
        words, cwd=folder, env=environment | {"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the sources, in which all tests that are named pass."""
    folder = tmp_path_factory.mktemp("planted") / "checkout"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    code, printed = outcome(folder, *sorted({fault["test"] for fault in FAULTS}))
    assert code == pytest.ExitCode.OK, printed
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault['file']}: {fault['kind']}")
def test_a_default_test_notices_a_planted_fault(fault, checkout):
    path = checkout / fault["file"]
    source = path.read_text("utf-8")
    path.write_text(source.replace(fault["old"], fault["new"]), "utf-8")
    try:
        code, printed = outcome(checkout, fault["test"])
    finally:
        path.write_text(source, "utf-8")
    assert code == pytest.ExitCode.TESTS_FAILED, printed  # and no other: a source that cannot be loaded is no fault


def test_every_fault_has_one_place_and_a_test():
    """A source that changes takes its faults along, or loses them."""
    for fault in FAULTS:
        assert fault.keys() == {"file", "kind", "old", "new", "test"}
        assert (ROOT / fault["file"]).read_text("utf-8").count(fault["old"]) == 1, fault
        assert fault["new"] != fault["old"]
        file, *_, name = fault["test"].partition("[")[0].split("::")
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), fault
