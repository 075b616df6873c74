"""The pilot of the Office for National Statistics on deaths: independent noise on tables, and a top-down method."""

from __future__ import annotations

from algorithms.ons.independent import IndependentNoise
from algorithms.ons.laws import unchanged_probability
from algorithms.ons.top_down import OnsTopDown

__all__ = ["IndependentNoise", "OnsTopDown", "unchanged_probability"]
