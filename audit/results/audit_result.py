"""`AuditResult`: a promise compared with counted runs, and the verdict that follows from its numbers."""

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

__all__ = ["GIVEN_OUTPUTS", "ONE_RUN", "REDACTED", "AuditResult", "Design", "Verdict", "verdict_of"]

Verdict = Literal["violated", "not refuted", "no power"]
Design = Literal["coins", "outputs", "one_run"]
REDACTED = "redacted"
GIVEN_OUTPUTS = "given outputs"  # the mechanism of `measure_loss_from_outputs`
ONE_RUN = "one-run guessing game"  # the bound of `measure_loss_one_run`, by which its method is known
PUBLIC = ("software", "python", "platform", "created")  # of the provenance: nothing that anyone could name


@dataclass(frozen=True, eq=False)
class AuditResult(Reported):
    """A promise compared with counted runs.

    `measured` is a lower bound on the loss at the stated confidence: it can refute the promise, but never confirm it.

    Attributes
    ----------
    mechanism, pair : str
        What was run, and the two databases, in words.
    claim, measured : PureDP, ApproxDP, ZCDP or GaussianDP
        The promise, and the lower bound of the same family: the true loss is at least this, at `confidence`.
    verdict : {"violated", "not refuted", "no power"}
        ``"no power"`` if the runs could not have detected twice the promised loss.
    event, attack, searched, tried : str, str, str, tuple of str
        The rule that was counted, the attack that found it, what it was chosen from, and all attacks that had one.
    counts, basis : dict
        For ``"x"`` and ``"y"`` the counting ``runs``, and in how many the event guessed each database, or how many are
        in each bin of a likelihood ratio; and what the bound needs besides.
    relation, unit : str
        What one step between neighbors is, and whose data change: a person's, a household's or a record's.
    distance, adjacency : int, {"verified", "declared"}
        Steps between the two databases (every loss here is for one), and whether plaudit computed them.
    bound : str
        The theorem behind `measured`.
    confidence : float
        One-sided, for everything that the audit searched.
    size, selection : int
        Runs in all, and those of them that chose the event.
    ceiling : float
        Largest bound that this number of runs could give: an epsilon, delta, rho or mu, as in the claim.
    detectable : float
        Minimum detectable loss: the smallest that this many runs call a violation with power 0.8, selection included.
    support : dict or None
        The witness of an unbounded loss, from the exact law: ``order`` and ``probability``.
    seed_entropy : int or None
        The `rng` that reproduces the audit; None once redacted.
    provenance, seconds : dict, float
        Software, platform and parameters; wall time.
    confidential : bool
        Whether the databases are confidential: then so are event, counts and labels.
    notes : tuple of str
        What else a reader should know, such as warnings of the mechanism and how often they came.
    others : tuple of dict
        Events that the same runs counted and that proved less. All events share the error probability.
    rare : float
        A value, word or failure that only one database gives, always the same and in the same place, is found with
        power 0.8 if it comes once in this many runs. Infinite if none is, or none was searched.
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
        """Return what tables and programs show of the audit, by default with its mechanism for a name."""
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
            "power": "; ".join(self.power),
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
        """How the runs were made: by plaudit on both databases ("coins"), elsewhere ("outputs"), or in one run."""
        if self.bound == ONE_RUN:
            return "one_run"
        from_outputs = self.mechanism == GIVEN_OUTPUTS if self.redacted else "runs_x" in self.parameters
        return "outputs" if from_outputs else "coins"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the audit; a file written by hand may have none."""
        parameters = self.provenance.get("parameters")
        return parameters if isinstance(parameters, dict) else {}

    @property
    def witness(self) -> str:
        """The output that proves an unbounded loss, in words; empty without one."""
        if self.support is None:
            return ""
        if "probability" not in self.support:
            return "; unbounded by the exact law"
        return f"; unbounded by the exact law: {self.support['order']}, probability {self.support['probability']:.3g}"

    @property
    def far_below_claim(self) -> bool:
        """Whether the largest bound is far below the promise: then no minimum detectable loss is announced."""
        return self.verdict == "not refuted" and is_far(self.measured.budget, self.claim.budget, self.detectable)

    @property
    def power(self) -> tuple[str, ...]:
        """What a pass could have hidden, in sentences; empty for a violation."""
        return () if self.verdict == "violated" or self.redacted else power(self)

    def redact(self) -> AuditResult:
        """Return claim, bound, verdict and sizes only: the rest can disclose true counts or names."""
        public = {key: self.provenance[key] for key in PUBLIC if key in self.provenance}
        return replace(
            self,
            mechanism=GIVEN_OUTPUTS if self.design == "outputs" else REDACTED,
            event=REDACTED,
            counts={name: {"runs": side["runs"]} for name, side in self.counts.items() if "runs" in side},
            pair=REDACTED,
            searched=REDACTED,
            # Where noise ends, the probability of a witness is the count.
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
        """Return the summary as a data frame of one row, which `pandas.concat` puts below others."""
        return frame([self.summary()])

    def _repr_html_(self) -> str:
        return audit_html(self.summary(), self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for strict JSON: infinity is the string "inf"."""
        return {"kind": "audit", **plain(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> AuditResult:
        """Rebuild a result from what `to_dict` returned; refuse wrong fields, and a verdict that does not follow."""
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
        # What was measured has the budget of the promise, also where its epsilon is 0.
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
        """Write the result to a file, whole or not at all, over the same result only; a confidential one is private."""
        save_json(Path(path), self.to_dict(), private=self.confidential)


def verdict_of(claim: Claim, measured: Claim, detectable: float, unbounded: bool = False) -> Verdict:
    """Return the verdict that follows from the numbers, all of one family and relation."""
    if unbounded or not measured <= claim:
        return "violated"
    return "no power" if detectable > 2 * claim.budget else "not refuted"
