"""The attack on a tree of areas: one person is counted once at every level, from the root down to a leaf."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import real_numbers
from audit.attacks.paths.unraking import Tree, unrake
from audit.attacks.protocol import Exploration
from audit.attacks.statistics import added, agreement
from audit.events import Statistic
from audit.neighbors import NeighborPair

__all__ = ["Paths", "path_statistics"]

Floats = NDArray[np.float64]
Read = Callable[[NDArray[Any]], Floats]

NAMED = 8  # areas that a name lists


class Paths:
    """Totals along the paths that the pair changes, of a mechanism that tells its ``areas``."""

    name = "paths"
    automatic = True

    def candidates(self, exploration: Exploration) -> tuple[Statistic, ...]:
        """Return the statistics of `path_statistics`, if the mechanism tells its tree."""
        areas = getattr(exploration.mechanism, "areas", None)
        if areas is None:
            return ()
        parent, released, leaves = areas
        return path_statistics(exploration.pair, parent, released, leaves=leaves)


def path_statistics(
    pair: NeighborPair, parent: ArrayLike, released: ArrayLike, *, leaves: ArrayLike | None = None
) -> tuple[Statistic, ...]:
    """Return statistics of the areas whose totals a pair changes: as released, and as they were before raking.

    Those are the areas above a changed leaf, itself included: one path when people are added, two paths below their
    lowest common area when they move. They are looked at jointly, in sum, and level by level. `leaves` are the nodes of
    the counts, by default as released.

    Raking spreads the noise of an area over its children, so that one raked count shows the budget of its own level
    only (Flaxman, 2019, section 2.2: a quarter of the loss). The noisy counts before raking have independent noise
    each, so that their losses add up. `unrake` recovers them; where it fails the score is 0. The sum takes each area's
    shift up to half of what the pair changes there: the log-likelihood ratio of geometric noise of one scale.
    """
    tree = Tree(parent, released)  # type: ignore[arg-type]
    order = tree.released[np.isin(tree.released, tree.leaves)] if leaves is None else np.asarray(leaves)
    if not np.array_equal(np.sort(order, axis=None), tree.leaves):
        raise ValueError(f"leaves must be the {tree.leaves.size} leaves of the tree, each once, got {leaves!r}")
    x, y = (real_numbers(f"pair.{side}", np.ravel(getattr(pair, side)), ndim=(1,)) for side in ("x", "y"))
    if not x.size == y.size == order.size:
        raise ValueError(f"the pair must have one count for each of {order.size} leaves, got {x.size} and {y.size}")
    below = Tree(tree.parent, order)
    x, y = below.totals(x[None])[0], below.totals(y[None])[0]
    middle, change = (x + y) / 2, y - x
    nodes = np.flatnonzero(change)
    if nodes.size == 0:
        raise ValueError("pair must change a count, got two databases of the same counts")

    def known(values: Floats) -> Floats:
        return np.where(np.isnan(values), middle[nodes], values)  # on the middle, it speaks for neither database

    sources: dict[str, Read] = {
        "raked": lambda outputs: known(tree.totals(outputs, nodes)),
        "un-raked": lambda outputs: known(unrake(tree, outputs, nodes, middle)),
    }
    return tuple(
        statistic
        for kind, read in sources.items()
        for statistic in _statistics(kind, _Shared(read), nodes, tree.level[nodes], middle[nodes], change[nodes])
    )


def _statistics(
    kind: str, shared: _Shared, nodes: NDArray[np.int64], level: NDArray[np.int64], middle: Floats, change: Floats
) -> Iterator[Statistic]:
    """Yield all areas jointly and in sum, then each level by itself, of counts as `shared` reads them."""

    def joint(part: NDArray[np.intp]) -> Statistic:
        read = shared.reader()
        score = agreement([(int(column),) for column in part], middle[part].tolist(), np.sign(change[part]).tolist())
        name = f"{'joint ' * (part.size > 1)}shift of {_called(kind, nodes[part])}"
        return Statistic(name, lambda outputs: score(read(outputs)))

    if nodes.size > 1:
        yield joint(np.arange(nodes.size))
        read, most = shared.reader(), np.abs(change) / 2
        yield Statistic(
            f"sum of shifts, cut off at half the change, of {_called(kind, nodes)}",
            lambda outputs: added(np.clip((read(outputs) - middle) * np.sign(change), -most, most)),
            proportional=True,
        )
    if nodes.size == 1 or level.min() < level.max():
        for one in np.unique(level):
            yield joint(np.flatnonzero(level == one))


class _Reading(NamedTuple):
    outputs: weakref.ref[NDArray[Any]]
    values: Floats
    served: set[object]


class _Shared:
    """One reading of outputs for several statistics: the last is kept, by thread, and each reader is given it once.

    A reader that asks again may have been handed new runs in the same array.
    """

    def __init__(self, read: Read) -> None:
        self.read = read
        self._last = threading.local()

    def __reduce__(self) -> tuple[type[_Shared], tuple[Read]]:
        return _Shared, (self.read,)

    def reader(self) -> Read:
        """Return what one statistic reads with."""
        me = object()

        def read(outputs: NDArray[Any]) -> Floats:
            last: _Reading | None = getattr(self._last, "reading", None)
            if last is None or last.outputs() is not outputs or me in last.served:
                last = self._last.reading = _Reading(weakref.ref(outputs), self.read(outputs), set())
            last.served.add(me)
            return last.values

        return read


def _called(kind: str, nodes: NDArray[np.int64]) -> str:
    if nodes.size == 1:
        return f"{kind} count of area {nodes[0]}"
    more = f", ... ({nodes.size} areas)" if nodes.size > NAMED else ""
    return f"{kind} counts of areas {', '.join(map(str, nodes[:NAMED]))}{more}"
