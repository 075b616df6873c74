"""Atomic writes of files, and reading of files and JSON of bounded size."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from audit.io.temporary import STAGED, find_leftovers, part_of, temporary_folder
from audit.io.text import quoted

__all__ = [
    "DIGITS",
    "Kind",
    "check_levels",
    "check_replaceable",
    "check_writable",
    "make_folder",
    "parsed_json",
    "read_bytes",
    "recorded",
    "sync",
    "write_atomically",
    "writing",
]

LARGEST = 64 * 2**20  # bytes of a JSON file
MOST_VALUES = 2**21  # of JSON: a value takes 100 bytes of memory, but only two of the file
DEEPEST = 100  # levels of nested JSON, or of nested new folders; results have ten
TOO_DEEP = f"it is nested too deeply, on more than {DEEPEST} levels"
DIGITS = 308  # of an integer in JSON: with more, it may overflow a float
HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a surrogate pair; both halves together are one character
# Errors of fsync to ignore: an unreadable folder, or a file system that cannot sync folders.
UNSYNCED = (errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOTSUP)
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class Kind(NamedTuple):
    """A kind of file: its description, and the first bytes and a later mark that identify it."""

    words: str
    begins: bytes = b""
    mark: bytes = b""


def check_replaceable(path: Path, kind: Kind | None = None) -> None:
    """Check before the work that a file can be written; an existing file must be of the same kind."""
    check_writable(path.parent)
    _check_kind(path, kind)


def _check_kind(path: Path, kind: Kind | None) -> None:
    """Raise an error if the path exists, unless it is a regular file of this kind (no link, folder or device)."""
    if os.path.lexists(path):
        if kind is not None and path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(len(kind.begins)) == kind.begins and kind.mark in file.read(LARGEST):
                    return
        what = "is there" if kind is None else f"is there, and is not {kind.words}"
        raise FileExistsError(errno.EEXIST, f"{what}: it stays, so name a new file", str(path))


@contextmanager
def writing(path: Path, kind: Kind | None, *, private: bool = False, synced: bool = True) -> Iterator[BinaryIO]:
    """Open a binary file that appears, or replaces a file of the same kind, when the block ends without an error."""
    # If `kind` is None, the path must be free: of several writers only one succeeds. Only the owner can read a
    # `private` file. A `synced` file is on the disk before it gets its name.
    _check_kind(path, kind)
    make_folder(path.parent)
    with _written(path, private) as (file, part):
        yield file
        file.close()
        if synced:
            sync(part)
        if kind is None:
            _take_name(part, path)
        else:
            os.replace(part, path)
        if synced:
            sync(path.parent)


def _take_name(part: Path, path: Path) -> None:
    """Rename a file; raise an error if the new name is taken."""
    try:
        path.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: reserve the name, then replace it
        path.open("x").close()
        try:
            os.replace(part, path)
        except BaseException:
            path.unlink()
            raise


def write_atomically(
    path: Path, content: str | bytes | Iterable[bytes], kind: Kind | None, *, private: bool = False, synced: bool = True
) -> None:
    """Write a file atomically (a reader sees the old or the new content), and make missing folders."""
    with writing(path, kind, private=private, synced=synced) as file:
        content = content.encode() if isinstance(content, str) else content
        file.writelines([content] if isinstance(content, bytes) else content)


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, and sync them to the disk."""
    check_levels(folder)
    new = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    folder.mkdir(parents=True, exist_ok=True)
    for place in new:
        sync(place.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in UNSYNCED or not path.is_dir():
            raise


def check_levels(folder: Path) -> None:
    """Raise an error if more than 100 nested folders would have to be made."""
    if new := sum(not os.path.lexists(place) for place in (folder, *folder.parents)[DEEPEST:]):
        raise ValueError(f"at most {DEEPEST} folders may be new in each other, got {DEEPEST + new} for {folder}")


def check_writable(folder: Path) -> None:
    """Check before the work that a folder is writable or can be made; do not make it."""
    check_levels(folder)
    if ".." in folder.parts:
        folder = Path(os.path.realpath(folder))
    above = next((place for place in (folder, *folder.parents) if os.path.lexists(place)), Path())
    try:
        if above == folder:
            tempfile.TemporaryFile(dir=folder).close()
            find_leftovers(folder)
            return
        with temporary_folder(STAGED, above) as trial:  # not the folder itself: another process may make it meanwhile
            Path(trial, *folder.parts[len(above.parts) :]).mkdir(parents=True)
    except OSError as error:
        error.filename = str(folder)
        raise


def recorded(path: str | os.PathLike[str]) -> str:
    """Return a path for a record: relative to the current folder if below it, else only the file name.

    >>> recorded("counts/2020.csv"), recorded("/home/somebody/counts.csv")
    ('counts/2020.csv', 'counts.csv')
    """
    absolute, here = Path(os.path.abspath(path)), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else absolute.name


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """Read a file or a pipe of at most `most` bytes (default: 64 MiB); raise an error for a device."""
    limit, status = LARGEST if most is None else most, path.stat()
    if stat.S_ISCHR(status.st_mode):  # it may never end
        raise ValueError(f"{path} must be a file or a pipe, got a device")
    size = status.st_size
    if size <= limit:
        with path.open("rb") as file:
            content = file.read(size + 1)
            if len(content) > size:  # a pipe, whose size is unknown
                content += file.read(limit - size)
        size = len(content)
    if size > limit:
        raise ValueError(f"{path} must be at most {limit} bytes, got {size}")
    return content


def parsed_json(content: bytes) -> Any:
    """Parse JSON in UTF-8 of bounded size and depth. Repeated names are an error, since parsers disagree on them."""
    if (values := sum(content.count(mark) for mark in (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"it must have at most {MOST_VALUES:,} commas and brackets, got {values:,}")
    try:
        value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once, parse_int=_whole)
        if HALF.search(content):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except UnicodeEncodeError as error:
        raise ValueError(f"half of a surrogate pair is no text, got {error.object[error.start]!a}") from None
    if _deeper(value, DEEPEST):
        raise ValueError(TOO_DEEP)
    return value


def _deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [value for values in inner for value in values]
    return any(isinstance(one, dict | list) for one in level)


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a number must have at most {DIGITS} digits, got {len(digits)}")
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(values := dict(pairs)) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{quoted(twice)} stands twice")
    return values


@contextmanager
def _written(path: Path, private: bool) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a new file beside `path` under a temporary name, and remove that name afterwards."""
    part = part_of(path)
    try:
        with os.fdopen(os.open(part, NEW, 0o600 if private else 0o666), "wb") as file:
            yield file, part
    finally:
        try:
            part.unlink(missing_ok=True)
        finally:  # again, in case an interrupt stopped the first call
            part.unlink(missing_ok=True)
