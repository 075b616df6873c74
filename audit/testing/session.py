"""The running test: it gives its audits their seeds, and collects their results. It loads only the standard library."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Running", "entered", "running", "seed_of"]

_entered: list[Running] = []  # the innermost last: a fixture within a test, or a test session within a test


@dataclass(eq=False)
class Running:
    """A test while it runs, or a fixture that several tests share."""

    name: str  # node id of the test from the root of its project; of a fixture, its name after that of its scope
    seed: int  # of the whole session
    command: Callable[[], str]  # returns the shell command that runs the test alone
    runs: int | None = None  # in place of the number of runs of every audit
    options: dict[str, Any] = field(default_factory=dict)  # defaults for what a call leaves out
    attempt: int = 1  # more where a test is tried again
    entries: list[str] = field(default_factory=list)  # what its audits found, as JSON
    calls: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def begin(self, attempt: int, options: dict[str, Any]) -> None:
        """Begin an attempt: the same seeds again, so that no retry turns a failure into a pass."""
        self.attempt, self.options, self.calls = attempt, options, itertools.count(1)

    def keep(self, **values: Any) -> None:
        """Keep the result of an audit as JSON, which pytest-xdist can send."""
        import json

        entry = {"node_id": self.name, "attempt": self.attempt, **values}
        text = json.dumps(entry, ensure_ascii=False, allow_nan=False)
        self.entries.append(text.encode(errors="replace").decode())  # half a surrogate pair is no text for a file

    def fixture(self, name: str, options: dict[str, Any]) -> Running:
        """Return a fixture that this test is the first to ask for: seeds and defaults do not depend on which is."""
        return replace(self, name=name, attempt=1, options=options, calls=itertools.count(1))


def running() -> Running | None:
    """Return the test, or the shared fixture, that is running."""
    return _entered[-1] if _entered else None


@contextmanager
def entered(test: Running) -> Iterator[Running]:
    """Make a test the running one in the context."""
    _entered.append(test)
    try:
        yield test
    finally:
        _entered.pop()


def seed_of(*parts: object) -> int:
    """Return a seed that depends on its parts alone: on no order, process or version of Python."""
    import hashlib  # it and json are for those who audit

    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
