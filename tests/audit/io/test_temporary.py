"""What killed runs leave: told by the process in its name, removed on demand, and nothing else with it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from audit.io.files import Kind, write_atomically, writing
from audit.io.temporary import SPILLED, STAGED, _began, _machine, cleaned, find_leftovers, left_below, pop_leftovers

NOBODY = 2**22 + 1  # the number of no process: Linux has smaller ones
HEX = f"{_machine()}-{NOBODY}-7-{'0a' * 8}"
PART = f".{HEX}.part"


def left(folder):
    """Put what killed runs leave into a folder, and return its paths."""
    (folder / PART).write_bytes(bytes(1500))
    for name in (f"{STAGED}{HEX}", f"{SPILLED}{HEX}"):
        (folder / name / "below").mkdir(parents=True)
        (folder / name / "below" / "rows").write_bytes(bytes(1000))
    return {folder / name for name in (PART, f"{STAGED}{HEX}", f"{SPILLED}{HEX}")}


ELSES = (  # what merely looks like it, and what belongs to a living process or to another machine
    f"{PART}.txt",
    f"a{PART}",
    f".{HEX[:-1]}g.part",
    f".{HEX[:-1]}.part",
    f"{STAGED}{HEX}0",
    f".{SPILLED}{HEX}",
    f".{_machine()}-{os.getpid()}-{_began(os.getpid())}-{'0a' * 8}.part",
    f".{HEX.replace(_machine(), '0' * 8)}.part",
)


def test_what_was_left_is_removed_and_nothing_else(tmp_path):
    inner = tmp_path / "store" / "deep"
    inner.mkdir(parents=True)
    expected = left(tmp_path) | left(inner)
    for name in ELSES:
        (inner / name).write_text("mine")
    elsewhere = tmp_path.with_name("elsewhere")
    elsewhere.mkdir()
    others = left(elsewhere)
    (tmp_path / "link").symlink_to(elsewhere)
    other = [HEX.replace("0a", byte) for byte in ("0b", "0c", "0d")]
    for name, target in ((f".{other[0]}.part", "file"), (f"{STAGED}{other[0]}", "folder")):
        (tmp_path / name).symlink_to(tmp_path / target)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / f"{SPILLED}{other[1]}").write_text("no folder")
    (tmp_path / f".{other[1]}.part").mkdir()
    os.mkfifo(tmp_path / f".{other[2]}.part")
    before = set(tmp_path.rglob("*"))
    assert set(cleaned(tmp_path)) == expected
    gone = {path for path in before if path in expected or expected & set(path.parents)}
    assert set(tmp_path.rglob("*")) == before - gone
    assert all(path.exists() for path in others)
    assert list(cleaned(tmp_path)) == []
    assert list(left_below(tmp_path, here=False)) == [inner / f".{HEX.replace(_machine(), '0' * 8)}.part"]


KILLED = """
import os, signal, sys
from pathlib import Path
from audit.io.files import Kind, writing
from audit.io.temporary import SPILLED, STAGED, temporary_folder
here = Path(sys.argv[1])
folders = temporary_folder(STAGED, here), temporary_folder(SPILLED, here)
with writing(here / "a", Kind("a")) as file, folders[0] as one, folders[1] as other:
    for path in (one, other):
        (path / "rows").write_bytes(bytes(1000))
    file.write(bytes(1500))
    file.flush()
    print("at work", flush=True)
    sys.stdin.readline()
"""


def test_what_a_living_process_has_stays_until_it_is_killed(tmp_path):
    command, pipe = [sys.executable, "-c", KILLED, str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline() == "at work\n"
        names = sorted(os.listdir(tmp_path))
        find_leftovers(tmp_path)
        assert (pop_leftovers(), list(cleaned(tmp_path))) == ([], [])
        process.kill()
    assert (sorted(os.listdir(tmp_path)), len(names)) == (names, 3)
    write_atomically(tmp_path / "b", "text", Kind("a"))  # the next run
    write_atomically(tmp_path / "c", "text", Kind("a"))
    words, way = "left by a run that was killed: 3 files or folders", f"`plaudit doctor --clean {tmp_path}`"
    assert pop_leftovers() == [f"{words}; {way} removes what may be personal data"]
    assert sorted(path.name for path in cleaned(tmp_path)) == names
    assert sorted(os.listdir(tmp_path)) == ["b", "c"]


def test_a_result_that_has_its_name_is_not_lost_with_the_other_name(tmp_path, monkeypatch):
    """A run that is killed between the two steps of `writing`."""
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: None)
    with writing(tmp_path / "a", None) as file:
        file.write(b"text")
    monkeypatch.undo()
    (part,) = [path for path in tmp_path.iterdir() if path.name != "a"]
    part.rename(tmp_path / PART)  # as if its process were gone
    assert len(list(cleaned(tmp_path))) == 1
    assert (os.listdir(tmp_path), (tmp_path / "a").read_text()) == (["a"], "text")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to be somebody else")
def test_what_is_somebody_elses_stays(tmp_path):
    paths = left(tmp_path)
    for path in paths:
        os.chown(path, 65534, 65534)
    assert list(cleaned(tmp_path)) == []
    find_leftovers(tmp_path)
    assert pop_leftovers() == []
    assert all(path.exists() for path in paths)


def test_a_process_that_has_the_number_of_another_is_not_that(tmp_path):
    """After the machine was started again, say."""
    (tmp_path / f".{HEX.replace(str(NOBODY), str(os.getpid()))}.part").touch()
    assert len(list(cleaned(tmp_path))) == 1


def test_two_commands_may_remove_the_same(tmp_path):
    left(tmp_path)
    one = cleaned(tmp_path)
    next(one)
    assert len(list(cleaned(tmp_path))) == 2
    list(one)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_gone_or_hidden_holds_nothing(tmp_path):
    find_leftovers(tmp_path / "gone")
    assert (pop_leftovers(), list(cleaned(tmp_path / "gone"))) == ([], [])
    shutil.rmtree(tmp_path)
