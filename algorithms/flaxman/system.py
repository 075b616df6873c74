"""Registers GDPC, RDPC, ADPC and discrete Gaussian counts."""

from __future__ import annotations

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.registry import counting, register

__all__: list[str] = []

register(counting("gdpc", GDPC))
register(counting("rdpc", RDPC))
register(counting("rdpc-all", RDPC, output="all"))
register(counting("adpc", ADPC))
register(counting("gaussian-counts", GaussianCounts))
