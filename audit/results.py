"""What a measurement says: `AuditResult` holds a promise against counts, `LossEstimate` is never a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from audit.claims import PureDP, Relation, claim_from_dict
from audit.storage import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AuditResult", "LossEstimate", "Verdict", "plain_number", "verdict_of"]


Verdict = Literal["violated", "not refuted", "no power"]


@dataclass(frozen=True, eq=False)
class AuditResult:
    """A promise held against counted runs.

    `measured` is a lower bound on the loss at the stated confidence: it can refute the promise and never confirm it.

    Attributes
    ----------
    mechanism : str
        What was run.
    claim : PureDP
        What it promises.
    measured : PureDP
        What the runs force: the true loss is at least this, at `confidence`.
    verdict : {"violated", "not refuted", "no power"}
        ``"no power"`` when the runs could not have seen twice the promised loss: a pass would be empty.
    event : str
        The rule that was counted, in words.
    searched : str
        What the event was chosen from; a registered event was not chosen.
    counts : dict
        For ``"x"`` and ``"y"``: counting ``runs`` on that database, and in how many the event named either.
    pair : str
        The two databases, in words.
    relation : {"add_remove", "replace_one"}
        What one step between neighbors is.
    unit : {"person", "household", "record"}
        Whose data changes in one step.
    distance : int
        Steps between the two databases; every loss here is for one step.
    adjacency : {"verified", "declared"}
        Whether that distance was computed.
    bound : str
        The theorem behind `measured`.
    confidence : float
        One-sided, over everything that was searched.
    size, selection : int
        Runs in all, and those of them that chose the event.
    ceiling : float
        Largest loss in nats that these runs could ever have shown.
    detectable : float
        Smallest loss in nats, carried by this event, that they would have called a violation with power 0.8.
    support : dict or None
        The witness of an unbounded loss, from the exact law: ``order`` and ``probability``.
    seed_entropy : int or list of int
        Reproduces the audit, given as `rng`.
    provenance : dict
        Software, platform and parameters.
    seconds : float
        Wall time.
    """

    mechanism: str
    claim: PureDP
    measured: PureDP
    verdict: Verdict
    event: str
    searched: str
    counts: dict[str, dict[str, int]]
    pair: str
    relation: Relation
    unit: str
    distance: int
    adjacency: str
    bound: str
    confidence: float
    size: int
    selection: int
    ceiling: float
    detectable: float
    support: dict[str, Any] | None
    seed_entropy: int | list[int] | None
    provenance: dict[str, Any]
    seconds: float

    def __str__(self) -> str:
        forced = f"{self.size} runs force at least {self.measured.epsilon:.4g} at {100 * self.confidence:.6g}%"
        words = f"on the caller's word, {self.pair}" if self.adjacency == "declared" else self.pair
        return f"{self.mechanism}: promised {self.claim}, {forced}: {self.verdict} ({words}; {self.event})"

    def redact(self) -> AuditResult:
        """Return the result without what can disclose true counts: event, pair, search, support and seed."""
        hidden = "redacted"
        parameters = {key: hidden for key in self.provenance.get("parameters", {})}
        support = None if self.support is None else {**self.support, "order": hidden}
        return replace(
            self,
            event=hidden,
            pair=hidden,
            searched=hidden,
            support=support,
            seed_entropy=None,
            provenance={**self.provenance, "parameters": parameters},
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw promise, measurement and what could have been seen; see `audit.plots.plot_audits`."""
        from audit.plots import plot_audits  # matplotlib is slow to import

        return plot_audits([self], ax)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for strict JSON: infinity is the string "inf"."""
        values = {name.name: getattr(self, name.name) for name in fields(self)}
        values["claim"], values["measured"] = self.claim.to_dict(), self.measured.to_dict()
        values["ceiling"], values["detectable"] = plain_number(self.ceiling), plain_number(self.detectable)
        return {"kind": "audit", **values}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> AuditResult:
        """Rebuild a result from what `to_dict` returned.

        Raises
        ------
        ValueError
            If the values are of another kind, a field is missing, unknown or of the wrong type, or the verdict does not
            follow from the numbers.
        """
        given = _fields_of(cls, values, "audit")
        try:
            given |= {name: claim_from_dict(given[name]) for name in ("claim", "measured")}
            given |= {name: float(given[name]) for name in ("ceiling", "detectable", "confidence", "seconds")}
            result = cls(**given)
            expected = verdict_of(result.claim, result.measured, result.detectable, result.support is not None)
        except (TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"an audit has a field of the wrong type: {error}") from None
        if result.verdict != expected:
            raise ValueError(f"the verdict must follow from the numbers: {expected!r}, got {result.verdict!r}")
        return result

    def to_json(self, path: str | Path) -> None:
        """Write the result to a file, whole or not at all.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        write_json(Path(path), self.to_dict())


