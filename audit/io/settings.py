"""Settings of a project, in the table ``[tool.plaudit]`` of its pyproject.toml, for the command and for pytest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["SETTINGS", "project_settings"]

FILE, TABLE = "pyproject.toml", "[tool.plaudit]"


def project_settings(folder: Path, *, above: bool = True) -> tuple[dict[str, Any], Path | None]:
    """Return the settings in the nearest ``pyproject.toml`` (`above`: also of parents), and that file or None."""
    start = folder.absolute()
    path = next((one / FILE for one in (start, *(start.parents if above else ())) if (one / FILE).is_file()), None)
    if path is None:
        return {}, None
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} must be readable: {error.strerror}") from None
    if b"plaudit" not in text:  # nearly all projects: do not import tomllib
        return {}, None
    import tomllib

    try:
        document = tomllib.loads(text.decode())
    except ValueError as error:  # invalid TOML or UTF-8
        raise ValueError(f"{path} must be TOML: {error}") from None
    tool = document.get("tool")
    if not isinstance(tool, dict) or "plaudit" not in tool:
        return {}, None
    return _checked(tool["plaudit"], path), path


def _checked(table: Any, path: Path) -> dict[str, Any]:
    where = f"{TABLE} of {path}"
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table, got {table!r}")
    if unknown := sorted(table.keys() - SETTINGS.keys()):
        raise ValueError(f"{where} takes {', '.join(SETTINGS)}, got {', '.join(map(repr, unknown))}")
    for name, value in table.items():
        kinds, allowed, words = SETTINGS[name]
        if isinstance(value, bool) or not isinstance(value, kinds) or not allowed(value):
            raise ValueError(f"{where}: {name} must be {words}, got {value!r}")
    return {name: int(value) if name == "size" else value for name, value in table.items()}


SETTINGS: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
    "size": (
        (int, float),
        lambda size: 1 <= size < 2**53 and size == int(size),
        "a whole number of runs, at least 1 and below 2**53",
    ),
    "confidence": (float, lambda confidence: 0 < confidence < 1, "in (0, 1)"),
    "seed": (int, lambda seed: seed >= 0, "a whole number, 0 or more"),
    "report": (str, bool, "the name of a file"),
}
"""Settings by name, of audits and of ``pytest --audit-report``, with types, a check, and its description."""
