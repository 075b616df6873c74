"""Audits by the hundred: how they are run, what is saved of each, and what is expected of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel

from audit.measure.loss import measure_loss
from audit.results import AuditResult, plain_number
from audit.results.formatting import at_least, at_most
from audit.sampling.progress import progress_bar
from experiments.experiment import CONFIDENCE, Check


def run_all(tasks: Sequence[Any], jobs: int, words: str, unit: str = "audits") -> list[Any]:
    """Run delayed calls with a progress bar, and return their results in the same order."""
    found = []
    with progress_bar(words, len(tasks), unit=unit) as advance:
        for result in Parallel(n_jobs=jobs, return_as="generator")(tasks):
            found.append(result)
            advance(1)
    return found


def audited(mechanism: Any, pair: Any, claim: Any, *, size: int, rng: Any, jobs: int, **options: Any) -> dict[str, Any]:
    """Return one audit as it is saved in full, at the confidence of published verdicts unless told another."""
    options = {"confidence": CONFIDENCE, **options}
    return measure_loss(mechanism, pair, claim, size=size, rng=rng, n_jobs=jobs, progress=True, **options).to_dict()


def kept(result: AuditResult) -> dict[str, Any]:
    """Return what is saved of one audit of many; its lower bound has the key ``"lower_bound"``."""
    return {
        "verdict": result.verdict,
        "lower_bound": plain_number(result.measured.budget),
        "witness": None if result.support is None else result.support["probability"],
    }


def opened(saved: dict[str, Any]) -> AuditResult:
    """Return an audit that was saved in full."""
    return AuditResult.from_dict(saved)


def share(saved: dict[str, Any]) -> float:
    """Return the lower bound of an audit that was saved in full, over its promise."""
    result = opened(saved)
    return result.measured.budget / result.claim.budget


def bounds(audits: Iterable[dict[str, Any]]) -> list[float]:
    """Return the lower bounds of many audits, in the unit of the claim, without those that were refused."""
    return [float(audit["lower_bound"]) for audit in audits if audit["lower_bound"] is not None]


def median(audits: Iterable[dict[str, Any]]) -> float:
    """Return the median lower bound of many audits, in the unit of the claim."""
    return float(np.median(bounds(audits)))


def violations(audits: Iterable[dict[str, Any]]) -> int:
    """Return how many audits report a violation."""
    return sum(audit["verdict"] == "violated" for audit in audits)


def down(value: float, digits: int = 3) -> str:
    """Return a lower bound as it is printed: rounded down."""
    return at_least(float(value), digits)


def up(value: float, digits: int = 3) -> str:
    """Return a minimum detectable loss as it is printed: rounded up."""
    return at_most(float(value), digits)


def all_or_none(what: str, audits: Sequence[dict[str, Any]], *, violated: bool) -> Check:
    """Expect that every audit reports a violation, or that none does."""
    times, wanted = violations(audits), len(audits) if violated else 0
    return Check(f"{what}: {times} of {len(audits)} audits report a violation, expected {wanted}", times == wanted)


def none_above(what: str, audits: Iterable[dict[str, Any]], loss: float) -> Check:
    """Expect that no lower bound exceeds the true loss."""
    largest = max(bounds(audits), default=0.0)
    words = f"{what}: largest lower bound {down(largest, 4)}, expected no more than the true loss of {loss:.4g}"
    return Check(words, largest <= loss)


def event_class(event: str) -> str:
    """Return the kind of an event from its description: what of an output it looks at."""
    looked_at = event.rsplit(" by ", 1)[-1]
    kinds = {
        "likelihood ratio": ("log-likelihood ratio of y over x",),
        "trained classifier": ("regression on", "boosting on"),
        "several entries": ("joint shift", "sum of shifts", "weighted sum", "sum of output", "agreement"),
    }
    return next((kind for kind, words in kinds.items() if any(word in looked_at for word in words)), "one entry")
