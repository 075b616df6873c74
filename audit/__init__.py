"""The instrument of plaudit: how much privacy a release really loses.

It runs a mechanism on neighboring databases, proves a lower bound on the privacy loss, and compares it with the
promise. It reports lower bounds and never certifies privacy. It labels every estimate as an estimate.

>>> import audit
>>> pair = audit.NeighborPair.add_people([120, 75], cell=0)
>>> noisy = lambda data, size, rng: (data + rng.laplace(size=(size, data.size))).round(6)
>>> audit.measure_loss(noisy, pair, audit.PureDP(1), rng=2).verdict
'not refuted'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audit.attacks import Attack
    from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP, compose
    from audit.estimates.direct import direct_loss
    from audit.estimates.residuals import residual_loss
    from audit.events import Event, Statistic
    from audit.exact import LossDistribution, loss_distribution
    from audit.explorer.views import explore
    from audit.measure.loss import measure_loss, measure_loss_from_outputs
    from audit.measure.one_run import Canaries, RecordCanaries, measure_loss_one_run
    from audit.measure.search import neighbors_within, search_loss
    from audit.mechanism import Mechanism, per_run
    from audit.neighbors import NeighborPair
    from audit.planning import plan_early, plan_power, plan_size, plan_table, plan_violation
    from audit.replay import replay
    from audit.results import AuditResult, LossEstimate

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Attack",
    "AuditResult",
    "Canaries",
    "Event",
    "GaussianDP",
    "LossDistribution",
    "LossEstimate",
    "Mechanism",
    "NeighborPair",
    "PureDP",
    "RecordCanaries",
    "Statistic",
    "compose",
    "direct_loss",
    "explore",
    "loss_distribution",
    "measure_loss",
    "measure_loss_from_outputs",
    "measure_loss_one_run",
    "neighbors_within",
    "per_run",
    "plan_early",
    "plan_power",
    "plan_size",
    "plan_table",
    "plan_violation",
    "replay",
    "residual_loss",
    "search_loss",
]

# Names are looked up on first use, so that importing the package costs next to nothing.
_HOMES = {
    "attacks": ("Attack",),
    "claims": ("ZCDP", "ApproxDP", "GaussianDP", "PureDP", "compose"),
    "estimates.direct": ("direct_loss",),
    "estimates.residuals": ("residual_loss",),
    "events": ("Event", "Statistic"),
    "exact": ("LossDistribution", "loss_distribution"),
    "explorer.views": ("explore",),
    "measure.loss": ("measure_loss", "measure_loss_from_outputs"),
    "measure.one_run": ("Canaries", "RecordCanaries", "measure_loss_one_run"),
    "measure.search": ("neighbors_within", "search_loss"),
    "mechanism": ("Mechanism", "per_run"),
    "neighbors": ("NeighborPair",),
    "planning": ("plan_early", "plan_power", "plan_size", "plan_table", "plan_violation"),
    "replay": ("replay",),
    "results": ("AuditResult", "LossEstimate"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"audit.{home}"), name)
    raise AttributeError(f"module 'audit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
