"""The attack on a tree of areas: totals along the paths that a pair changes, with raking undone."""

from __future__ import annotations

from audit.attacks.paths.along import Paths, path_statistics

__all__ = ["Paths", "path_statistics"]
