"""`ReplayRecord`: the result of a replay in plain values, for files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from audit.claims import Claim, Relation
from audit.io.html import as_html
from audit.io.text import printable
from audit.results.audit_result import Verdict
from audit.results.formatting import NEIGHBORS, WARNING, number_of
from audit.results.plain import plain, read

__all__ = ["ReplayRecord"]


@dataclass(frozen=True, eq=False)
class ReplayRecord:
    """The result of pairs of runs with the same noisy answers, in plain values."""

    mechanism: str
    pair: str
    relation: Relation
    claim: Claim | None  # the promise for the pair
    queries: tuple[dict[str, Any], ...]  # all draws in order, each with its law, its change and the loss of that change
    violations: tuple[dict[str, str], ...]  # proved violations: kind and sentence
    notes: tuple[str, ...]  # parts that could not be evaluated, and why
    evaluated: bool  # whether anything could be evaluated
    known: bool  # whether all noise comes from these queries
    size: int  # pairs of runs
    seed: int
    seconds: float
    confidential: bool
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The verdict: "violated", "not refuted", or "no power" if nothing could be evaluated."""
        return "violated" if self.violations else "not refuted" if self.evaluated else "no power"

    def __str__(self) -> str:
        secret = "CONFIDENTIAL: " * self.confidential
        label = ", ".join(part for part in (printable(self.mechanism), printable(self.pair)) if part.strip())
        relation = "add/remove" if self.relation == "add_remove" else "replace one"
        promise = f"promised {self.claim}" if self.claim else f"nothing promised ({relation})"
        if self.violations:
            words = printable("{kind}: {sentence}".format(**self.violations[0]))
            more, notes = len(self.violations) - 1, len(self.notes)
            words += (f" (and {more} more)" if more else "") + (f"; {number_of(notes, 'note')}" if notes else "")
        else:
            words = f"{len(self.queries)} {'query' if len(self.queries) == 1 else 'queries'} replayed"
            more = len(self.notes) - 1
            words += f"; {printable(self.notes[0])}" if self.notes else ""
            words += f" (and {number_of(more, 'note')} more)" if more > 0 else ""
        return f"{secret}{label}, {promise}: {self.verdict}: {words}"

    def _repr_html_(self) -> str:
        facts = [
            ("promised", str(self.claim) if self.claim else "nothing"),
            ("neighbors", NEIGHBORS[self.relation].format("one unit")),
            ("databases", self.pair),
            ("queries", f"{len(self.queries):,}"),
            *(("violation", "{kind}: {sentence}".format(**one)) for one in self.violations),
        ]
        secret = [WARNING] if self.confidential else []
        notes = [*secret, *self.notes, "A pass is no proof: other answers may lead elsewhere."]
        return as_html(self.mechanism, facts, verdict=self.verdict, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and strings for strict JSON; infinity becomes the string "inf"."""
        return {"kind": "replay", **plain(self), "verdict": self.verdict}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ReplayRecord:
        """Rebuild a record from the output of `to_dict`; wrong fields or a wrong verdict raise a ValueError."""
        verdict = values.get("verdict") if isinstance(values, dict) else None
        rest = {key: value for key, value in values.items() if key != "verdict"} if verdict else values
        record = ReplayRecord(**read(ReplayRecord, rest, "replay"))
        if any(violation.keys() != {"kind", "sentence"} for violation in record.violations):
            raise ValueError("a violation must have kind and sentence")
        if verdict != record.verdict:
            raise ValueError(f"the verdict must follow from the violations: {record.verdict!r}, got {verdict!r}")
        return record
