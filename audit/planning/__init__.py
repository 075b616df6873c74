"""Sizes and power before any run: how many runs see a violation. Power itself is a matter of each method."""

from __future__ import annotations

from audit.planning.plan import Design
from audit.planning.sizes import OutOfReachError, plan_power, plan_size, plan_violation

__all__ = ["Design", "OutOfReachError", "plan_power", "plan_size", "plan_violation"]
