"""Functions of one's own as noise primitives, whose draws a replay records and answers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from audit.replay.recording import Declared, current

__all__ = ["primitive"]

P = ParamSpec("P")
Answer = TypeVar("Answer")


def primitive(
    value: str,
    *,
    law: str | Callable[..., Any] | None = None,
    sensitivity: str | Declared = None,
    query: str | None = None,
) -> Callable[[Callable[P, Answer]], Callable[P, Answer]]:
    """Register your own function as a noise primitive: what it returns may be published, its input may not.

    Parameters
    ----------
    value : str
        Name of the argument with the exact numbers.
    law : str or callable, optional
        Name of the argument that is the law or the scale of the noise; or a function of some of the arguments that
        returns it. The exact loss is known for the laws of `algorithms.noise`. Without a law, replay does not notice a
        scale that depends on the data.
    sensitivity : str, float or (float, float), optional
        Name of an argument; or the most that one step between neighbors changes the numbers: in L1 (and so in L2), or a
        pair for L1 and L2, one of which may be None.
    query : str, optional
        Name of the argument that says what the numbers are. Default: the name of the function.

    Returns
    -------
    callable
        A decorator. Outside of `audit.replay` the function stays as it is. Its exceptions count as answers.

    Raises
    ------
    ValueError
        If the function has no argument of such a name.

    Examples
    --------
    >>> from audit import replay
    >>> @replay.primitive("exact", law="scale", sensitivity=1)
    ... def noisy(exact, scale, rng):
    ...     return exact + rng.laplace(scale=scale)
    >>> round(noisy(3.0, 1e-9, np.random.default_rng(0)), 3)
    3.0
    """

    def decorate(function: Callable[P, Answer]) -> Callable[P, Answer]:
        signature = inspect.signature(function)
        of_law = list(inspect.signature(law).parameters) if callable(law) else []
        for name in [*(name for name in (value, query, law, sensitivity) if isinstance(name, str)), *of_law]:
            if name not in signature.parameters:
                has = ", ".join(signature.parameters) or "none"
                raise ValueError(f"{function.__name__} has no argument {name!r}, it has {has}")

        @functools.wraps(function)
        def watched(*args: P.args, **kwargs: P.kwargs) -> Answer:
            recorder = current()
            if recorder is None:
                return function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            values = bound.arguments
            exact = np.asarray(values[value])
            answer: Answer = recorder(
                lambda: function(*args, **kwargs),
                law=law(**{name: values[name] for name in of_law}) if callable(law) else values[law] if law else None,
                shape=exact.shape,
                rng=next((part for part in values.values() if isinstance(part, np.random.Generator)), None),
                value=exact,
                query=str(values[query]) if query else function.__name__,
                sensitivity=values[sensitivity] if isinstance(sensitivity, str) else sensitivity,
            )
            return answer

        return watched

    return decorate
