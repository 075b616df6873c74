"""What an audit says that is interrupted is true, at any instant: what it has saved is there, and whole."""

from __future__ import annotations

import gc
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from audit import io, results
from audit.cli import app
from audit.cli.exits import INTERRUPTED, NO_POWER, VIOLATION, WITHIN
from tests.fuzz.holding import tree
from tests.instants import Instants
from tests.processes.commands import prepare
from tests.processes.running import halves, run_here, visible

PLACES = [str(Path(module.__file__ or "").parent) for module in (app, io, results)]
TWO = "plaudit audit gdpc mine:buggy --data counts.csv --claim pure:1 --size 400 --seed 1 --jobs 1 --out out"
FIRST, SECOND = "out/gdpc.json", "out/mine-buggy.json"
TOLD = re.compile(r"plaudit: interrupted(; 1 of 2 audits finished before that, saved in out)?\n")


@pytest.fixture
def folder(good_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of good files; the module of another test with the same name is forgotten, and this one afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "mine", sys)
    monkeypatch.delitem(sys.modules, "mine")
    return prepare(good_files, tmp_path, TWO)


@pytest.fixture
def asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[], tuple[int, str]]:
    """Ask for two audits; an interrupt in the last steps comes out, as to the process that is watched."""

    def run() -> tuple[int, str]:
        try:
            code = run_here(TWO, folder)
        except KeyboardInterrupt:
            return INTERRUPTED, "plaudit: interrupted\n"
        return code, capsys.readouterr().err

    return run


@pytest.mark.reliability(7)
@pytest.mark.parametrize(
    ("part", "instants"), [(0, 2), *(pytest.param(part, 40, marks=pytest.mark.slow) for part in range(5))]
)
def test_what_an_interrupted_audit_says_is_true(folder, asked, record_property, part, instants):
    """At 200 lines in five parts, of what the command says and what it writes."""
    record_property("tried", instants)
    before, first = visible(tree(folder)), asked()
    assert first[0] in (WITHIN, VIOLATION, NO_POWER)
    whole = visible(tree(folder))
    for path in whole.keys() - before.keys():
        (folder / path).unlink()
    with Instants(*PLACES) as undisturbed:
        assert asked() == first
    kept = folder.rename(folder.with_name("kept"))
    places = list(undisturbed.reached)
    for number in range(instants):
        at = places[(len(places) - 1) * (5 * number + part) // (5 * instants - 1)]
        shutil.copytree(kept, folder, symlinks=True)
        for path in whole.keys() - before.keys():
            (folder / path).unlink()
        with Instants(*PLACES, at=at):
            code, err = asked()
        gc.collect()
        found = visible(tree(folder))
        assert halves(found, before, whole) == [], at
        assert before.keys() <= found.keys(), at
        assert SECOND not in found or FIRST in found, at
        if code == INTERRUPTED:
            assert TOLD.fullmatch(err), (at, err)
            assert "saved" not in err or FIRST in found, at
        else:
            assert (code, err, found.keys()) == (*first, whole.keys()), at
        shutil.rmtree(folder)
