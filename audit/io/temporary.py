"""Temporary files and folders. Their names contain the process and random digits, so that leftovers can be found."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

__all__ = [
    "SPILLED",
    "STAGED",
    "cleaned",
    "find_leftovers",
    "left_below",
    "part_of",
    "pop_leftovers",
    "temporary_folder",
]

SPILLED, STAGED = "plaudit-spilled-", ".plaudit-staged-"  # prefixes of temporary folders
OWNER = "(?P<machine>[0-9a-f]{8})-(?P<process>[0-9]{1,10})-(?P<began>[0-9]{1,20})-[0-9a-f]{16}"
FILE, FOLDER = re.compile(rf"\.{OWNER}\.part"), re.compile(rf"(?:{SPILLED}|{re.escape(STAGED)}){OWNER}")
SPARE = 6  # file descriptors: removing a folder takes two, plus one for each nested level

_found: dict[Path, list[str]] = {}  # messages about each folder searched


def part_of(path: Path) -> Path:
    """Return the temporary path under which a file is written, in the same folder."""
    find_leftovers(path.parent)
    return path.with_name(f".{_owner()}.part")


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Make a private folder, and remove it at the end of the context."""
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    find_leftovers(parent)
    folder = parent / f"{prefix}{_owner()}"
    spare: list[int] = []  # for the removal, if the block uses up all other file descriptors
    try:
        try:
            folder.mkdir(0o700)
            for _ in range(SPARE):
                spare.append(os.open(os.devnull, os.O_RDONLY))
            yield folder
        finally:
            while spare:
                os.close(spare.pop())
            shutil.rmtree(folder, ignore_errors=True)
    finally:  # again, in case an interrupt stopped the first call
        shutil.rmtree(folder, ignore_errors=True)


def find_leftovers(folder: Path) -> None:
    """Search a folder, once per command, for files of killed runs, and check whether it leads through a link."""
    folder = Path(os.path.abspath(folder))
    if folder in _found or any(map(FOLDER.fullmatch, folder.parts)):
        return
    words = []
    if (real := os.path.realpath(folder)) not in (str(folder), os.path.realpath(tempfile.gettempdir())):
        words.append(f"{folder} leads through a link: what is written there is in {real}")
    if left := _leftovers(folder):
        many, clean = "s" * (len(left) > 1), f"`plaudit doctor --clean {shlex.quote(str(folder))}`"
        number = f"{len(left)} file{many} or folder{many}"
        words.append(f"left by a run that was killed: {number}; {clean} removes what may be personal data")
    _found[folder] = words


def pop_leftovers() -> list[str]:
    """Return the messages of `find_leftovers`, and clear them."""
    words = [one for words in _found.values() for one in words]
    _found.clear()
    return words


def cleaned(folder: Path) -> Iterator[Path]:
    """Remove files that killed runs of this user left in a folder and below; yield each path."""
    for path in left_below(folder):
        with suppress(FileNotFoundError):  # another process has just removed it
            (shutil.rmtree if FOLDER.fullmatch(path.name) else Path.unlink)(path)
        yield path


def left_below(folder: Path, *, here: bool = True) -> Iterator[Path]:
    """Yield files of killed runs in a folder and below; if not `here`, files of other machines, alive or not."""
    for place, _, _ in os.walk(folder):  # does not follow links
        yield from _leftovers(Path(place), here=here)


def _owner() -> str:
    return f"{_machine()}-{os.getpid()}-{_began(os.getpid())}-{secrets.token_hex(8)}"


@cache
def _machine() -> str:
    """Return an id of the machine and its namespace of process ids, as each container numbers its own processes."""
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # not Linux
        space = 0
    return hashlib.sha256(f"{socket.gethostname()} {space}".encode()).hexdigest()[:8]


def _leftovers(folder: Path, *, here: bool = True) -> list[Path]:
    """Return temporary files of the user whose process has ended; if not `here`, all those of other machines."""
    entries, found = list[os.DirEntry[str]](), []
    with suppress(OSError):  # it is gone or unreadable
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    for entry in entries:
        is_folder = FOLDER.fullmatch(entry.name)
        if (owner := is_folder or FILE.fullmatch(entry.name)) and (owner["machine"] == _machine()) == here:
            with suppress(OSError):  # another process has just removed it: go on
                status = entry.stat(follow_symlinks=False)
                is_kind = stat.S_ISDIR if is_folder else stat.S_ISREG
                alive = here and _began(int(owner["process"])) == owner["began"]
                if status.st_uid == os.geteuid() and is_kind(status.st_mode) and not alive:
                    found.append(Path(folder, entry.name))
    return found


def _began(process: int) -> str:
    """Return the start of a process in ticks since boot, since ids are reused; empty if the process has ended."""
    try:
        if not Path("/proc/self").exists():  # not Linux
            os.kill(process, 0)
            return "0"
        state, *others = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, OverflowError):
        return ""
    return "" if state == b"Z" else others[18].decode()
