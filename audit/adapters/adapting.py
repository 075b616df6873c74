"""What all adapters share: objects that are built in each process, data that libraries read, promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from audit.claims import ApproxDP, Claim, PureDP, Relation
from audit.mechanism import Mechanism, per_run

__all__ = ["adapted", "made_by", "needing", "plain", "promised"]


@contextmanager
def needing(package: str) -> Iterator[None]:
    """Import a library, or say in one line how it is installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"this adapter needs {package}: pip install {package}") from error


def made_by(maker: Any, kind: type, words: str) -> tuple[Callable[[], Any], Any]:
    """Return what makes an object of a kind, given one or a function that makes one, and the first that it makes."""
    make: Callable[[], Any] = (lambda: maker) if isinstance(maker, kind) else maker
    first = make() if callable(make) else None
    if not isinstance(first, kind):
        raise TypeError(f"{words}, or a function that makes one, is needed, got {maker!r}")
    return make, first


def adapted(make: Callable[[], Any], run: Callable[[Any, Any], Any], name: str, claim: Claim) -> Mechanism:
    """Return a mechanism that builds an object once in every process, and runs it on the data once a run."""

    def build() -> Callable[..., Any]:
        built = make()
        return lambda data: run(built, data)

    mechanism: Any = per_run(factory=build, seedable=False)
    mechanism.__name__, mechanism.claim = name, claim
    return mechanism  # type: ignore[no-any-return]


def promised(epsilon: float, delta: float, relation: Relation) -> Claim:
    """Return the promise of an epsilon, and of a delta where there is one."""
    return ApproxDP(epsilon, delta, relation) if delta else PureDP(epsilon, relation)


def plain(data: Any) -> Any:
    """Return numbers of a database as Python's own, which libraries check the types of; all else as it is."""
    return data.tolist() if isinstance(data, np.ndarray | np.generic) else data
