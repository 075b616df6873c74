"""Mechanisms and tools of diffprivlib; the promise is the epsilon and delta that they state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from audit.adapters.adapting import adapted, made_by, needing, plain, promised
from audit.claims import Relation
from audit.mechanism import Mechanism

__all__ = ["mechanism", "tool"]

ADDED = ("histogram", "histogram2d", "histogramdd")  # tools whose noise covers an added row; others: a replaced row


def mechanism(instance: Any, *, relation: Relation = "add_remove") -> Mechanism:
    """Return the method ``randomise`` of a mechanism of diffprivlib, called on the database, with a ``claim``.

    Parameters
    ----------
    instance : DPMechanism or callable
        A mechanism, or a function without arguments that makes one, so that several processes can run it. It must not
        have a random state, which every process would repeat.
    relation : {"add_remove", "replace_one"}
        The change of one person that changes the value by at most the sensitivity of the mechanism. The distance of
        the audited pair must not be larger.

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
        The tool, called on the rows of the database, an array. Several released arrays, such as a histogram and its
        edges, are concatenated.
    epsilon : float
        The budget, which is also the promise.
    relation : {"add_remove", "replace_one"}, optional
        Relation of the promise. Default: the one for which the library scales its noise. Histograms protect an added
        or removed row; all other tools assume that the number of rows is public, and protect a replaced row.
    **options : object
        Options of the tool, such as ``bounds``.
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
