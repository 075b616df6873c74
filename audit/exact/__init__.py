"""Exact privacy loss, computed from the two laws of outputs, without any run; `algorithms.noise` has laws of noise."""

from __future__ import annotations

from audit.exact.law import LossDistribution
from audit.exact.making import compose_losses, loss_distribution, loss_from_logs

__all__ = ["LossDistribution", "compose_losses", "loss_distribution", "loss_from_logs"]
