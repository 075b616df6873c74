"""How many runs an audit that may stop early makes until it finds a violation."""

from __future__ import annotations

import numpy as np

from audit.claims import Claim
from audit.methods.betting import LEARNING, SETTLED, TAUGHT, Bets, block_size
from audit.planning.plan import MOST
from audit.planning.sizes import OutOfReachError, checked_plan, checked_violation

__all__ = ["plan_early"]

SHARE = 0.8  # of audits, besides a half


def plan_early(
    claim: Claim, *, violation: float = 1.1, confidence: float = 0.95, distance: int = 1, share: float = 1.0
) -> tuple[int, int]:
    """Return within how many runs half, and 80%, of audits that may stop early find a violation of a given size.

    Parameters
    ----------
    claim, violation, confidence, distance, share
        As in `plan_size`, for ``measure_loss(stop="early")`` with a `size` that is large enough.

    Returns
    -------
    tuple of int
        Runs over both databases, all of them: median and 80% point.

    Raises
    ------
    OutOfReachError
        If 10**12 runs are too few for 80% of audits, or if the violation is below 1.1: such an audit ends when it would
        have found 1.1 times the promise. It is a ValueError.

    Notes
    -----
    Simulated audits of the mechanisms of `plan_size`. They know the best rule. Randomized response teaches it at once;
    for two normal laws the numbers are larger by a half. Real audits of these have medians within a third of it.
    """
    plan = checked_plan(claim, confidence, distance, 0.0, share, "coins")
    truth = claim.at(checked_violation(violation) * claim.budget)
    if violation < SETTLED:
        raise OutOfReachError(
            f"an early audit ends when it would have found {SETTLED} times {claim}, got {violation:g}"
        )
    sizes, made = list[int](), TAUGHT
    while made < MOST:
        sizes.append(block_size(made, MOST))
        made += sizes[-1]
    learning = LEARNING if claim.epsilon_delta is None else 1.0
    known = [max(1, round(runs / learning)) for runs in sizes]
    ends = Bets(claim, plan.distance, plan.confidence).ends(truth, known, (2, share, share / 2))
    last, late = (int(np.quantile(ends, part, method="inverted_cdf")) for part in (0.5, SHARE))
    if late == len(sizes):
        raise OutOfReachError(f"not even {MOST:,} runs would show {violation:g} times {claim} in {SHARE:.0%} of audits")
    total = TAUGHT + np.cumsum(sizes)
    return int(total[last]), int(total[late])
