"""The Census TopDown algorithm, whole: noisy measurements, constrained estimation, controlled rounding, microdata."""

from __future__ import annotations

from algorithms.topdown.mechanism import TopDown
from algorithms.topdown.presets import preset

__all__ = ["TopDown", "preset"]
