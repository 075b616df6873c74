"""A workspace of the user's own, the command called within the process, and two audits of the same data."""

import os
import sys
from pathlib import Path

import pytest

from algorithms.bugs.budget import HalfNoiseGDPC
from algorithms.flaxman import GDPC
from audit import NeighborPair, PureDP, measure_loss
from audit.cli import main
from audit.results import AuditResult
from tests.audit.cli.desk import MINE, Command, Outcome

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with mechanisms and counts, and nothing of it left behind in the interpreter."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    (folder / "counts.csv").write_text("120\n75\n43\n")
    monkeypatch.chdir(folder)
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", paths)  # processes run this checkout, whatever is installed
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    for name in ("mine", "helper"):
        monkeypatch.setitem(sys.modules, name, sys)  # so that what is imported under it is forgotten afterwards
        monkeypatch.delitem(sys.modules, name)
    return folder


@pytest.fixture
def plaudit(capsys: pytest.CaptureFixture[str]) -> Command:
    def command(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        assert isinstance(stop.value.code, int)
        return Outcome(stop.value.code, *capsys.readouterr())

    return command


def measured(mechanism: GDPC) -> AuditResult:
    pair = NeighborPair.add_people([120, 75, 43], cell=0)
    return measure_loss(mechanism, pair, PureDP(1.0), size=2000, confidence=0.999, attack="entries", rng=1)


@pytest.fixture(scope="session")
def sound() -> AuditResult:
    return measured(GDPC(1.0))


@pytest.fixture(scope="session")
def violated() -> AuditResult:
    return measured(HalfNoiseGDPC(1.0))
