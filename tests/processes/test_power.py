"""The power fails at any step of a command: nothing is half there, and what it said it had saved is there."""

from __future__ import annotations

import io
import os
import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from algorithms.release.folder import STAGED
from audit.io import files
from audit.sampling.checkpoint import DIGEST, BlockStore
from tests.processes.commands import COMMANDS
from tests.processes.making import ABOUT_ALL, Making
from tests.processes.power import Disk
from tests.processes.running import KILLED, Tree, visible

STORE = "kept"  # whose blocks are not synced: each tells whether it is whole
STATES = {"audit": 20}
"""Of each kind, in which the command is run again in the long tests, one of the other commands."""
QUICK = ("replay", "release ons")


def believed(path: str) -> bool:
    """Whether a reader takes a file for what was saved, whatever it holds."""
    return Path(path).parts[0] != STORE and not KILLED.search(path) and not path.startswith(STAGED)


def wrong(tree: Tree, making: Making, whole: Tree, *, ended: bool) -> list[str]:
    """Return what is half there; or is missing although it was there, or comes before what is there, or was told."""
    found = {path: content for path, content in visible(tree).items() if believed(path)}
    halves = [path for path in found if found[path] not in (making.before.get(path, b"\0"), whole.get(path, b"\0"))]
    new = {path for path in whole.keys() - making.before.keys() if believed(path)}
    last = ABOUT_ALL.keys() | ({"out"} if " release " in making.command else set())
    wanted = new if ended or last & new & found.keys() else set()
    missing = (making.before.keys() | wanted) - found.keys()
    return [*(f"half: {path}" for path in halves), *(f"missing: {path}" for path in sorted(missing))]


def put(tree: Tree, folder: Path) -> None:
    """Let a folder hold what the disk did."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif not path.is_symlink():
            path.unlink()
    for path, content in tree.items():  # links are there, and no command of these changes one
        path = path.replace(f"-{os.getpid()}-", "-4194305-")  # this process recorded the run, and is still there
        if content is None:
            (folder / path).mkdir()
        elif not (folder / path).is_symlink():
            (folder / path).write_bytes(content)


def recorded(making: Making, deaf: str = "") -> tuple[Disk, Tree]:
    """Record a run of the command, and return what it leaves where the power does not fail."""
    disk = Disk(making.prepared(), making.command, deaf)
    assert disk.code == making.undisturbed.code
    return disk, visible(next(tree for _, tree, ended in disk.states() if ended))


@pytest.mark.reliability(22)
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS if name not in QUICK)]
)
def test_where_the_power_fails_nothing_is_half_there_and_nothing_is_lost_that_was_told(making, record_property, name):
    one = making(COMMANDS[name])
    disk, whole = recorded(one)
    kinds: dict[str, list[Tree]] = defaultdict(list)
    for kind, tree, ended in disk.states():
        assert wrong(tree, one, whole, ended=ended) == [], (kind, ended)
        kinds[kind] += [] if ended else [tree]
    assert len(kinds) > 3
    rng, again = random.Random(name), 0
    for trees in kinds.values():
        for tree in rng.sample(trees, min(len(trees), STATES.get(name, 1))):
            folder = one.prepared()
            put(tree, folder)
            one.again(folder)
            again += 1
    record_property("tried", sum(map(len, kinds.values())))
    counts = {kind: len(trees) for kind, trees in kinds.items() if trees}
    record_property("counts", {name: counts, "states in which the command was run again": {f"of {name}": again}})


# The same disk notices a write that is not as it should be


@contextmanager
def in_place(path: Path, private: bool) -> Iterator[tuple[BinaryIO, Path]]:
    """Write a file under the name that readers know."""
    with path.open("wb") as file:
        yield file, path


@pytest.mark.parametrize(
    ("name", "deaf", "found"),
    [
        ("report", "files", "half: out/page.html"),
        ("report", "folders", "missing: out/page.html"),
        ("report", "", "half: out/page.html"),
        ("release ons", "folders", "missing: out/release.json"),
        ("release ons", "files", "half: out/release.json"),
    ],
)
def test_a_write_without_its_sync_or_in_place_is_noticed(making, monkeypatch, name, deaf, found):
    one = making(COMMANDS[name])
    if not deaf:
        monkeypatch.setattr(files, "_written", in_place)
    disk, whole = recorded(one, deaf)
    faults = Counter(fault for _, tree, ended in disk.states() for fault in wrong(tree, one, whole, ended=ended))
    assert faults[found] > 0


@pytest.mark.slow
def test_a_store_that_trusts_what_was_not_synced_is_noticed(making, monkeypatch):
    def trusting(store, stream, number):
        path = store._path(stream, number)
        return np.load(io.BytesIO(path.read_bytes()[DIGEST:]), allow_pickle=False) if path.exists() else None

    one = making(COMMANDS["audit"])
    disk, _ = recorded(one)
    *_, torn = (tree for kind, tree, _ in disk.states() if kind == "content zeros")
    put(torn, folder := one.prepared())
    monkeypatch.setattr(BlockStore, "read", trusting)
    with pytest.raises(AssertionError):
        one.again(folder)
