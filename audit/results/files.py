"""Results as JSON, with a schema version and a checksum."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from audit.io.files import Kind, parsed_json, read_bytes, write_atomically

__all__ = ["SCHEMA", "findings", "kind_of", "read_json", "save_json", "write_json"]

SCHEMA = 2
# Fields of a result that may differ if the same audit is repeated, and fields that only its file has.
UNREPEATED = ("seconds", "provenance", "notes", "schema", "sha256")


def kind_of(kind: str) -> Kind:
    """Return the kind of file that `write_json` writes for values of this kind; its first bytes identify it."""
    return Kind(f"a file of plaudit of the kind {kind}", b'{\n "schema": ', f',\n "kind": "{kind}",\n'.encode())


def write_json(path: Path, values: dict[str, Any], *, private: bool = False) -> None:
    """Write plain values as JSON with schema version and SHA-256; replace only a file of the same kind."""
    write_atomically(path, _text(values), kind_of(values.get("kind", "")), private=private)


def save_json(path: Path, values: dict[str, Any], *, private: bool = False, commanded: bool = False) -> None:
    """Write a result; replace only a file with the same result, else raise a FileExistsError."""
    # Results are the same if findings (with the seed) and commands agree; both may lack a command if not `commanded`.
    content = _text(values).encode()
    has_command = any("command" in (values.get(part) or {}) for part in ("provenance", "settings"))
    if (has_command or not commanded) and _is_repeat(path, json.loads(content)):
        write_json(path, values, private=private)
    else:
        write_atomically(path, content, None, private=private)


def findings(values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a result that a repeated audit reproduces: no time, provenance or notes."""
    return {key: value for key, value in values.items() if key not in UNREPEATED}


def _is_repeat(path: Path, values: dict[str, Any]) -> bool:
    try:
        saved = read_json(path)
    except (ValueError, OSError):  # no result, or unreadable: do not replace it
        return False
    old, new = (one.get("provenance") or {"command": None} for one in (saved, values))
    return findings(saved) == findings(values) and isinstance(old, dict) and old.get("command") == new.get("command")


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of `write_json`, at most 64 MiB. Values of schema 1 lack the fields added later."""
    content = read_bytes(path)
    try:
        body = parsed_json(content)
        if not isinstance(body, dict) or "sha256" not in body:
            raise ValueError("it has no checksum")
        checksum = body.pop("sha256")
        intact = checksum == _digest(body)
    except (ValueError, RecursionError) as error:  # too deep, too many digits, not UTF-8
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise ValueError(f"{path} is not a result file: {reason.splitlines()[0]}") from None
    schema = body.pop("schema", None)
    if type(schema) is not int or schema not in range(1, SCHEMA + 1):
        raise ValueError(f"{path} must have schema 1 to {SCHEMA}, got {schema!r}")
    if not intact:
        raise ValueError(f"{path} does not match its checksum: it was changed after it was written")
    return body


def _text(values: dict[str, Any]) -> str:
    if reserved := {"schema", "sha256"} & values.keys():
        raise ValueError(f"values must leave schema and sha256 to the file, got {', '.join(sorted(reserved))}")
    body = {"schema": SCHEMA, **values}
    body["sha256"] = _digest(json.loads(_encoded(body)))  # as it will be read: JSON makes numeric keys text
    return _encoded(body) + "\n"


def _encoded(body: dict[str, Any]) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False)


def _digest(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
