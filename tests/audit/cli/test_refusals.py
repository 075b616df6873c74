"""One line for everything that is wrong, and nothing left behind: the commands of `refusals.txt`, and more."""

import contextlib
import math
import os
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from audit.cli.inputs import tables, targets
from tests.audit.cli import desk
from tests.audit.cli.desk import INTERRUPTED, OWN, Command, refused, save_households, save_outputs, save_persons

CASES = [
    (words.startswith("slow: "), words.removeprefix("slow: "), reason)
    for line in Path(__file__).with_name("refusals.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
    for words, _, reason in [line.partition(" => ")]
]
TEXTS = {
    "counts.csv": "120\n75\n43\n",
    "mine.py": desk.MINE,
    "exact.py": desk.EXACT,
    "helper.py": desk.TABLE,
    "people.csv": desk.PEOPLE,
    "nowhere.csv": "state,county\na,x\nb,\n",
    "sums.csv": "state,n\na,1\nGrand total,1\n",
    "points.csv": "state,n\na,7\nb,12.000\n",
    "few.csv": "1\n2\n3\n",
    "texts.csv": "many\nfew\nnone at all\n",
    "wide.csv": "1,2\n3,4\n",
    "lost.csv": "1\n" * 20 + "nan\n",
    "stops.py": "1 // 0",
    "exits.py": "raise SystemExit(0)",
    "panics.py": "raise BaseException('no thread')",
}


class Trap:
    """Leaves a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


def save_bad_files() -> None:
    """Write files of every wrong kind beside the right ones."""
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    for name in ("folder.csv", "folder.svg", "empty"):
        Path(name).mkdir()
    Path("link").symlink_to("empty")
    np.save("counts.npy", np.array([120, 75, 43]))
    np.save("pickled.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez("archive.npz", counts=np.arange(3))
    shutil.move("archive.npz", "archive.npy")
    with open("huge.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
        np.lib.format.write_array_header_1_0(file, header)
    save_outputs()
    save_persons()


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    with contextlib.chdir(folder):
        save_bad_files()
        save_households(Path("homes"))
    return folder


@pytest.mark.parametrize(
    ("command", "reason"), [pytest.param(*case, id=case[0], marks=[pytest.mark.slow] * slow) for slow, *case in CASES]
)
def test_a_bad_command_is_one_line_and_leaves_nothing(plaudit: Command, bad_files: Path, command: str, reason: str):
    words = shlex.split(command)
    if words[0] == "audit" and all(word and not word.startswith("--out=") for word in words):
        words[1:1] = ["--out", "out"]
    with contextlib.chdir(bad_files):
        before = {*os.listdir()}
        assert refused(plaudit(*words), reason)
        assert {*os.listdir()} - before <= {"__pycache__", "out"}
        assert not list(Path("out").glob("*"))


def test_pickles_are_traps(workspace: Path) -> None:
    save_bad_files()
    with pytest.raises(TypeError):  # negative control: opened the way it was made, the trap springs
        float(np.load("pickled.npy", allow_pickle=True)[0])
    assert (workspace / "sprung").exists()


def test_a_file_beyond_the_limit_is_refused(plaudit: Command, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("audit", "gdpc", "--data")
    with monkeypatch.context() as patched:
        patched.setattr(tables, "LARGEST_INPUT", 9)
        assert refused(plaudit(*arguments, "counts.csv"), "counts.csv must be at most 9 bytes, got 10")
    monkeypatch.setattr(tables, "MOST_VALUES", 2)
    assert refused(plaudit(*arguments, "counts.csv"), "must hold at most 2 values, got 3 commas and lines")


def test_what_cannot_be_kept_is_found_out_before_the_runs(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit.measure.loss.measure_loss", lambda *_, **__: pytest.fail("it ran"))
    assert refused(plaudit("audit", "gdpc", "--out", "counts.csv"), "out must be a folder, got the file counts.csv")
    assert refused(plaudit("audit", "gdpc", "--out", "counts.csv/below"), "counts.csv/below: not a directory")


def test_an_error_in_the_second_audit_keeps_the_first(plaudit: Command) -> None:
    outcome = plaudit("audit", "mine:noisy", "mine:divides", *OWN, "--size", "500", "--out", "out")
    assert refused(outcome, "mine:divides failed")
    assert os.listdir("out") == ["mine-noisy.json"]


def test_an_interrupt_keeps_what_is_finished(plaudit: Command) -> None:
    outcome = plaudit("audit", "mine:noisy", "mine:impatient", *OWN, "--size", "500", "--jobs", "1", "--out", "out")
    message = "plaudit: interrupted; 1 of 2 audits finished before that, saved in out\n"
    assert (outcome, os.listdir("out")) == ((INTERRUPTED, "", message), ["mine-noisy.json"])


def test_an_interrupt_of_the_first_audit_or_before(plaudit: Command) -> None:
    outcome = plaudit("audit", "mine:impatient", *OWN, "--jobs", "1")
    assert outcome == (INTERRUPTED, "", "plaudit: interrupted\n")
    Path("early.py").write_text("raise KeyboardInterrupt")
    assert plaudit("audit", "early:f", *OWN).code == INTERRUPTED


def test_what_a_system_lacks_is_one_line(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def mechanism(**_: Any) -> Any:
        raise ImportError("theirs needs duckdb")

    theirs = SimpleNamespace(name="theirs", of_counts=True, settings={}, below=math.inf, mechanism=mechanism)
    installed = SimpleNamespace(systems=lambda _: {"theirs": theirs}, DRAWN={})
    monkeypatch.setattr(targets, "plugin", lambda _: installed)
    assert refused(plaudit("audit", "theirs", "--data", "counts.csv"), "plaudit: error: theirs needs duckdb")
