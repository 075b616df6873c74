"""Exit codes of the command, and which one a set of verdicts has."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["INTERRUPTED", "NO_POWER", "UNREAD", "USAGE", "VIOLATION", "WITHIN", "exit_code"]

WITHIN, VIOLATION, USAGE, NO_POWER = 0, 1, 2, 3
INTERRUPTED, UNREAD = 130, 141  # as a shell numbers them: 128 and SIGINT, 128 and SIGPIPE


def exit_code(verdicts: Iterable[str]) -> int:
    """Return 1 if a claim is violated, else 3 if an audit had no power, else 0."""
    found = set(verdicts)
    return VIOLATION if "violated" in found else NO_POWER if "no power" in found else WITHIN
