"""Registers the bottom-up mechanism, with either sampler."""

from __future__ import annotations

from algorithms.bottom_up import BottomUp
from algorithms.registry import counting, register

__all__: list[str] = []

COMMANDS = {"release": "algorithms.bottom_up.command:release_bottom_up"}

register(counting("bottom-up", BottomUp, on_tree=True, commands=COMMANDS))
register(counting("bottom-up-inverse-cdf", BottomUp, on_tree=True, noise="inverse_cdf"))
