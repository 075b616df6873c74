"""The smallest budget that gives a margin of error: the inverse of `algorithms.noise.margins`."""

from __future__ import annotations

import math

from scipy.special import ndtri

from algorithms.noise.discrete_gaussian import DiscreteGaussian
from algorithms.noise.geometric import TwoTailedGeometric
from algorithms.noise.margins import beyond, checked_margin, inside
from audit.arguments import positive_number
from audit.exact.roots import brentq

__all__ = ["exact_budget_for", "margins_around"]

CONTINUOUS = 1e9  # from this margin on, noise is treated as continuous: the relative error is 1e-18


def exact_budget_for(
    margin: float, stability: float, *, confidence: float = 0.9, privacy_definition: str = "zcdp"
) -> float:
    """Return the smallest budget, to nine digits, whose exact margin is at most the whole part of `margin`."""
    if privacy_definition not in ("zcdp", "puredp"):
        raise ValueError(f'privacy_definition must be "zcdp" or "puredp", got {privacy_definition!r}')
    sensitivity = positive_number("stability", stability)
    missed, reach = 1 - inside(confidence), math.floor(checked_margin(margin)) + 0.5

    def excess(log_scale: float) -> float:  # increases with the scale of the noise
        scale = reach * math.exp(log_scale)
        law = DiscreteGaussian(scale) if privacy_definition == "zcdp" else TwoTailedGeometric(1 / scale)
        return math.log(beyond(law, margin) or 1e-300) - math.log(missed)

    if reach < CONTINUOUS:
        ratio = math.exp(brentq(excess, math.log(0.01), math.log(100 / confidence), xtol=1e-13))
    else:  # continuous formulas; laws at the ends of the bracket above would be out of range
        ratio = 1 / (-ndtri(missed / 2) if privacy_definition == "zcdp" else -math.log(missed))
    scale = reach * ratio * (1 - 1e-10)
    return (sensitivity / scale) ** 2 / 2 if privacy_definition == "zcdp" else sensitivity / scale


def margins_around(margin: int, number: int = 23) -> list[int]:
    """Return `number` margins from about 2/5 to 5/2 of `margin`; consecutive whole numbers if `margin` is small."""
    least, reach = max(1, margin * 2 // 5), max(number - 1, margin * 21 // 10)
    return [least + place * reach // (number - 1) for place in range(number)]
