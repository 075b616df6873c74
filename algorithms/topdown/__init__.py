"""The Census TopDown algorithm: noisy measurements of all areas, and tables estimated from them."""

from __future__ import annotations

from algorithms.topdown.mechanism import TopDown
from algorithms.topdown.presets import preset

__all__ = ["TopDown", "preset"]
