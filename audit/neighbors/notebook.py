"""A pair of databases in a notebook: what lies between them, and nothing that is in them."""

from __future__ import annotations

from typing import Any

from audit.io.html import as_facts

__all__ = ["pair_html"]

STEPS = {"add_remove": "added or removed", "replace_one": "replaced"}
KNOWN = {"verified": "computed from the databases", "declared": "declared by the caller"}


def pair_html(pair: Any) -> str:
    """Return a `NeighborPair` as HTML."""
    steps = "1 step" if pair.distance == 1 else f"{pair.distance:,} steps"
    facts = [
        ("neighbors", f"one {pair.unit} {STEPS[pair.relation]}"),
        ("distance", f"{steps}, {KNOWN[pair.adjacency]}"),
        ("databases", f"{type(pair.x).__name__} {getattr(pair.x, 'shape', '')}"),
    ]
    notes = ["CONFIDENTIAL: the databases are."] if pair.confidential else []
    return as_facts(pair.label or "Neighboring databases", facts, notes=notes)
