"""`AuditResult`: the lower bound from counted runs, the promise, and the verdict that follows from both."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from audit.arguments import fraction
from audit.claims import Claim, Relation
from audit.io.text import printable
from audit.neighbors import Adjacency, Unit
from audit.results.files import save_json
from audit.results.formatting import line
from audit.results.notebook import Reported, audit_html, frame
from audit.results.plain import Basis, check_counts, check_other, number, plain, read, typed
from audit.results.power import is_far, power

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GIVEN_OUTPUTS", "ONE_RUN", "REDACTED", "STOPPED", "AuditResult", "Design", "Verdict", "verdict_of"]

Verdict = Literal["violated", "not refuted", "no power"]
Design = Literal["coins", "outputs", "one_run"]
REDACTED = "redacted"
GIVEN_OUTPUTS = "given outputs"  # the mechanism of `measure_loss_from_outputs`
STOPPED = "stopped by the user after"  # the remark of an early audit that was interrupted
ONE_RUN = "one-run guessing game"  # the bound of `measure_loss_one_run`; it identifies the method
PUBLIC = ("software", "python", "platform", "created")  # keys of the provenance without names that users chose


@dataclass(frozen=True, eq=False)
class AuditResult(Reported):
    """A promise, and a lower bound on the loss from counted runs.

    `measured` is a lower bound on the loss at the stated confidence: it can refute the promise, but never confirm it.

    Attributes
    ----------
    mechanism, pair : str
        Descriptions of the mechanism and of the two databases.
    claim, measured : PureDP, ApproxDP, ZCDP or GaussianDP
        The promise, and the lower bound of the same family: the true loss is at least this, at `confidence`.
    verdict : {"violated", "not refuted", "no power"}
        ``"no power"`` if the runs could not have detected twice the promised loss.
    event, attack, searched, tried : str, str, str, tuple of str
        The counted event, the attack that proposed it, the candidates searched, and all attacks with candidates.
    counts, basis : dict
        For ``"x"`` and ``"y"``: the counting ``runs``, and how many of them the event assigns to each database, or
        fall into each bin of a likelihood ratio. `basis` has further inputs of the bound.
    relation, unit : str
        The neighbor relation, and the unit whose data change: a person, a household or a record.
    distance, adjacency : int, {"verified", "declared"}
        Steps between the two databases (losses are for one step), and whether plaudit computed the distance.
    bound : str
        The theorem behind `measured`.
    confidence : float
        One-sided, and valid despite the search over events.
    size, selection : int
        All runs, and those among them that chose the event or looked at outputs before; 0 if the event was registered.
    ceiling : float
        Largest bound that this number of runs could give, in the parameter of the claim.
    detectable : float
        Minimum detectable loss: the smallest loss that this many runs detect with power 0.8, selection included.
    support : dict or None
        The witness of an infinite loss, from the exact law: ``order`` and ``probability``.
    seed_entropy : int or None
        The `rng` that reproduces the audit; None once redacted.
    provenance, seconds : dict, float
        Software, platform, parameters; elapsed seconds.
    confidential : bool
        Whether the databases are confidential. If so, event, counts and labels are, too.
    notes : tuple of str
        Further remarks for the reader, such as warnings of the mechanism with their numbers.
    others : tuple of dict
        Other events counted on the same runs, whose bounds are smaller. All events share the error probability.
    rare : float
        A fixed value, word or failure in a fixed place that only one database gives is detected with power 0.8 if it
        occurs once in this many runs. Infinite if no rate is detected, or none was searched for.
    """

    mechanism: str
    claim: Claim
    measured: Claim
    verdict: Verdict
    event: str
    searched: str
    counts: dict[str, dict[str, int]]
    pair: str
    relation: Relation
    unit: Unit
    distance: int
    adjacency: Adjacency
    bound: str
    confidence: float
    size: int
    selection: int
    ceiling: float
    detectable: float
    support: dict[str, Any] | None
    seed_entropy: int | None
    provenance: dict[str, Any]
    seconds: float
    basis: dict[str, Any] = field(default_factory=dict)
    confidential: bool = False
    attack: str = ""
    tried: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    others: tuple[dict[str, Any], ...] = ()
    rare: float = math.inf

    def __str__(self) -> str:
        return line(self.summary(), self.searched, self.notes)

    def summary(self, name: str | None = None) -> dict[str, Any]:
        """Return a flat summary for tables and programs; the name is that of the mechanism by default."""
        claim = self.claim
        return {
            "name": printable(self.mechanism if name is None else name),
            "mechanism": printable(self.mechanism),
            "parameter": claim.parameter,
            "promised": claim.budget,
            "delta": claim.parameters.get("delta") if claim.parameter != "delta" else None,
            "relation": self.relation,
            "unit": self.unit,
            "distance": self.distance,
            "adjacency": self.adjacency,
            "measured": self.measured.budget,
            "confidence": self.confidence,
            "detectable": self.detectable,
            "far": self.far_below_claim,
            "power": " ".join(self.power),
            "ceiling": self.ceiling,
            "verdict": self.verdict,
            "event": printable(self.event),
            "attack": printable(self.attack),
            "notes": printable("; ".join(self.notes)),
            "witness": printable(self.witness.removeprefix("; ")),
            "size": self.size,
            "selection": self.selection,
            "pair": printable(self.pair),
            "seed": "" if self.seed_entropy is None else str(self.seed_entropy),
            "confidential": self.confidential,
        }

    @property
    def design(self) -> Design:
        """How runs were made: by plaudit on both databases ("coins"), by another program ("outputs"), or "one_run"."""
        if self.bound == ONE_RUN:
            return "one_run"
        from_outputs = self.mechanism == GIVEN_OUTPUTS if self.redacted else "runs_x" in self.parameters
        return "outputs" if from_outputs else "coins"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the audit, empty if a file edited by hand has none."""
        parameters = self.provenance.get("parameters")
        return parameters if isinstance(parameters, dict) else {}

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped an early audit before its end."""
        return any(note.startswith(STOPPED) for note in self.notes)

    @property
    def witness(self) -> str:
        """A description of the output that proves an infinite loss, or an empty string."""
        if self.support is None:
            return ""
        if "probability" not in self.support:
            return "; unbounded by the exact law"
        return f"; unbounded by the exact law: {self.support['order']}, probability {self.support['probability']:.3g}"

    @property
    def far_below_claim(self) -> bool:
        """Whether the lower bound is far below the promise; if so, no minimum detectable loss is shown."""
        return self.verdict == "not refuted" and is_far(self.measured.budget, self.claim.budget, self.detectable)

    @property
    def power(self) -> tuple[str, ...]:
        """Sentences on losses that a pass could have missed; empty for a violation."""
        return () if self.verdict == "violated" or self.redacted else power(self)

    def redact(self) -> AuditResult:
        """Return a copy with only claim, bound, verdict and sizes, since the rest can disclose true counts or names."""
        public = {key: self.provenance[key] for key in PUBLIC if key in self.provenance}
        return replace(
            self,
            mechanism=GIVEN_OUTPUTS if self.design == "outputs" else REDACTED,
            event=REDACTED,
            counts={name: {"runs": side["runs"]} for name, side in self.counts.items() if "runs" in side},
            pair=REDACTED,
            searched=REDACTED,
            # If noise is bounded, the probability of a witness can disclose the true count.
            support=None if self.support is None else {"order": REDACTED},
            seed_entropy=None,
            provenance={**public, "parameters": {}},
            basis={},
            attack="",
            tried=(),
            notes=(),
            others=(),
            confidential=False,
        )

    @property
    def redacted(self) -> bool:
        """Whether `redact` made this result."""
        return self.event == self.pair == self.searched == REDACTED

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw promise, lower bound and minimum detectable loss; see `audit.results.plots.plot_audits`."""
        from audit.results.plots import house_style, plot_audits  # matplotlib is slow to import

        with house_style():
            return plot_audits([self.summary()], ax, scale=self.claim.scale)

    def _reported(self) -> tuple[str, dict[str, list[tuple[str, Any]]]]:
        return f"Privacy audit of {self.mechanism}", {"audits": [(self.mechanism, self)]}

    def to_frame(self) -> Any:
        """Return the summary as a data frame with one row, for `pandas.concat`."""
        return frame([self.summary()])

    def _repr_html_(self) -> str:
        return audit_html(self.summary(), self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for strict JSON; infinity becomes the string "inf"."""
        return {"kind": "audit", **plain(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> AuditResult:
        """Rebuild a result from the output of `to_dict`; wrong fields or a wrong verdict raise a ValueError."""
        result = cls(**read(cls, values, "audit", optional=True))
        typed(Basis, result.basis)
        if not isinstance(result.provenance.get("parameters", {}), dict):
            raise ValueError(f"parameters must be dict, got {result.provenance['parameters']!r:.80}")
        check_counts(result.counts)
        for other in result.others:
            check_other(other)
        support = result.support
        if not (support is None or support == {"order": REDACTED}) and not (
            isinstance(support.get("order"), str) and 0 < number(support.get("probability")) <= 1
        ):
            raise ValueError(f"support must be an order in words and a probability in (0, 1], got {support!r}")
        fraction("confidence", result.confidence)
        if type(result.claim) is not type(result.measured):
            kinds = f"{type(result.claim).__name__} and {type(result.measured).__name__}"
            raise ValueError(f"claim and measured must be of one family, got {kinds}")
        # `measured` gets the budget (epsilon or delta) of the claim: its own would be ambiguous at epsilon 0.
        numbers = result.measured.parameters | {"relation": result.measured.relation}
        result = replace(result, measured=result.claim.with_parameters(numbers))
        if result.measured != result.claim.at(result.measured.budget):
            raise ValueError(
                f"claim and measured must have one relation and delta, got {result.claim} and {result.measured}"
            )
        if result.claim.relation != result.relation:
            raise ValueError(f"the claim must be under {result.relation}, as the pair, got {result.claim.relation}")
        expected = verdict_of(result.claim, result.measured, result.detectable, result.support is not None)
        if result.verdict != expected:
            raise ValueError(f"the verdict must follow from the numbers: {expected!r}, got {result.verdict!r}")
        return result

    def to_json(self, path: str | Path) -> None:
        """Write the result atomically; replace only the same result. The file of a confidential one is private."""
        save_json(Path(path), self.to_dict(), private=self.confidential)


def verdict_of(claim: Claim, measured: Claim, detectable: float, unbounded: bool = False) -> Verdict:
    """Return the verdict that follows from the numbers, which must be of one family and relation."""
    if unbounded or not measured <= claim:
        return "violated"
    return "no power" if detectable > 2 * claim.budget else "not refuted"
