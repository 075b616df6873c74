"""Pairs of neighboring databases (counts, records or tables), and what one step between the two databases is."""

from __future__ import annotations

from audit.neighbors.pair import Adjacency, NeighborPair, Unit

__all__ = ["Adjacency", "NeighborPair", "Unit"]
