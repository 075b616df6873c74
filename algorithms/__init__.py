"""The exhibits: reference implementations of the algorithms that statistical offices use, and known bugs."""

from __future__ import annotations

from typing import Any

__all__ = ["catalogue"]


def catalogue(*, epsilon: float = 1.0, data: str = "morocco") -> dict[str, Any]:
    """Return every exhibit by name, ready to run.

    Parameters
    ----------
    epsilon : float
        Budget in nats that each promises, positive and finite; of zero-concentrated privacy its square over 2, which
        is what pure privacy implies.
    data : str
        Bundled population whose tree the hierarchical algorithms get; see `algorithms.population.load`.

    Returns
    -------
    dict
        Mechanisms with a `.claim`, keyed by name; the known bugs come last, those that show on any counts: all of them
        are in `algorithms.bugs`, with the databases that show them, and the benchmarks of the literature in
        `algorithms.benchmarks`. The notebook's bug exists only for an epsilon below 1, and is absent otherwise.

    Raises
    ------
    ValueError
        If `epsilon` is not positive and finite, or there is no such population.

    Examples
    --------
    >>> sorted(catalogue(epsilon=0.5))[:3]
    ['adpc', 'bottom-up', 'bottom-up-inverse-cdf']
    """
    from algorithms.bottom_up import BottomUp
    from algorithms.bugs import on_any_counts
    from algorithms.flaxman import ADPC, GDPC, RDPC
    from algorithms.flaxman.gaussian import GaussianCounts
    from algorithms.population import load

    tree, _ = load(data)
    exhibits = {
        "gdpc": GDPC(epsilon),
        "rdpc": RDPC(epsilon, tree),
        "rdpc-all": RDPC(epsilon, tree, output="all"),
        "adpc": ADPC(epsilon),
        "gaussian-counts": GaussianCounts(GDPC(epsilon).epsilon ** 2 / 2),
        "bottom-up": BottomUp(epsilon, tree),
        "bottom-up-inverse-cdf": BottomUp(epsilon, tree, noise="inverse_cdf"),
        **on_any_counts(epsilon, tree),
    }
    return exhibits
