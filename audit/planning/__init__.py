"""Sizes and power before any run: how many runs detect a violation. Each method computes its own power."""

from __future__ import annotations

from audit.planning.plan import Design
from audit.planning.sizes import OutOfReachError, plan_early, plan_power, plan_size, plan_violation
from audit.planning.table import PlanTable, plan_table

__all__ = [
    "Design",
    "OutOfReachError",
    "PlanTable",
    "plan_early",
    "plan_power",
    "plan_size",
    "plan_table",
    "plan_violation",
]
