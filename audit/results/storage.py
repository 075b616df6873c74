"""Results on disk: JSON with a schema version and a checksum, written whole or not at all, read with suspicion."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["SCHEMA", "check_writable", "read_json", "write_atomically", "write_json"]

SCHEMA = 2
LARGEST = 64 * 2**20  # bytes
ENCODER = json.JSONEncoder(indent=1, ensure_ascii=False, allow_nan=False)


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
        If a number is NaN or infinite (infinity is written as the string "inf"), a key stands twice once it is text, or
        is one of the two that are added here.
    TypeError
        If a value has no form in JSON.
    OSError
        If the folder cannot be written or the disk is full; nothing is left behind.
    """
    if taken := {"schema", "sha256"} & values.keys():
        raise ValueError(f"values must leave schema and sha256 to the file, got {', '.join(sorted(taken))}")
    body = {"schema": SCHEMA, **values}
    body["sha256"] = _digest(_parsed(ENCODER.encode(body)))  # of what will be read: keys that are numbers become text
    write_atomically(path, ENCODER.encode(body) + "\n")


def write_atomically(path: Path, text: str) -> None:
    """Write a text file under a temporary name and rename it.

    Raises
    ------
    OSError
        If it cannot be written; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)  # an interrupt may come after the renaming
        raise


def check_writable(folder: Path) -> None:
    """Find out before the work, not after it, that results cannot be kept.

    Raises
    ------
    OSError
        If the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle, probe = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(handle)
    os.unlink(probe)


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
        If the file is too large, not JSON, has a key twice, is of an unknown schema, or does not match its checksum.
    OSError
        If it cannot be read.
    """
    if (status := path.stat()).st_size > LARGEST:
        raise ValueError(f"{path} must be at most {LARGEST} bytes, got {status.st_size}")
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode):  # without an end, or a beginning
        raise ValueError(f"{path} must be a file")
    try:
        text = path.read_bytes().decode()
        body = _parsed(text)
        if not isinstance(body, dict) or "sha256" not in body:
            raise ValueError("it has no checksum")
        written = {key: value for key, value in body.items() if key != "sha256"}
        intact = body["sha256"] == _digest(written) and _is_text_of(body, text)
    except (ValueError, RecursionError) as error:  # too deep, too many digits, not UTF-8: all of them not a result
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise ValueError(f"{path} is not a result file: {reason.splitlines()[0]}") from None
    schema = written.pop("schema", None)
    if isinstance(schema, bool) or not isinstance(schema, int) or not 1 <= schema <= SCHEMA:
        raise ValueError(f"{path} must have schema 1 to {SCHEMA}, got {schema!r}")
    if not intact:
        raise ValueError(f"{path} does not match its checksum: it was changed after it was written")
    return written


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)


def _is_text_of(body: Any, text: str) -> bool:
    """Tell whether a text is what would be written, to the last space, without building what would be."""
    at = 0
    for piece in ENCODER.iterencode(body):
        if not text.startswith(piece, at):
            return False
        at += len(piece)
    return text[at:] == "\n"


def _digest(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {key!r} stands twice")
        values[key] = value
    return values


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
