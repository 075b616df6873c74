"""Files written whole or not at all, and results as JSON with a schema version and a checksum."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["SCHEMA", "check_writable", "create_json", "read_json", "replacing", "write_atomically", "write_json"]

SCHEMA = 2
LARGEST = 64 * 2**20  # bytes


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write plain values as JSON, with their schema version and SHA-256, in one step.

    Parameters
    ----------
    path : pathlib.Path
        Where; the folder is made if need be. A reader sees the old file or the new one, never a part.
    values : dict
        Strings, finite numbers, booleans, None, lists and dicts of them.

    Raises
    ------
    ValueError
        If a number is NaN or infinite (infinity is written as the string "inf"), or a key is one of the two that are
        added here.
    TypeError
        If a value has no form in JSON.
    OSError
        If the folder cannot be written or the disk is full; nothing is left behind.
    """
    write_atomically(path, _text(values))


def create_json(path: Path, values: dict[str, Any]) -> None:
    """Write plain values as `write_json` does, where nothing is: of several writers at once, one gets the name.

    Parameters
    ----------
    path : pathlib.Path
        Where; the folder must be there.
    values : dict
        As `write_json` takes them.

    Raises
    ------
    FileExistsError
        If the name is taken; what has it is left as it is.
    ValueError, TypeError, OSError
        As of `write_json`.
    """
    part = _part(path)
    try:
        part.write_bytes(_text(values).encode())
        _sync(part)
        try:
            path.hardlink_to(part)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: take the name first, then fill it
            path.open("x").close()
            try:
                part.replace(path)
            except BaseException:
                path.unlink()
                raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Name a temporary file beside a path, which takes its place once the block has written it.

    Yields
    ------
    Path
        Of the temporary file, with the same ending. If the block fails, nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _part(path)
    try:
        yield part
        _sync(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all: a reader sees the old one or the new one.

    Raises
    ------
    OSError
        If it cannot be written; nothing is left behind.
    """
    with replacing(path) as part:
        part.write_bytes(content if isinstance(content, bytes) else content.encode())


def check_writable(folder: Path) -> None:
    """Find out before the work, not after it, that results cannot be kept.

    Raises
    ------
    OSError
        If the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote.

    Parameters
    ----------
    path : pathlib.Path
        A file of at most 64 MiB.

    Returns
    -------
    dict
        The values, without schema version and checksum. Those of schema 1 lack what was added since.

    Raises
    ------
    ValueError
        If the file is too large, not JSON, of an unknown schema, or does not match its checksum.
    OSError
        If it cannot be read.
    """
    if (size := path.stat().st_size) > LARGEST:
        raise ValueError(f"{path} must be at most {LARGEST} bytes, got {size}")
    try:
        body = json.loads(path.read_bytes())
        if not isinstance(body, dict) or "sha256" not in body:
            raise ValueError("it has no checksum")
        checksum = body.pop("sha256")
        intact = checksum == _digest(body)
    except (ValueError, RecursionError) as error:  # too deep, too many digits, not UTF-8: all of them not a result
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise ValueError(f"{path} is not a result file: {reason.splitlines()[0]}") from None
    schema = body.pop("schema", None)
    if schema not in range(1, SCHEMA + 1):
        raise ValueError(f"{path} must have schema 1 to {SCHEMA}, got {schema!r}")
    if not intact:
        raise ValueError(f"{path} does not match its checksum: it was changed after it was written")
    return body


def _part(path: Path) -> Path:
    """Return a name beside a file that nobody can foresee."""
    return path.with_name(f".{path.stem[:100]}.{secrets.token_hex(8)}.part{path.suffix}")


def _sync(path: Path) -> None:
    with path.open("rb") as written:
        os.fsync(written.fileno())


def _text(values: dict[str, Any]) -> str:
    """Return plain values as a file holds them, with schema version and checksum."""
    if taken := {"schema", "sha256"} & values.keys():
        raise ValueError(f"values must leave schema and sha256 to the file, got {', '.join(sorted(taken))}")
    body = {"schema": SCHEMA, **values}
    body["sha256"] = _digest(json.loads(_encoded(body)))  # of what will be read: keys that are numbers become text
    return _encoded(body) + "\n"


def _encoded(body: dict[str, Any]) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False)


def _digest(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
