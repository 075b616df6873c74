"""Files that are written whole or not at all, and files of JSON of bounded size."""

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

LARGEST = 64 * 2**20  # bytes of a file of JSON
MOST_VALUES = 2**21  # of JSON: one takes a hundred bytes of memory, and two in the file
DEEPEST = 100  # levels of JSON, or of new folders, in each other; results have ten
TOO_DEEP = f"it is nested too deeply, on more than {DEEPEST} levels"
DIGITS = 308  # of a whole number in JSON: a float holds what has no more
HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a surrogate pair; two that follow each other are a letter
# Of folders that may not be read, or whose names a system cannot be told to write.
UNSYNCED = (errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOTSUP)
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class Kind(NamedTuple):
    """A kind of file in words, with the first bytes and a later mark by which it is recognized."""

    words: str
    begins: bytes = b""
    mark: bytes = b""


def check_replaceable(path: Path, kind: Kind | None = None) -> None:
    """Refuse a file that cannot be written, before the work; an existing file must be of the same kind."""
    check_writable(path.parent)
    _check_kind(path, kind)


def _check_kind(path: Path, kind: Kind | None) -> None:
    """Refuse to replace a file of another kind, a link, a folder or a device; without a kind, whatever is there."""
    if os.path.lexists(path):
        if kind is not None and path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(len(kind.begins)) == kind.begins and kind.mark in file.read(LARGEST):
                    return
        what = "is there" if kind is None else f"is there, and is not {kind.words}"
        raise FileExistsError(errno.EEXIST, f"{what}: it stays, so name a new file", str(path))


@contextmanager
def writing(path: Path, kind: Kind | None, *, private: bool = False, synced: bool = True) -> Iterator[BinaryIO]:
    """Open a file for bytes that appears, or replaces one of its kind, once the block has ended without an error."""
    # Without a kind it appears where nothing is: of several writers, one gets the name. A `private` file is for its
    # owner alone; a `synced` one is on the disk before it has its name.
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
    """Give a file its name, which must be free."""
    try:
        path.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: take the name first, then fill it
        path.open("x").close()
        try:
            os.replace(part, path)
        except BaseException:
            path.unlink()
            raise


def write_atomically(
    path: Path, content: str | bytes | Iterable[bytes], kind: Kind | None, *, private: bool = False, synced: bool = True
) -> None:
    """Write a file, whole or not at all, and its folders if need be: a reader sees the old one or the new one."""
    with writing(path, kind, private=private, synced=synced) as file:
        content = content.encode() if isinstance(content, str) else content
        file.writelines([content] if isinstance(content, bytes) else content)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, and sync their names to the disk."""
    check_levels(folder)
    new = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    folder.mkdir(parents=True, exist_ok=True)
    for place in new:
        sync(place.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
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
    """Refuse a folder below more than 100 new ones."""
    if new := sum(not os.path.lexists(place) for place in (folder, *folder.parents)[DEEPEST:]):
        raise ValueError(f"at most {DEEPEST} folders may be new in each other, got {DEEPEST + new} for {folder}")


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written or made, before the work; it is not made."""
    check_levels(folder)
    if ".." in folder.parts:
        folder = Path(os.path.realpath(folder))
    above = next((place for place in (folder, *folder.parents) if os.path.lexists(place)), Path())
    try:
        if above == folder:
            tempfile.TemporaryFile(dir=folder).close()
            find_leftovers(folder)
            return
        with temporary_folder(STAGED, above) as trial:  # others may make the folder meanwhile
            Path(trial, *folder.parts[len(above.parts) :]).mkdir(parents=True)
    except OSError as error:
        error.filename = str(folder)
        raise


def recorded(path: str | os.PathLike[str]) -> str:
    """Return a path as a record shows it: relative to the current folder if below it, else the name alone.

    >>> recorded("counts/2020.csv"), recorded("/home/somebody/counts.csv")
    ('counts/2020.csv', 'counts.csv')
    """
    absolute, here = Path(os.path.abspath(path)), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else absolute.name


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """Read a file or a pipe of at most so many bytes (64 MiB); refuse a larger one, and a device."""
    limit, status = LARGEST if most is None else most, path.stat()
    if stat.S_ISCHR(status.st_mode):  # it may never end
        raise ValueError(f"{path} must be a file or a pipe, got a device")
    size = status.st_size
    if size <= limit:
        with path.open("rb") as file:
            content = file.read(size + 1)
            if len(content) > size:  # of a pipe no size is known
                content += file.read(limit - size)
        size = len(content)
    if size > limit:
        raise ValueError(f"{path} must be at most {limit} bytes, got {size}")
    return content


def parsed_json(content: bytes) -> Any:
    """Return the value of JSON in UTF-8 that fits into memory and has no name twice: readers differ there."""
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
    """Open a new file beside another, under a temporary name, and leave nothing of that name behind."""
    part = part_of(path)
    try:
        with os.fdopen(os.open(part, NEW, 0o600 if private else 0o666), "wb") as file:
            yield file, part
    finally:
        try:
            part.unlink(missing_ok=True)
        finally:  # once more, where an interrupt came before
            part.unlink(missing_ok=True)
