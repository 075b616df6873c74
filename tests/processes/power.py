"""What a disk may hold after the power has failed: all that was synced, and of the rest any part.

The file system promises little. Of a file that was not synced the content may be the old one, empty, cut or zeros. A
name is set, replaced or removed in one step, and that step may be lost until its folder is synced, whatever else is
there by then. This is the model of Pillai and others, 2014, "All file systems are not created equal".
"""

from __future__ import annotations

import os
import random
import stat
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.processes.running import CHANGES, Tree, run_here

WAYS = ("old", "empty", "cut", "short", "zeros")
DRAWS = 3  # of names and contents that are lost together, after each step
ROOT = 0
FOLDER = None  # in the place of a content


class Disk:
    """What a command does to a folder, step by step; a `deaf` disk does not sync files, or folders."""

    at_work: Disk | None = None

    def __init__(self, folder: Path, command: str, deaf: str = ""):
        self.folder, self.deaf = folder, deaf
        self.steps: list[tuple[str, int, Any]] = []
        self._numbers: dict[int, int] = {}  # of what is there, by inode, which a later file may have again
        self._names: dict[tuple[int, str], int] = {}
        self._stamps: dict[int, tuple[int, int]] = {}
        self._next = ROOT
        self._look()
        self.first, self.steps = self.steps, []
        self.code = self._recorded(command)

    def _recorded(self, command: str) -> int:
        """Run a command, and look before each step that it takes and at the end."""
        _hook()
        fsync = os.fsync

        def sync(handle: int) -> None:
            self._look()
            fsync(handle)
            status = os.fstat(handle)
            kind = "folders" if stat.S_ISDIR(status.st_mode) else "files"
            if status.st_ino in self._numbers and kind != self.deaf:
                self.steps.append(("sync", self._numbers[status.st_ino], None))

        Disk.at_work, os.fsync = self, sync
        try:
            return run_here(command, self.folder)
        finally:
            Disk.at_work, os.fsync = None, fsync
            self._look()

    def _look(self) -> None:
        """Note what has changed since the last look: new folders, names by folder, contents."""
        names: dict[tuple[int, str], int] = {}
        numbers: dict[int, int] = {}
        folders: list[tuple[str, int, Any]] = []
        contents: list[tuple[str, int, Any]] = []

        def number(status: os.stat_result) -> int:
            if status.st_ino not in numbers:
                numbers[status.st_ino] = self._numbers.get(status.st_ino, self._next)
                self._next = max(self._next, numbers[status.st_ino] + 1)
            return numbers[status.st_ino]

        waiting = [(str(self.folder), number(self.folder.stat()))]
        for path, above in waiting:
            for one in os.scandir(path):
                status = one.stat(follow_symlinks=False)
                names[above, one.name] = own = number(status)
                if one.is_dir(follow_symlinks=False):
                    waiting.append((one.path, own))
                    folders += [("data", own, FOLDER)] if own not in self._stamps else []
                    self._stamps[own] = (0, 0)
                elif self._stamps.get(own) != (stamp := (status.st_mtime_ns, status.st_size)):
                    self._stamps[own] = stamp
                    held = os.readlink(one.path).encode() if one.is_symlink() else Path(one.path).read_bytes()
                    contents.append(("data", own, held))
        changed: dict[int, dict[str, int | None]] = {}
        for above, name in self._names.keys() | names.keys():
            if self._names.get((above, name)) != (new := names.get((above, name))):
                changed.setdefault(above, {})[name] = new
        self.steps += [*folders, *(("names", above, step) for above, step in changed.items()), *contents]
        self._names, self._numbers = names, numbers

    def states(self) -> Iterator[tuple[str, Tree, bool]]:
        """Yield the states that may be there, each with its kind, and whether the command had ended."""
        rng = random.Random(1)
        names: dict[tuple[int, str], int | None] = {}
        contents: dict[int, bytes | None] = {}
        for what, at, value in self.first:
            if what == "names":
                names |= {(at, name): to for name, to in value.items()}
            else:
                contents[at] = value
        steps: dict[int, list[dict[str, int | None]]] = {}  # in folders that were not synced since
        fresh: dict[int, bytes | None] = {}  # contents that were not
        met = set()
        for number, (what, at, value) in enumerate([*self.steps, ("end", ROOT, None)]):
            if what == "sync":
                names |= {(at, name): to for step in steps.pop(at, ()) for name, to in step.items()}
                contents |= {at: fresh.pop(at)} if at in fresh else {}
            elif what == "names":
                steps.setdefault(at, []).append(value)
            elif value is FOLDER:
                contents[at] = FOLDER
            elif what == "data":
                fresh[at] = value
            if what == "sync" and number + 1 < len(self.steps):
                continue  # nothing new may be there
            for kind, left, ways in _variants(steps, sorted(fresh), rng):
                there = dict(names)
                for above, applied in left.items():
                    there |= {(above, name): to for step in applied for name, to in step.items()}
                held = {file: _damaged(contents.get(file), new, ways.get(file)) for file, new in fresh.items()}
                tree = _tree(there, contents | held)
                key = frozenset(tree.items())
                if key not in met or what == "end":
                    met.add(key)
                    yield kind, tree, what == "end"


@cache
def _hook() -> None:
    """Let the disk at work look before each step that changes something; a hook stays."""

    def look(event: str, given: tuple[Any, ...]) -> None:
        if event in CHANGES and Disk.at_work and (event != "open" or given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            Disk.at_work._look()

    sys.addaudithook(look)


def _variants(steps, files, rng):
    """Yield kinds of loss, each with the steps that are left of every folder, and what has become of every file."""
    yield "in order", steps, {}
    for above, taken in steps.items():
        for most in range(len(taken)):
            yield "names lost", steps | {above: taken[:most]}, {}
            later = {name for step in taken[most + 1 :] for name in step}
            if later and not later & taken[most].keys():
                yield "names lost", steps | {above: taken[:most] + taken[most + 1 :]}, {}
    yield "names lost", {}, {}
    for way in WAYS:
        for chosen in (*([file] for file in files), files):
            yield f"content {way}", steps, dict.fromkeys(chosen, way)
    for _ in range(DRAWS if steps and files else 0):
        left = {above: taken[: rng.randint(0, len(taken))] for above, taken in steps.items()}
        yield "names and contents", left, {file: rng.choice([None, *WAYS]) for file in files}


def _damaged(old: bytes | None, new: bytes | None, way: str | None) -> bytes | None:
    """Return what may be left of a file that was not synced."""
    return (
        new
        if way is None
        else {
            "old": old or b"",
            "empty": b"",
            "cut": new[: len(new) // 2],
            "short": new[:-1],
            "zeros": bytes(len(new)),
        }[way]
    )


def _tree(names: dict[tuple[int, str], int | None], contents: dict[int, bytes | None]) -> Tree:
    """Return what can be reached from the folder: files by their paths, folders with None."""
    inner: dict[int, list[tuple[str, int]]] = {}
    for (above, name), to in names.items():
        if to is not None:
            inner.setdefault(above, []).append((name, to))
    tree: Tree = {}
    waiting = [("", ROOT)]
    for path, number in waiting:
        for name, to in inner.get(number, ()):
            tree[path + name] = contents.get(to, b"")
            if tree[path + name] is FOLDER:
                waiting.append((f"{path}{name}/", to))
    return tree
