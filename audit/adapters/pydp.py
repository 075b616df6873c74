"""Algorithms, noise and partition selection of python-dp, which wraps Google's library: their own epsilon and delta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from audit.adapters.adapting import adapted, needing, plain, promised
from audit.claims import Relation
from audit.mechanism import Mechanism

__all__ = ["mechanism"]

CALLS = ("quick_result", "add_noise", "should_keep")  # of algorithms, of noise, of the selection of partitions


def mechanism(instance: Any, *, relation: Relation = "add_remove") -> Mechanism:
    """Return an object of python-dp as a mechanism to audit.

    Parameters
    ----------
    made : object or callable
        An algorithm, which reads the rows of the database; noise, which is added to a number; or a strategy that
        selects partitions, which reads how many people are in one. Or a function without arguments that makes one of
        them: then several processes can run it.
    relation : {"add_remove", "replace_one"}
        Of the promise. The library's is about a person more or less.

    Returns
    -------
    Mechanism
        With a ``claim``; its randomness is the operating system's.

    Raises
    ------
    ImportError
        If python-dp is not installed.
    TypeError
        If it is nothing that python-dp runs.

    Examples
    --------
    >>> from pydp.algorithms.laplacian import Count  # doctest: +SKIP
    >>> mechanism(lambda: Count(epsilon=1.0, dtype="int")).claim  # doctest: +SKIP
    PureDP(epsilon=1.0, relation='add_remove')
    """
    with needing("python-dp"):
        import pydp  # noqa: F401
    make: Callable[[], Any] = instance if callable(instance) else lambda: instance
    first = make()
    call = next((name for name in CALLS if hasattr(first, name)), None)
    if call is None:
        raise TypeError(f"an algorithm, noise or a partition strategy of python-dp is needed, got {first!r}")

    def run(built: Any, data: Any) -> Any:
        return getattr(built, call)(plain(data))

    return adapted(
        make, run, type(first).__name__, promised(first.epsilon, getattr(first, "delta", 0.0) or 0.0, relation)
    )
