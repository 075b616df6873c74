"""Settings of a project: the table ``[tool.plaudit]`` of its pyproject.toml, for the command and for pytest alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["SETTINGS", "project_settings"]

FILE, TABLE = "pyproject.toml", "[tool.plaudit]"


def project_settings(folder: Path, *, above: bool = True) -> tuple[dict[str, Any], Path | None]:
    """Return the settings of the project that a folder belongs to, keys `SETTINGS`, and the file that holds them.

    It is the nearest ``pyproject.toml``, `above` too; no file if there is none, or it says nothing of plaudit.
    """
    start = folder.absolute()
    path = next((one / FILE for one in (start, *(start.parents if above else ())) if (one / FILE).is_file()), None)
    if path is None:
        return {}, None
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} must be readable: {error.strerror}") from None
    if b"plaudit" not in text:  # nearly all projects: no time is lost
        return {}, None
    import tomllib

    try:
        whole = tomllib.loads(text.decode())
    except ValueError as error:  # of TOML, or of UTF-8
        raise ValueError(f"{path} must be TOML: {error}") from None
    tool = whole.get("tool")
    if not isinstance(tool, dict) or "plaudit" not in tool:
        return {}, None
    return _checked(tool["plaudit"], path), path


def _checked(table: Any, path: Path) -> dict[str, Any]:
    where = f"{TABLE} of {path}"
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table, got {table!r}")
    if unknown := sorted(table.keys() - SETTINGS.keys()):
        raise ValueError(f"{where} takes {', '.join(SETTINGS)}, got {', '.join(map(repr, unknown))}")
    found = {}
    for name, value in table.items():
        try:
            found[name] = SETTINGS[name](value)
        except ValueError as error:
            raise ValueError(f"{where}: {name} must be {error}, got {value!r}") from None
    return found


def _size(value: Any) -> int:
    whole = (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53 and value == int(value)
    )
    if not whole or value < 1:
        raise ValueError("a whole number of runs, at least 1 and below 2**53")
    return int(value)


def _confidence(value: Any) -> float:
    if not isinstance(value, float) or not 0 < value < 1:
        raise ValueError("in (0, 1)")
    return value


def _seed(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("a whole number, 0 or more")
    return value


def _report(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("the name of a file")
    return value


SETTINGS: dict[str, Callable[[Any], Any]] = {"size": _size, "confidence": _confidence, "seed": _seed, "report": _report}
"""What a project may set: runs, confidence and seed of audits, and the file of ``pytest --audit-report``."""
