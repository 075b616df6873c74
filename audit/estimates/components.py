"""Estimates of the loss of a mechanism on a pair: of one law of noise, or of several, whose losses are added up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audit.estimates.running import estimate_direct, estimate_residuals, exact_output
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.results import LossEstimate
from audit.sampling.streams import Seed, entropy_of, seed_sequence, stream

__all__ = ["estimate_loss"]


def estimate_loss(
    mechanism: Mechanism, pair: NeighborPair, *, method: str, data: Any = None, rng: Seed = None, **options: Any
) -> LossEstimate:
    """Estimate the loss of a mechanism; of one with `components`, that of each by itself, and their sum as `value`.

    `components()` are mechanisms with outputs side by side, independent and each with one law of noise; the curve has a
    point for each. `data` is the database on which errors are made, the first of the pair by default; `options` go to
    `estimate_direct` or `estimate_residuals`. Pure losses of independent components add up, and so does rho (Bun and
    Steinke, 2016, lemma 1.7); an answer that changes by ``c`` loses ``c`` times as much of pure privacy as by 1, and
    ``c**2`` times as much of rho. Intervals add up as those of independent estimates do.
    """
    errors = pair.x if data is None else data
    if not callable(getattr(mechanism, "components", None)):
        if method == "direct":
            return estimate_direct(mechanism, pair, rng=rng, **options)
        return estimate_residuals(mechanism, errors, method=method, rng=rng, **options)
    if "change" in options:
        raise ValueError("change is for one law of noise: how much each component changes is read from the pair")
    root = seed_sequence(rng)
    where, found = [], []
    for number, component in enumerate(mechanism.components()):  # type: ignore[attr-defined]
        change = np.abs(exact_output(component, pair.y) - exact_output(component, pair.x))
        if not change.any():
            continue
        own = stream(root, number)
        if method == "direct":
            estimate = estimate_direct(component, pair, rng=own, **options)
            weight = change.sum() / change.max()
        else:
            estimate = estimate_residuals(component, errors, method=method, rng=own, **options)
            per_person = change / pair.distance
            weight = (per_person**2 if method == "slope" else per_person).sum()
        where.append(number)
        found.append((estimate, float(weight)))
    if not found:
        raise ValueError("the two databases must differ in an exact output, got none that changes")
    return _added(where, found, entropy_of(root))


def _added(where: list[int], found: list[tuple[LossEstimate, float]], seed: int) -> LossEstimate:
    """Return the sum of estimates, each times its weight."""
    first, _ = found[0]
    loss, low, high = np.array([[one.value * weight, *np.multiply(one.interval, weight)] for one, weight in found]).T
    value = float(loss.sum())
    below, above = (math.hypot(*np.abs(end - loss)) for end in (low, high))
    return LossEstimate(
        method=first.method,
        at=np.array(where, float),
        loss=loss,
        low=low,
        high=high,
        value=value,
        interval=(max(0.0, value - below), value + above),
        confidence=first.confidence,
        assumptions=(*first.assumptions, "independent components, each of one law: what they lose adds up"),
        size=first.size,
        areas=sum(estimate.areas for estimate, _ in found),
        settings={"components": len(found), "weights": [weight for _, weight in found], "seed": seed},
        statistic="rho" if first.statistic == "rho" else "sum over components",
    )
