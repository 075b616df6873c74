"""Plugins of installed packages, found by entry point: `audit` imports none of them."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

__all__ = ["plugin"]


@cache
def plugin(name: str) -> Any:
    """Return the object that an installed package registers under a name of the group ``plaudit``."""
    entries = list(metadata.entry_points(group="plaudit", name=name))
    if not entries:
        raise ValueError("the reference implementations must be installed: run `pip install .` in the checkout")
    return entries[0].load()