def verdict_of(claim: PureDP, measured: PureDP, detectable: float, unbounded: bool = False) -> Verdict:
    """Return what numbers say of a promise.

    Parameters
    ----------
    claim, measured : PureDP
        Promise and lower bound, under one relation.
    detectable : float
        Smallest loss that would have been seen, in nats.
    unbounded : bool
        Whether the exact law holds a witness of an infinite loss.

    Returns
    -------
    {"violated", "not refuted", "no power"}
        The last when less than twice the promise could not be told from it.
    """
    if unbounded or not measured <= claim:
        return "violated"
    return "no power" if detectable > 2 * claim.epsilon else "not refuted"


def plain_number(value: float) -> float | str:
    """Return a number as JSON can hold it.

    Parameters
    ----------
    value : float
        Not NaN.

    Returns
    -------
    float or str
        The number itself; infinity is the string "inf".
    """
    return "inf" if value == math.inf else value


@dataclass(frozen=True, eq=False)
class LossEstimate:
    """A point estimate of privacy loss as a curve over events, with its assumptions in words.

    It rests on assumptions that the runs cannot check, so it never becomes a verdict.

    Attributes
    ----------
    method : str
        Name of the estimator.
    at : ndarray of float, shape (m,)
        Where on the axis of errors each event sits, in people.
    loss : ndarray of float, shape (m,)
        Estimated log-ratio for one person, in nats; NaN where no run says anything.
    low, high : ndarray of float, shape (m,)
        Pointwise interval of `confidence`; NaN where none can be given.
    value : float
        `statistic` of the curve, in nats: one number for a table.
    interval : tuple of float
        Interval of `confidence` around `value`.
    confidence : float
        Two-sided, of each interval by itself.
    assumptions : tuple of str
        What must be true for the estimate to mean a privacy loss.
    size, areas : int
        Runs (over both databases where there are two), and residuals a run.
    settings : dict
        Every setting that the numbers depend on, as plain lists, numbers and strings.
    statistic : str
        What `value` is: ``"median |loss|"`` or ``"largest |loss|"``. The largest is biased upwards by noise.
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
        """Largest ``|loss|`` on the curve: biased upwards by the noise of the tails, and unbounded in the window."""
        return float(np.nanmax(np.abs(self.loss)))

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"estimate, no bound: {self.statistic} {self.value:.4g} [{low:.4g}, {high:.4g}] by {self.method} "
            f"from {self.size} x {self.areas} residuals"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers, ready for strict JSON: NaN becomes None."""
        return {
            "kind": "estimate",
            "method": self.method,
            "at": self.at.tolist(),
            "loss": _nulls(self.loss),
            "low": _nulls(self.low),
            "high": _nulls(self.high),
            "value": self.value,
            "interval": _nulls(self.interval),
            "confidence": self.confidence,
            "assumptions": list(self.assumptions),
            "size": self.size,
            "areas": self.areas,
            "settings": dict(self.settings),
            "statistic": self.statistic,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LossEstimate:
        """Rebuild an estimate from what `to_dict` returned.

        Raises
        ------
        ValueError
            If `data` is of another kind, lacks a field or has one too many.
        """
        given = _fields_of(cls, data, "estimate")
        for name in ("at", "loss", "low", "high"):
            given[name] = np.array(given[name], dtype=float)
        low, high = np.array(given["interval"], dtype=float).tolist()
        return cls(**given | {"interval": (low, high), "assumptions": tuple(given["assumptions"])})


def _nulls(values: Iterable[float]) -> list[float | None]:
    """Return plain floats with None for NaN, which JSON has no word for."""
    return [None if math.isnan(value) else float(value) for value in values]


def _fields_of(cls: type, values: Any, kind: str) -> dict[str, Any]:
    """Return the fields of a saved result, all of them and no others."""
    if not isinstance(values, dict) or values.get("kind") != kind:
        raise ValueError(f"kind must be {kind!r}, got {values.get('kind') if isinstance(values, dict) else values!r}")
    names = {f.name for f in fields(cls)}
    if wrong := names ^ (values.keys() - {"kind"}):
        raise ValueError(f"{kind} fields are missing or unknown: {', '.join(sorted(wrong))}")
    return {name: values[name] for name in names}
