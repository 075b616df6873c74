"""Temporary files and folders: locked while a process needs them, so that those of killed processes can be told.

Their names are long and random: nobody else has a file of such a name. A lock ends with the process that holds it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

__all__ = ["SPILLED", "STAGED", "cleaned", "held", "hooks", "look_for_left", "part_of", "take_left", "temporary_folder"]

SPILLED, STAGED = "plaudit-spilled-", ".plaudit-staged-"  # how names of temporary folders begin
FILE, FOLDER = re.compile(r"\.[0-9a-f]{32}\.part"), re.compile(rf"(?:{SPILLED}|{re.escape(STAGED)})[0-9a-f]{{16}}")
NEEDED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
SPARE = 6  # file descriptors: to remove a folder takes two, and one more for each folder below
BETWEEN = 0.1  # seconds in which what a living process has just made is locked, so that it is not named
UNITS = ("bytes", "kB", "MB", "GB", "TB")

Made = TypeVar("Made")

hooks: list[Callable[[Path], None]] = []  # told of each folder that a command writes into
_left: dict[Path, list[str]] = {}  # what was found in them, in words


def part_of(path: Path) -> Path:
    """Return the name under which a file is written, beside its own."""
    return path.with_name(f".{secrets.token_hex(16)}.part")


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Lend a folder that nobody else may read, and remove it if it is still there when the block ends."""
    folder = (Path(tempfile.gettempdir()) if parent is None else parent) / f"{prefix}{secrets.token_hex(8)}"
    lock, spare = (
        None,
        [],
    )  # file descriptors; the spare ones are for the removal, where the block has used up all others
    try:
        try:
            _, lock = held(folder, lambda: folder.mkdir(0o700))
            for _ in range(SPARE):
                spare.append(os.open(os.devnull, os.O_RDONLY))
            yield folder
        finally:
            while spare:
                os.close(spare.pop())
            shutil.rmtree(folder, ignore_errors=True)
    finally:  # once more, where an interrupt came between
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def held(path: Path, make: Callable[[], Made]) -> tuple[Made, int | None]:
    """Make a temporary file or folder and lock it; return it and the lock, None on a file system without locks."""
    look_for_left(path.parent)
    while True:
        made = make()
        lock = _locked(path, wait=True)
        if lock is not None or os.path.lexists(path):
            return made, lock
        # Somebody cleaned up between the two steps: once more.


def look_for_left(folder: Path) -> None:
    """Look, once a command, where a folder that is written into leads, and for what killed runs have left in it."""
    folder = Path(os.path.abspath(folder))
    if folder in _left or any(map(FOLDER.fullmatch, folder.parts)):
        return
    for told in hooks:
        told(folder)
    sizes, words = list[int](), []
    if (real := os.path.realpath(folder)) not in (str(folder), os.path.realpath(tempfile.gettempdir())):
        words.append(f"{folder} leads through a link: what is written there is in {real}")
    for path, lock in _left_in(folder):
        sizes += _sizes(path)
        os.close(lock)
    if sizes:
        many = f"{len(sizes)} file{'s' * (len(sizes) != 1)}, {in_bytes(sum(sizes))}"
        clean = f"`plaudit doctor --clean {shlex.quote(str(folder))}` removes what may be personal data"
        words.append(f"left by a run that was killed: {many}; {clean}")
    _left[folder] = words


def take_left() -> list[str]:
    """Return in words what `look_for_left` has found, and forget it."""
    found = [one for words in _left.values() for one in words]
    _left.clear()
    return found


def cleaned(folder: Path) -> Iterator[tuple[Path, str]]:
    """Remove what killed runs of this user have left in a folder and below; yield each path and its size in words."""
    for place, _, _ in os.walk(folder):  # which follows no links
        for path, lock in _left_in(Path(place)):
            try:
                size = in_bytes(sum(_sizes(path)))
                if FOLDER.fullmatch(path.name):
                    shutil.rmtree(path)
                else:
                    path.unlink()
            finally:
                os.close(lock)
            yield path, size


def in_bytes(size: float) -> str:
    """Return a number of bytes in words.

    >>> in_bytes(1), in_bytes(2500), in_bytes(3e9)
    ('1 byte', '2.5 kB', '3 GB')
    """
    power = min(len(UNITS) - 1, (len(str(int(size))) - 1) // 3)
    return "1 byte" if size == 1 else f"{size / 1000**power:.3g} {UNITS[power]}"


def _left_in(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield what is the user's own, has such a name and is in no living process's hands, each with a lock on it."""
    try:
        names = sorted(name for name in os.listdir(folder) if FILE.fullmatch(name) or FOLDER.fullmatch(name))
    except OSError:  # gone, or not to be read
        return
    if names:
        time.sleep(BETWEEN)
    for path in (folder / name for name in names):
        if (lock := _locked(path, wait=False)) is not None:
            status = os.fstat(lock)
            is_kind = stat.S_ISDIR if FOLDER.fullmatch(path.name) else stat.S_ISREG
            if status.st_uid == os.geteuid() and is_kind(status.st_mode):
                yield path, lock
            else:
                os.close(lock)


def _locked(path: Path, *, wait: bool) -> int | None:
    """Return a lock on what has a name, or None where it is gone or another process has it."""
    handle = None
    try:
        handle = os.open(path, NEEDED)
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(os.fstat(handle), os.lstat(path)):
            return handle
    except OSError:
        pass
    if handle is not None:
        os.close(handle)
    return None


def _sizes(path: Path) -> list[int]:
    """Return the bytes of a file, or of each in a folder."""
    files = [path] if path.is_file() else [Path(place, name) for place, _, names in os.walk(path) for name in names]
    return [os.lstat(file).st_size for file in files]
