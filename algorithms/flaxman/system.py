"""Registers GDPC, RDPC, ADPC and discrete Gaussian counts."""

from __future__ import annotations

from dataclasses import replace

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.registry import counting, register

__all__: list[str] = []


def gaussian_counts(*, rho: float = 0.5, data: str = "morocco") -> GaussianCounts:
    """Build discrete Gaussian counts, the same on any data."""
    return GaussianCounts(rho)


register(counting("gdpc", GDPC))
register(counting("rdpc", RDPC, on_tree=True))
register(counting("rdpc-all", RDPC, on_tree=True, output="all"))
register(counting("adpc", ADPC))
register(replace(counting("gaussian-counts", GaussianCounts), build=gaussian_counts))
