"""Worker processes, started so that nothing in the current folder is taken for a library of theirs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["AsBefore", "shielded"]

SAFE = "PYTHONSAFEPATH"  # as `python -P`


@dataclass(frozen=True)
class AsBefore:
    """Work that a shielded worker process does as if it were none: what it starts itself is not shielded.

    Attributes
    ----------
    work : callable
        What is called.
    setting : str or None
        Of the environment before there was a shield.
    """

    work: Callable[..., Any]
    setting: str | None

    def __call__(self, *arguments: Any) -> Any:
        """Call the work, after the worker process has been started."""
        _set(self.setting)
        return self.work(*arguments)


@contextmanager
def shielded() -> Iterator[Callable[[Callable[..., Any]], AsBefore]]:
    """Keep worker processes that are started meanwhile from importing what lies in the current folder.

    They start as ``python -m``, which looks there first. Once started they look where this process does.

    Yields
    ------
    callable
        Makes of work what is to be sent to them, where it may start processes of its own.
    """
    before = os.environ.get(SAFE)
    _set("1")
    try:
        yield lambda work: AsBefore(work, before)
    finally:
        _set(before)


def _set(setting: str | None) -> None:
    if setting is None:
        os.environ.pop(SAFE, None)
    else:
        os.environ[SAFE] = setting
