"""What can be audited: anything that turns data into a batch of independent outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mechanism", "mechanism_name", "per_run", "plain_parameters"]

SLOW = 256  # runs of one block, where each is a call of its own


class Mechanism(Protocol):
    """A callable ``(data, size, rng)`` that returns `size` independent outputs, shape (size, *output).

    A plain function or lambda qualifies. An object may besides have

    ``claim``
        What it promises, for example a `PureDP`.
    ``exact_loss(pair)``
        The exact `LossDistribution` of a pair of neighbors, or None where it is not known.
    ``support_masses(pair)``
        For laws without a table: the probability of what is possible on `x` only, and of what is on `y` only.
    ``log_likelihood(outputs, data)``
        Log-probability or log-density of each output on a database, shape (runs,), -inf where it is impossible: the
        best score there is.
    ``entrywise``
        True if each entry of an output depends on its own entry of the data alone: unchanged entries then cost nothing.
    ``runs_per_block``
        How many runs it makes at a time, at most: few for a slow one, so that blocks are finished and kept often, and
        spread over cores. Another number is another result.
    ``areas``
        For releases over a tree: the parent of every area (-1: root), the area of each entry of an output, and the
        area of each count in the data.

    All randomness must come from `rng`, a `numpy.random.Generator`.
    """

    def __call__(self, data: Any, size: int, rng: np.random.Generator, /) -> NDArray[Any]:
        """Run `size` times on `data`."""
        ...


def per_run(function: Callable[[Any, np.random.Generator], Any]) -> Mechanism:
    """Make a mechanism of a function that returns one output: ``function(data, rng)``.

    Parameters
    ----------
    function : callable
        Takes a database and a `numpy.random.Generator`; returns a number or an array, always of one shape.

    Returns
    -------
    Mechanism
        Calls `function` once a run, 256 runs a block. That is slow; a batch of outputs at a time is a hundred times
        faster.

    Examples
    --------
    >>> count = per_run(lambda data, rng: data.sum() + rng.laplace())
    >>> count(np.array([3, 4]), 5, np.random.default_rng(0)).shape
    (5,)
    """

    def mechanism(data: Any, size: int, rng: np.random.Generator, /) -> NDArray[Any]:
        return np.stack([np.asarray(function(data, rng)) for _ in range(size)])

    mechanism.__name__ = mechanism_name(function)
    mechanism.runs_per_block = SLOW  # type: ignore[attr-defined]
    return mechanism


def mechanism_name(mechanism: Callable[..., Any]) -> str:
    """Return a name for reports: that of the function, or of the object's class."""
    return str(getattr(mechanism, "__name__", type(mechanism).__name__))


def plain_parameters(mechanism: Mechanism) -> dict[str, Any]:
    """Public attributes of a mechanism that are plain values, as JSON holds them."""
    return {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in getattr(mechanism, "__dict__", {}).items()
        if isinstance(value, int | float | str) and not key.startswith("_")
    }
