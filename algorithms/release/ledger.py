"""What a promise means as epsilon at a delta: the values that the field quotes, side by side."""

from __future__ import annotations

import math

from audit.claims import ZCDP, GaussianDP, PureDP

__all__ = ["conversions"]


def conversions(claim: PureDP | ZCDP, delta: float) -> dict[str, float]:
    """Return the epsilons (nats) that the field quotes for a promise at a delta; of `PureDP`, the tight one alone.

    ``tight``: Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, corollary 13.
    ``simple``: Bun and Steinke, "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds",
    2016, proposition 1.3. ``Gaussian``: Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy",
    2018, theorem 8.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must be between 0 and 1, got {delta}")
    if not isinstance(claim, PureDP | ZCDP):
        raise TypeError(f"claim must be PureDP or ZCDP, got {type(claim).__name__}")
    tight = {"tight": claim.epsilon_at(delta)}
    if isinstance(claim, PureDP):
        return tight
    simple = claim.rho + 2 * math.sqrt(claim.rho * -math.log(delta))
    return {"simple": simple, **tight, "Gaussian": GaussianDP(math.sqrt(2 * claim.rho)).epsilon_at(delta)}
