"""Results as JSON, with a schema version and a checksum."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from audit.io.files import creating, parsed_json, read_bytes, write_atomically

__all__ = ["SCHEMA", "create_json", "read_json", "write_json"]

SCHEMA = 2


def write_json(path: Path, values: dict[str, Any], *, private: bool = False) -> None:
    """Write plain values as JSON, with their schema version and SHA-256, in one step; `private` is for its owner alone.

    A reader sees the old file or the new one, never a part. The folder is made if need be. Infinity is the string
    "inf".
    """
    write_atomically(path, _text(values), private=private)


def create_json(path: Path, values: dict[str, Any], *, private: bool = False) -> None:
    """Write as `write_json` does, where nothing is: of several writers at once, the others get FileExistsError."""
    content = _text(values).encode()
    with creating(path, private=private) as file:
        file.write(content)


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote, at most 64 MiB; values of schema 1 lack what was added since."""
    content = read_bytes(path)
    try:
        body = parsed_json(content)
        if not isinstance(body, dict) or "sha256" not in body:
            raise ValueError("it has no checksum")
        checksum = body.pop("sha256")
        intact = checksum == _digest(body)
    except (ValueError, RecursionError) as error:  # too deep, too many digits, not UTF-8: all of them not a result
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise ValueError(f"{path} is not a result file: {reason.splitlines()[0]}") from None
    schema = body.pop("schema", None)
    if schema not in range(1, SCHEMA + 1):
        raise ValueError(f"{path} must have schema 1 to {SCHEMA}, got {schema!r}")
    if not intact:
        raise ValueError(f"{path} does not match its checksum: it was changed after it was written")
    return body


def _text(values: dict[str, Any]) -> str:
    """Return plain values as a file holds them, with schema version and checksum."""
    if reserved := {"schema", "sha256"} & values.keys():
        raise ValueError(f"values must leave schema and sha256 to the file, got {', '.join(sorted(reserved))}")
    body = {"schema": SCHEMA, **values}
    body["sha256"] = _digest(json.loads(_encoded(body)))  # of what will be read: keys that are numbers become text
    return _encoded(body) + "\n"


def _encoded(body: dict[str, Any]) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False)


def _digest(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
