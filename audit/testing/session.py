"""The state of the running test: seeds and results of its audits. Only the standard library is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

__all__ = ["Running", "entered", "running", "seed_of"]

_entered: list[Running] = []  # a stack: a test may contain a fixture or a test session


@dataclass(eq=False)
class Running:
    """A running test, or the setup of a fixture that several tests share."""

    name: str  # node id of the test; of a fixture, node id of its scope and its name
    seed: int  # of the whole session
    command: Callable[[], str]  # returns the shell command that runs the test alone
    runs: int | None = None  # replaces the size of every audit
    options: dict[str, Any] = field(default_factory=dict)  # default arguments of assertions
    attempt: int = 1  # larger if the test is repeated
    entries: list[str] = field(default_factory=list)  # results of its audits, as JSON
    calls: Iterator[int] = field(default_factory=lambda: count(1))

    def keep(self, **values: Any) -> None:
        """Store the result of an audit as JSON, which pytest-xdist can send."""
        import json

        entry = {"node_id": self.name, "attempt": self.attempt, **values}
        text = json.dumps(entry, ensure_ascii=False, allow_nan=False)
        self.entries.append(text.encode(errors="replace").decode())  # UTF-8 cannot encode lone surrogates


def running() -> Running | None:
    """Return the state of the running test or shared fixture, or None."""
    return _entered[-1] if _entered else None


@contextmanager
def entered(test: Running) -> Iterator[Running]:
    """Make a test the running one inside the context."""
    _entered.append(test)
    try:
        yield test
    finally:
        _entered.pop()


def seed_of(*parts: object) -> int:
    """Return a seed that depends only on `parts`, not on order of tests, process or version of Python."""
    import hashlib  # imported only if a test audits

    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
