"""Results of measurements: save, describe and draw them. Other packages compute them."""

from __future__ import annotations

from audit.results.audit_result import GIVEN_OUTPUTS, ONE_RUN, REDACTED, AuditResult, Design, Verdict, verdict_of
from audit.results.estimate import LossEstimate
from audit.results.formatting import plain_number
from audit.results.plain import check_counts
from audit.results.power import is_far
from audit.results.replayed import ReplayRecord

__all__ = [
    "GIVEN_OUTPUTS",
    "ONE_RUN",
    "REDACTED",
    "AuditResult",
    "Design",
    "LossEstimate",
    "ReplayRecord",
    "Verdict",
    "check_counts",
    "is_far",
    "plain_number",
    "verdict_of",
]
