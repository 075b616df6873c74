"""The attack on a tree of areas: one person is counted once at every level, from the root down to a leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import real_numbers
from audit.attacks.paths.unraking import Tree, unrake
from audit.attacks.protocol import Exploration
from audit.attacks.statistics import added, agreement
from audit.events import Statistic
from audit.neighbors import NeighborPair

__all__ = ["candidates", "path_statistics"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Read = Callable[[NDArray[Any], Places], Floats]  # returns the counts of some areas in outputs

NAMED = 8  # areas that a name lists


def candidates(exploration: Exploration) -> tuple[Statistic, ...]:
    """Return totals along the paths that the pair changes, if the mechanism provides its ``areas``."""
    areas = getattr(exploration.mechanism, "areas", None)
    if areas is None:
        return ()
    parent, released, leaves = areas
    return path_statistics(exploration.pair, parent, released, leaves=leaves)


def path_statistics(
    pair: NeighborPair, parent: ArrayLike, released: ArrayLike, *, leaves: ArrayLike | None = None
) -> tuple[Statistic, ...]:
    """Return statistics of areas whose totals a pair changes, both of raked counts and of counts before raking."""
    # Raking spreads the noise of an area over its children: one raked count shows the budget of its own level only
    # (Flaxman, 2019, section 2.2: a quarter of the loss). The noisy counts before it have independent noise each, so
    # that their losses add up. `unrake` recovers them; where it fails the score is 0. The counts are at `leaves`.
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

    def known(values: Floats, part: Places) -> Floats:
        return np.where(np.isnan(values), middle[nodes[part]], values)  # the middle favors neither database

    sources: dict[str, Read] = {
        "raked": lambda outputs, part: known(tree.totals(outputs, nodes[part]), part),
        "un-raked": lambda outputs, part: known(unrake(tree, outputs, nodes[part], middle), part),
    }
    return tuple(
        statistic
        for kind, read in sources.items()
        for statistic in _statistics(kind, read, nodes, tree.level[nodes], middle[nodes], change[nodes])
    )


def _statistics(
    kind: str, read: Read, nodes: NDArray[np.int64], level: NDArray[np.int64], middle: Floats, change: Floats
) -> Iterator[Statistic]:
    """Yield statistics of the counts that `read` returns: all areas jointly, their sum, then each level by itself."""
    signs, every = np.sign(change), np.arange(nodes.size)

    def joint(part: Places) -> Statistic:
        columns = [(column,) for column in range(part.size)]
        score = agreement(columns, middle[part].tolist(), signs[part].tolist())
        name = f"{'joint ' * (part.size > 1)}shift of {_called(kind, nodes[part])}"
        return Statistic(name, lambda outputs: score(read(outputs, part)))

    if nodes.size > 1:
        yield joint(every)
        most = np.abs(change) / 2
        yield Statistic(  # the log-likelihood ratio of geometric noise of one scale
            f"sum of clipped shifts of {_called(kind, nodes)}",
            lambda outputs: added(np.clip((read(outputs, every) - middle) * signs, -most, most)),
            proportional=True,
        )
    if nodes.size == 1 or level.min() < level.max():
        for one in np.unique(level):
            yield joint(np.flatnonzero(level == one))


def _called(kind: str, nodes: NDArray[np.int64]) -> str:
    if nodes.size == 1:
        return f"{kind} count of area {nodes[0]}"
    more = f", ... ({nodes.size} areas)" if nodes.size > NAMED else ""
    return f"{kind} counts of areas {', '.join(map(str, nodes[:NAMED]))}{more}"
