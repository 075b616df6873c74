"""Exact privacy loss: what the two laws of outputs say, without a single run.

Which laws noise has lives in `algorithms.noise`.
"""

from __future__ import annotations

from audit.exact.law import LossDistribution
from audit.exact.making import compose_losses, loss_distribution, loss_from_logs

__all__ = ["LossDistribution", "compose_losses", "loss_distribution", "loss_from_logs"]
