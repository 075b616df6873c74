"""Assertions for test suites, and the pytest plugin. The measurements are in `audit.measure`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audit.testing.assertions import assert_loss_detected, assert_loss_within

__all__ = ["assert_loss_detected", "assert_loss_within"]


def __getattr__(name: str) -> Any:
    # Every pytest session loads the plugin, so the assertions, which are slow to import, are loaded on first use.
    if name not in __all__:
        raise AttributeError(f"module 'audit.testing' has no attribute {name!r}")
    from audit.testing import assertions

    return getattr(assertions, name)
