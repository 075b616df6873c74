"""Pairs of neighboring databases (counts, records or tables), and the steps between two databases."""

from __future__ import annotations

from audit.neighbors.pair import Adjacency, NeighborPair, Unit

__all__ = ["Adjacency", "NeighborPair", "Unit"]
