"""`LossEstimate`: a point estimate of privacy loss with its assumptions, never a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audit.arguments import fraction
from audit.io.html import as_html
from audit.results.formatting import CONFIDENTIAL, number_of, percent
from audit.results.notebook import Reported, frame
from audit.results.plain import plain, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LossEstimate"]

CURVE = ("at", "loss", "low", "high")


@dataclass(frozen=True, eq=False)
class LossEstimate(Reported):
    """A point estimate of privacy loss, as a curve over events, with its assumptions.

    The runs cannot check these assumptions, so an estimate is never a verdict.

    Attributes
    ----------
    method : str
        Name of the estimator.
    at, loss : ndarray of float, shape (m,)
        Errors, in people, and the log-ratio for one person at each error, in nats; NaN if it cannot be estimated.
    low, high : ndarray of float, shape (m,)
        Pointwise confidence interval; NaN if there is none.
    value, interval, confidence : float, tuple of float, float
        `statistic` of the curve, in `unit`, and its interval. The confidence is two-sided, for each interval alone.
    assumptions : tuple of str
        Conditions under which the estimate is a privacy loss.
    size, areas : int
        Runs (over both databases if there are two), and residuals per run.
    settings : dict
        All settings on which the numbers depend, as plain lists, numbers and strings.
    statistic : {"median |loss|", "largest |loss|", "rho", "sum over components"}
        The meaning of `value`. The largest is biased upwards by noise.
    """

    method: str
    at: NDArray[np.float64]
    loss: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    value: float
    interval: tuple[float, float]
    confidence: float
    assumptions: tuple[str, ...]
    size: int
    areas: int
    settings: dict[str, Any] = field(default_factory=dict)
    statistic: str = "median |loss|"

    @property
    def maximum(self) -> float:
        """Largest ``|loss|`` on the curve. Noise in the tails biases it upwards, without limit as the window grows."""
        return float(np.nanmax(np.abs(self.loss)))

    @property
    def unit(self) -> str:
        """Unit of `value`: ``"rho"`` or ``"nats"``."""
        return "rho" if self.statistic == "rho" else "nats"

    @property
    def axes(self) -> tuple[str, str]:
        """Labels of both axes of the curve: components of the output, or errors, and the unit of the loss."""
        if "components" in self.settings:
            return "component of the output", self.unit
        return "error of a count, in people", "nats"

    @property
    def notes(self) -> tuple[str, ...]:
        """Cautions about the number."""
        return (str(self.settings["note"]),) if "note" in self.settings else ()

    @property
    def confidential(self) -> bool:
        """Whether the data are confidential, according to the settings."""
        return self.settings.get("confidential") is True

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"estimate, no bound: {self.statistic} {self.value:.4g} [{low:.4g}, {high:.4g}] by {self.method} "
            f"from {self.size} x {self.areas} residuals"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve with its interval; see `audit.results.plots.plot_estimate`."""
        from audit.results.plots import house_style, plot_estimate  # matplotlib is slow to import

        with house_style():
            return plot_estimate(self, ax)

    def _reported(self) -> tuple[str, dict[str, list[tuple[str, Any]]]]:
        return f"Estimate by {self.method}", {"estimates": [(self.method, self)]}

    def to_frame(self) -> Any:
        """Return the curve as a data frame with the columns at, loss, low and high."""
        return frame({name: getattr(self, name) for name in CURVE})

    def _repr_html_(self) -> str:
        low, high = self.interval
        unit = " nats" if self.unit == "nats" else ""
        facts = [
            (self.statistic, f"{self.value:.4g}{unit}"),
            (f"interval at {percent(self.confidence)}, of chance alone", f"{low:.4g} to {high:.4g}"),
            ("method", self.method),
            ("residuals", f"{number_of(self.size, 'run')} of {number_of(self.areas, 'area')}"),
        ]
        secret = [f"{CONFIDENTIAL}: this estimate is of confidential data."] if self.confidential else []
        notes = [*secret, *self.notes, "It means a loss if:", *(f"- {words}" for words in self.assumptions)]
        return as_html("Estimate, no bound and never a verdict", facts, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers for strict JSON; NaN becomes None, and infinity the string "inf"."""
        return {"kind": "estimate", **plain(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LossEstimate:
        """Rebuild an estimate from the output of `to_dict`; missing, unknown or wrong fields raise a ValueError."""
        estimate = cls(**read(cls, data, "estimate", unknown=math.nan))
        if len(sizes := {getattr(estimate, name).size for name in CURVE}) != 1:
            raise ValueError(f"{', '.join(CURVE)} must be of one length, got {sorted(sizes)}")
        fraction("confidence", estimate.confidence)
        return estimate
