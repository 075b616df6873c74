"""Mechanisms and tools of diffprivlib: the promise is their own epsilon and delta."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from audit.adapters.adapting import adapted, made_by, needing, plain, promised
from audit.claims import Relation
from audit.mechanism import Mechanism

__all__ = ["mechanism", "tool"]

ADDED = ("histogram", "histogram2d", "histogramdd")  # tools whose noise covers a row more or less; else one replaced


def mechanism(instance: Any, *, relation: Relation = "add_remove") -> Mechanism:
    """Return the ``randomise`` of a mechanism of diffprivlib, on the database as its value, with a ``claim``.

    Parameters
    ----------
    instance : DPMechanism or callable
        A mechanism, or a function without arguments that makes one: then several processes can run it. It must have no
        random state, which every process would repeat.
    relation : {"add_remove", "replace_one"}
        What a person does to move the value by the mechanism's sensitivity. The pair of an audit must be no farther
        apart.

    Examples
    --------
    >>> from functools import partial
    >>> from diffprivlib.mechanisms import Geometric  # doctest: +SKIP
    >>> mechanism(partial(Geometric, epsilon=1.0)).claim  # doctest: +SKIP
    PureDP(epsilon=1.0, relation='add_remove')
    """
    with needing("diffprivlib"):
        from diffprivlib.mechanisms import DPMechanism
    make, first = made_by(instance, DPMechanism, "a mechanism of diffprivlib")
    _check_state(first.random_state)
    takes_value = "value" in inspect.signature(first.randomise).parameters

    def run(built: Any, data: Any) -> Any:
        return built.randomise(plain(data)) if takes_value else built.randomise()

    return adapted(make, run, type(first).__name__, promised(first.epsilon, first.delta, relation))


def tool(
    function: Callable[..., Any], *, epsilon: float, relation: Relation | None = None, **options: Any
) -> Mechanism:
    """Return a tool of diffprivlib, such as ``diffprivlib.tools.mean``, as a mechanism to audit, with a ``claim``.

    Parameters
    ----------
    function : callable
        The tool: takes the rows of the database, an array. Several released arrays, such as a histogram and its edges,
        become one.
    epsilon : float
        What it promises and spends.
    relation : {"add_remove", "replace_one"}, optional
        Of the promise. Default: that for which the library scales its noise. Histograms cover a row more or less; all
        other tools take the number of rows as known, and cover a row that is replaced.
    **options : object
        Of the tool, such as ``bounds``.
    """
    with needing("diffprivlib"):
        import diffprivlib.tools  # noqa: F401
    _check_state(options.get("random_state"))
    name = str(getattr(function, "__name__", function))
    under: Relation = relation or ("add_remove" if name in ADDED else "replace_one")

    def run(built: Callable[..., Any], data: Any) -> Any:
        released = built(data, epsilon=epsilon, **options)
        return np.concatenate([np.ravel(part) for part in released]) if isinstance(released, tuple) else released

    return adapted(lambda: function, run, name, promised(epsilon, 0.0, under))


def _check_state(state: Any) -> None:
    if state is not None:
        raise ValueError(f"random_state must be None, since every process would repeat it, got {state!r}")
