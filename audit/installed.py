"""What installed packages offer to the instrument, found by entry point: `audit` imports none of them."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

__all__ = ["offered"]


@cache
def offered(name: str) -> Any:
    """Return what is offered under a name of the group ``plaudit``."""
    entries = list(metadata.entry_points(group="plaudit", name=name))
    if not entries:
        raise ValueError("the reference implementations must be installed: run `pip install .` in the checkout")
    return entries[0].load()
