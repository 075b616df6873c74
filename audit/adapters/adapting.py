"""Helpers of all adapters: build objects in each process, convert data and promises."""

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
    """Turn a missing library into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"this adapter needs {package}: pip install {package}") from error


def made_by(maker: Any, kind: type, words: str) -> tuple[Callable[[], Any], Any]:
    """Return a function that makes objects of `kind`, from such a function or an object, and its first object."""
    make: Callable[[], Any] = (lambda: maker) if isinstance(maker, kind) else maker
    first = make() if callable(make) else None
    if not isinstance(first, kind):
        raise TypeError(f"{words}, or a function that makes one, is needed, got {maker!r}")
    return make, first


def adapted(make: Callable[[], Any], run: Callable[[Any, Any], Any], name: str, claim: Claim) -> Mechanism:
    """Return a mechanism that builds an object once in each process, and calls it on the data once for each run."""

    def build() -> Callable[..., Any]:
        built = make()
        return lambda data: run(built, data)

    mechanism: Any = per_run(factory=build, seedable=False)
    mechanism.__name__, mechanism.claim = name, claim
    return mechanism  # type: ignore[no-any-return]


def promised(epsilon: float, delta: float, relation: Relation) -> Claim:
    """Return the promise of an epsilon and, if it is not 0, a delta."""
    return ApproxDP(epsilon, delta, relation) if delta else PureDP(epsilon, relation)


def plain(data: Any) -> Any:
    """Convert numpy data to Python numbers, since libraries check types; other data stay unchanged."""
    return data.tolist() if isinstance(data, np.ndarray | np.generic) else data
