"""`plaudit audit`: one line for everything that is wrong, and nothing left behind."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from audit.cli.inputs import tables, targets
from tests.audit.cli.desk import ELSEWHERE, INTERRUPTED, MINE, OWN, Command, refused, save_outputs


class Trap:
    """Leaves a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


@pytest.fixture(scope="module")
def bad_desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of every wrong kind beside the right ones."""
    folder = tmp_path_factory.mktemp("bad")
    with contextlib.chdir(folder):
        Path("mine.py").write_text(MINE)
        Path("counts.csv").write_text("120\n75\n43\n")
        save_bad_files()
    return folder


def save_bad_files() -> None:
    texts = {
        "names.csv": "people\n",
        "words.csv": "people\n120\nmany\n",
        "coded.csv": "1,120\n2,75\n3,43\n",
        "stops.py": "1 // 0",
        "exits.py": "raise SystemExit(0)",
        "panics.py": "raise BaseException('no thread')",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    Path("latin.csv").write_bytes("café\n120\n".encode("latin-1"))
    Path("folder.csv").mkdir()
    np.save("pickled.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez("archive.npz", counts=np.arange(3))
    shutil.move("archive.npz", "archive.npy")
    with open("huge.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
        np.lib.format.write_array_header_1_0(file, header)
    save_outputs()


HERE = ("mine:promising", "--data", "counts.csv")
GIVEN = ("--outputs-x", "x.csv", "--outputs-y", "y.csv")

BAD_AUDITS: list[tuple[tuple[str, ...], str]] = [
    # names and options
    ((), "name at least one mechanism"),
    (("no-such",), "no system is called 'no-such': see `plaudit list`"),
    (("gdpc-notebook", "--epsilon", "1"), "gdpc-notebook needs an epsilon below 1, got 1"),
    (("gdpc", "rdpc", "gdpc"), "every mechanism must be named once, got gdpc twice"),
    (("gdpc", "--sise", "100"), "No such option: --sise"),
    # numbers
    (("gdpc", "--epsilon", "nan"), "got nan"),
    (("gdpc", "--cell", "1503"), "cell must be inside counts of shape (1503,), got 1503"),
    ((*HERE, "--size", "10"), "mine:promising: at least 8 runs must choose an event, got 3 of 10"),
    ((*HERE, "--seed", "-1"), "seed must be 0 or more, got -1"),
    ((*HERE, "--jobs", "0"), "jobs must be a positive number, or -1 for all cores, got 0"),
    # claims and relations
    ((*HERE, "--claim", "gauss:1"), "for total variation, got 'gauss:1'"),
    ((*HERE, "--relation", "replace_one"), "--relation replace_one needs --move-to"),
    (("mine:replacing", "--data", "counts.csv"), "a replace_one promise says nothing about add_remove neighbors"),
    (("mine:vague", "--data", "counts.csv"), "mine:vague has no claim of its own: give --claim, such as pure:1"),
    (("mine:shy", "--data", "counts.csv"), "mine:shy failed: KeyError: 'claim' (mine.py, line "),
    # options that would silently do nothing
    (("gdpc", "--distance", "2"), "--distance is for outputs from elsewhere: give --people"),
    ((*HERE, "--epsilon", "2"), "--epsilon is for the systems of `plaudit list`"),
    ((*GIVEN, *ELSEWHERE, "--move-to", "1"), "--move-to has no effect on outputs from elsewhere"),
    # counts
    (("gdpc", "--data", "no-such.csv"), "No such file or directory: 'no-such.csv'"),
    (("gdpc", "--data", ""), "arguments must not be empty, got '' after --data"),  # of a variable that is not set, say
    (("gdpc", "--out="), "arguments must not be empty, got --out= after gdpc"),
    (("",), "arguments must not be empty, got '' after audit"),
    (("gdpc", "--data", "folder.csv"), "Is a directory: 'folder.csv'"),
    (
        ("gdpc", "--data", "names.csv"),
        "names.csv must hold at least one value, got none (a first line is names if none of its",
    ),
    (("gdpc", "--data", "coded.csv"), "coded.csv must hold one count a line, got a table of shape (3, 2)"),
    (
        ("gdpc", "--data", "words.csv"),
        "words.csv must hold numbers, one count a line, got 'many': records need --add-row",
    ),
    (("gdpc", "--data", "latin.csv"), "latin.csv must be text in UTF-8: 'utf-8' codec"),
    (("gdpc", "--data", "pickled.npy"), "pickled.npy must hold an array of numbers or words: Object arrays"),
    (("gdpc", "--data", "archive.npy"), "archive.npy must hold an array of numbers or words: the magic string"),
    (("gdpc", "--data", "huge.npy"), "huge.npy must hold an array of numbers or words: Unable to allocate"),
    (("rdpc", "--data", "counts.csv"), "rdpc: counts must"),
    # outputs
    (GIVEN[:2], "--outputs-x and --outputs-y go together"),
    (("gdpc", *GIVEN, *ELSEWHERE), "without the name of a mechanism"),
    (
        (*GIVEN, "--claim", "pure:1"),
        "outputs from elsewhere need --claim, such as pure:1, and --relation add_remove or",
    ),
    # mechanisms of the user's own
    (("no_such_module:f", *OWN), "'no_such_module' cannot be imported: No module named 'no_such_module'"),
    (("stops:f", *OWN), "'stops' cannot be imported: ZeroDivisionError: integer division or modulo by zero (stops.py"),
    (("exits:f", *OWN), "'exits' cannot be imported: SystemExit: 0 (exits.py, line 1)"),
    (("mine:no_such", *OWN), "'mine' has no 'no_such'"),
    (("./mine.py:noisy", *OWN), "a mechanism of your own is written module:object, got './mine.py:noisy'"),
    (("mine:Promising", *OWN), "mine:Promising must be a mechanism, callable as (data, size, rng), got type"),
    (("mine:refuses", *OWN), "mine:refuses: counts must be even, got 75"),
    (("mine:reads", *OWN), "mine:reads failed: FileNotFoundError: [Errno 2]"),
    (
        ("mine:leaves", *OWN),
        "mine:leaves failed: RuntimeError: a mechanism must not end the program, got SystemExit: 0 (mine.py, line ",
    ),
    (("mine:panics", *OWN, "--jobs", "1"), "mine:panics failed: PanicError: no thread (mine.py, line "),
    (("panics:f", *OWN), "'panics' cannot be imported: BaseException: no thread (panics.py, line 1)"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD_AUDITS, ids=[" ".join(bad[0]) for bad in BAD_AUDITS])
def test_a_bad_audit_is_one_line_and_leaves_nothing(
    plaudit: Command, bad_desk: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    out = tmp_path / "out"
    with contextlib.chdir(bad_desk):
        assert refused(plaudit("audit", *arguments, "--out", str(out)), words)
        assert not Path("sprung").exists()
    assert not out.exists() or list(out.iterdir()) == []


def test_pickles_are_traps(desk: Path) -> None:
    save_bad_files()
    with pytest.raises(TypeError):  # negative control: opened the way it was made, the trap springs
        float(np.load("pickled.npy", allow_pickle=True)[0])
    assert (desk / "sprung").exists()


def test_a_file_beyond_the_limit_is_refused(plaudit: Command, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LARGEST_INPUT", 9)
    assert refused(plaudit("audit", "gdpc", "--data", "counts.csv"), "counts.csv must be at most 9 bytes, got 10")
    Path("endless.csv").symlink_to("/dev/zero")
    assert refused(
        plaudit("audit", "gdpc", "--data", "endless.csv"), "endless.csv must be a file or a pipe, got a device"
    )
    monkeypatch.undo()
    monkeypatch.chdir(desk)
    monkeypatch.setattr(tables, "MOST_VALUES", 2)
    assert refused(
        plaudit("audit", "gdpc", "--data", "counts.csv"), "must hold at most 2 values, got 3 commas and lines"
    )


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("counts.csv", "out must be a folder, got the file counts.csv"),
        ("counts.csv/below", "'counts.csv/below'"),
        pytest.param(
            "locked",
            "Permission denied",
            marks=pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write anywhere"),
        ),
    ],
)
def test_what_cannot_be_kept_is_found_out_before_the_runs(
    plaudit: Command, monkeypatch: pytest.MonkeyPatch, out: str, words: str
) -> None:
    Path("locked").mkdir(mode=0o500)
    monkeypatch.setattr("audit.measure.loss.measure_loss", lambda *_, **__: pytest.fail("it ran"))
    assert refused(plaudit("audit", "gdpc", "--out", out), words)


def test_an_error_in_the_second_audit_keeps_the_first(plaudit: Command) -> None:
    outcome = plaudit("audit", "mine:noisy", "mine:divides", *OWN, "--size", "500", "--out", "out")
    assert refused(outcome, "mine:divides failed")
    assert os.listdir("out") == ["mine-noisy.json"]


def test_an_interrupt_of_the_first_audit_or_before(plaudit: Command) -> None:
    outcome = plaudit("audit", "mine:impatient", *OWN, "--jobs", "1")
    assert outcome == (INTERRUPTED, "", "plaudit: interrupted\n")
    Path("early.py").write_text("raise KeyboardInterrupt")
    assert plaudit("audit", "early:f", *OWN).code == INTERRUPTED


def test_what_a_system_lacks_and_what_nobody_foresaw_are_one_line(
    plaudit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(error: Exception) -> Any:
        def mechanism(**_: Any) -> Any:
            raise error

        theirs = SimpleNamespace(name="theirs", of_counts=True, settings=(), below=math.inf, mechanism=mechanism)
        return lambda _: SimpleNamespace(systems=lambda: {"theirs": theirs}, EXTRACTS={})

    for error, words in (
        (ImportError("theirs needs duckdb"), "theirs needs duckdb"),
        (RecursionError("deep"), "RecursionError: deep"),
        (RuntimeError("std::bad_cast"), "RuntimeError: std::bad_cast"),  # of libraries: no violation
    ):
        monkeypatch.setattr(targets, "offered", failing(error))
        assert refused(plaudit("audit", "theirs", "--data", "counts.csv"), words)
