"""Run many audits, save a few numbers of each, and check expectations on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from audit import AuditResult, LossDistribution, NeighborPair, measure_loss
from audit.claims import claim_from_dict
from audit.results import plain_number
from audit.sampling.progress import progress_bar
from experiments.experiment import CONFIDENCE, Check, down, violations


def run_all(tasks: Sequence[Any], jobs: int, words: str, unit: str = "audits") -> list[Any]:
    """Run delayed calls with a progress bar, and return their results in the same order."""
    results = []
    with progress_bar(words, len(tasks), unit=unit) as advance:
        for result in Parallel(n_jobs=jobs, return_as="generator")(tasks):
            results.append(result)
            advance(1)
    return results


def repeat(
    function: Callable[..., Any],
    settings: Sequence[tuple[Any, ...]],
    streams: Iterable[Any],
    times: int | Sequence[int],
    **options: Any,
) -> list[list[Any]]:
    """Call a function several times on each setting, with a new stream each time; return results by setting."""
    # `streams` has a seed sequence for each setting; `times` may have a number for each. Options: see `run_all`.
    often = [times] * len(settings) if isinstance(times, int) else times
    setups = zip(settings, streams, often, strict=True)
    results = iter(run_all([delayed(function)(*one, s) for one, own, n in setups for s in own.spawn(n)], **options))
    return [list(islice(results, n)) for n in often]


def audited(mechanism: Any, pair: Any, claim: Any, *, size: int, rng: Any, jobs: int, **options: Any) -> dict[str, Any]:
    """Run an audit, at the confidence of published verdicts by default, and return all its fields for saving."""
    options = {"confidence": CONFIDENCE, **options}
    return measure_loss(mechanism, pair, claim, size=size, rng=rng, n_jobs=jobs, progress=True, **options).to_dict()


def kept(result: AuditResult) -> dict[str, Any]:
    """Return the few fields that are saved if there are many audits."""
    return {
        "verdict": result.verdict,
        "lower_bound": plain_number(result.measured.budget),
        "witness": None if result.support is None else result.support["probability"],
    }


def group_pair(known: Any, people: int = 1) -> NeighborPair:
    """Return a pair whose databases differ `people` times as much as those of a benchmark."""
    y = known.x + people * (known.y - known.x)
    return NeighborPair.declared(known.x, y, "add_remove", distance=people)


def exact_law(mechanism: Any, pair: Any) -> LossDistribution:
    """Return the exact law of the loss of a pair that has one, since few counts change by few people."""
    law: LossDistribution | None = mechanism.exact_loss(pair)
    assert law is not None
    return law


def largest_loss(mechanism: Any, pair: NeighborPair) -> float:
    law = exact_law(mechanism, pair)
    return max(law.maximum, law.reverse().maximum)


def lost(mechanism: Any, pair: Any, parameter: str) -> float:
    """Return the exact epsilon or rho of a pair; for integer changes, Renyi divergence is linear in its order."""
    law = exact_law(mechanism, pair)
    return float(law.renyi(2) / 2 if parameter == "rho" else law.epsilon_at(0))


def promised(row: dict[str, Any]) -> float:
    return claim_from_dict(row["promise"]).budget


def opened(saved: dict[str, Any]) -> AuditResult:
    return AuditResult.from_dict(saved)


def share(saved: dict[str, Any]) -> float:
    result = opened(saved)
    return result.measured.budget / result.claim.budget


def bounds(audits: Iterable[dict[str, Any]]) -> list[float]:
    return [float(audit["lower_bound"]) for audit in audits if audit["lower_bound"] is not None]


def median(audits: Iterable[dict[str, Any]]) -> float:
    return float(np.median(bounds(audits)))


def all_or_none(what: str, audits: Sequence[dict[str, Any]], *, violated: bool) -> Check:
    times, expected = violations(audits), len(audits) if violated else 0
    return Check(f"{what}: {times} of {len(audits)} audits report a violation, expected {expected}", times == expected)


def none_above(what: str, audits: Iterable[dict[str, Any]], loss: float) -> Check:
    largest = max(bounds(audits), default=0.0)
    words = f"{what}: largest lower bound {down(largest, 4)}, expected no more than the true loss of {loss:.4g}"
    return Check(words, largest <= loss)


def event_class(event: str) -> str:
    """Return the kind of an event, from the statistic in its description."""
    looked_at = event.rsplit(" by ", 1)[-1]
    kinds = {
        "likelihood ratio": ("log-likelihood ratio of y over x",),
        "trained classifier": ("regression on", "boosting on"),
        "several entries": ("joint shift", "sum of shifts", "weighted sum", "sum of output", "agreement"),
    }
    return next((kind for kind, words in kinds.items() if any(word in looked_at for word in words)), "one entry")
