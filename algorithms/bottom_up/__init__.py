"""The two-tailed geometric "bottom-up" mechanism: noise on every cell, and tables that add up noisy cells."""

from __future__ import annotations

from algorithms.bottom_up.calibration import PublishedTotals
from algorithms.bottom_up.mechanism import BottomUp
from algorithms.bottom_up.weighted import WeightedBottomUp

__all__ = ["BottomUp", "PublishedTotals", "WeightedBottomUp"]
