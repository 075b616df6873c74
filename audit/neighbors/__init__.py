"""Pairs of neighboring databases, of counts, of records or of tables: what one step between two of them is.

What a mechanism makes of them is not looked at here.
"""

from __future__ import annotations

from audit.neighbors.pair import Adjacency, NeighborPair, Unit

__all__ = ["Adjacency", "NeighborPair", "Unit"]
