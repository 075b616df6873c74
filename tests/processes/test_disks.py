"""Disks that are full, read-only, or gone in the middle: one line and exit code 2, and nothing that is half written."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.fuzz.holding import tree
from tests.processes.commands import COMMANDS
from tests.processes.making import NOBODY, Making
from tests.processes.running import Changes, run, visible


def no_larger(making: Making, rng: random.Random) -> bool:
    """No file may have more bytes: a disk that is full in the middle of a write."""
    size = rng.choice([0, 1, rng.randrange(making.largest)])
    folder = making.prepared()
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))
    return making.held(run(making.command, folder, limit), folder)


def full(making: Making, rng: random.Random) -> bool:
    """A disk with as much space left as a few small files take."""
    with disk(making.prepared()) as folder:
        space, left = os.statvfs(folder), rng.randrange(2 + making.largest // 2**11)  # blocks of 4 KiB
        (folder / "filler").write_bytes(bytes((max(0, space.f_bavail - left)) * space.f_bsize))
        ended = run(making.command, folder)
        (folder / "filler").unlink()
        return making.held(ended, folder)


def small_store(making: Making, rng: random.Random) -> bool:
    """A disk of its own for finished runs, with a few pages."""
    folder = making.prepared()
    (folder / "kept").mkdir()
    with disk(folder / "kept", f"{4 * rng.randrange(1, 12)}k") as kept:
        ended = run(making.command, folder)
        for path in kept.iterdir():
            shutil.rmtree(path)
    for name in ("kept", "before"):
        shutil.rmtree(folder / name)
    saved = {path for path in making.whole if path.startswith("out/")} <= tree(folder).keys()
    assert saved if ended.code == making.undisturbed.code else ended.err.startswith("plaudit: error: gdpc: kept/"), (
        ended
    )
    return making.held(ended, folder, lost=True)


def full_output(making: Making, rng: random.Random) -> bool:
    """Nothing that is printed can be written."""
    folder = making.prepared()
    return making.held(run(making.command, folder, lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1)), folder)


def read_only(making: Making, rng: random.Random) -> bool:
    """A disk that nobody may write, the superuser included."""
    with disk(making.prepared()) as folder:
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        ended = run(making.command, folder)
        assert visible(tree(folder)) == making.before
        return making.held(ended, folder)


def somebody_elses(making: Making, rng: random.Random) -> bool:
    """Folders that their owner alone may write."""
    if os.geteuid():
        pytest.skip("needs the right to be somebody else")
    folder = making.prepared()
    ended = run(making.command, folder, partial(os.seteuid, NOBODY))
    assert visible(tree(folder)) == making.before
    return making.held(ended, folder)


def taken(making: Making, rng: random.Random) -> bool:
    """A file where the folder is to be."""
    folder = making.prepared()
    if (folder / "out").exists():
        shutil.rmtree(folder / "out")
    (folder / "out").write_text("a file")
    before = tree(folder)
    ended = run(making.command, folder)
    assert visible(tree(folder)) == before
    (folder / "out").unlink()
    return making.held(ended, folder, lost=True)


def removed(making: Making, rng: random.Random) -> bool:
    """Somebody removes where results go, or all of it, while the command is at work."""
    folder = making.prepared()
    target, step = rng.choice([folder, folder / "out"]), rng.randint(1, making.steps)
    changes = Changes(folder)
    ended = run(making.command, folder, changes.watched(step, lambda: shutil.rmtree(target, ignore_errors=True)))
    return making.held(ended, folder, lost=True)


def failing(making: Making, rng: random.Random) -> bool:
    """One step fails, as of a disk that is broken."""
    folder, step = making.prepared(), rng.randint(1, making.steps)

    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    return making.held(run(making.command, folder, Changes(folder).watched(step, fail)), folder, unread=True)


WAYS = {
    no_larger: 6,
    full: 6,
    small_store: 6,
    full_output: 1,
    read_only: 1,
    somebody_elses: 1,
    taken: 1,
    removed: 15,
    failing: 15,
}
"""What happens to a disk, and how often it is tried with each command."""
QUICK = [
    pytest.param(way, name, marks=pytest.mark.quick)
    for way, name in ((no_larger, "replay"), (full_output, "replay"), (taken, "replay"), (removed, "release ons"))
]
FULL = [
    pytest.param(way, name, marks=pytest.mark.slow)
    for way in WAYS
    for name in (COMMANDS if way is not small_store else ["audit"])
]


@contextmanager
def disk(folder: Path, size: str = "16m") -> Iterator[Path]:
    """Put a disk of its own in a folder's place, with what the folder holds; skip where that is not allowed."""
    kept = folder.rename(folder.with_name("before"))
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    try:
        shutil.copytree(kept, folder, symlinks=True, dirs_exist_ok=True)
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.reliability(8)
@pytest.mark.parametrize(("way", "name"), [*QUICK, *FULL])
def test_on_such_a_disk_it_says_so_and_leaves_nothing_half(request, record_property, making, way, name):
    times = WAYS[way] if request.node.get_closest_marker("slow") else 1
    record_property("tried", times)
    rng, one = random.Random(f"{way.__name__} {name}"), making(COMMANDS[name])
    ends = [way(one, rng) for _ in range(times)]
    assert way in (failing, no_larger, full, small_store, removed) or not any(ends)
