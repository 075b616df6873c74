"""Registers GDPC, RDPC, ADPC and discrete Gaussian counts."""

from __future__ import annotations

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.registry import counting, register

__all__: list[str] = []


def gaussian_counts(epsilon: float) -> GaussianCounts:
    """Discrete Gaussian counts: discrete Gaussian noise of ``sigma**2 = 1 / (2 rho)`` on the count of every leaf."""
    return GaussianCounts(GDPC(epsilon).epsilon ** 2 / 2)  # the rho that pure privacy implies


register(counting("gdpc", GDPC))
register(counting("rdpc", RDPC, on_tree=True))
register(counting("rdpc-all", RDPC, on_tree=True, output="all"))
register(counting("adpc", ADPC))
register(counting("gaussian-counts", gaussian_counts))
