"""How many runs an audit needs to detect a violation, and which violations a number of runs detects."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import numpy as np

from audit.arguments import fraction, real_number, whole_number
from audit.claims import Claim
from audit.measure.evaluation import check_question
from audit.methods.betting import LEARNING, SETTLED, TAUGHT, Bets, block_size
from audit.methods.method import CLOSE, LEAST_EXCESS, apart, crossing, method_for
from audit.planning.plan import MOST, Design, Plan

__all__ = ["OutOfReachError", "plan_early", "plan_power", "plan_size", "plan_violation"]

SMALLEST_SHARE = 1e-6  # least share of the runs that choose, and of those that count
LATE = 0.8  # share of early audits whose runs are planned, besides a half
WINDOW = 100_000  # most sizes below a sufficient one that are tried, too


class OutOfReachError(ValueError):
    """No number of runs that anyone can make would detect the violation with this power."""


def plan_size(
    claim: Claim,
    *,
    violation: float = 1.1,
    confidence: float = 0.95,
    power: float = 0.8,
    distance: int = 1,
    selection: float = 0.3,
    share: float = 1.0,
    design: Design = "coins",
) -> int:
    """Return how many runs an audit needs to detect a violation of a given size.

    Parameters
    ----------
    claim : PureDP, ApproxDP, ZCDP or GaussianDP
        The promise for one step, under either relation.
    violation : float
        True loss divided by the promise, more than 1: in epsilon at the same delta, in rho or in mu.
    confidence, power : float
        One-sided confidence of the audit, and probability of the verdict ``"violated"``, in (0, 1).
    distance : int
        Steps between the two databases.
    selection : float
        Share of the runs that choose the event, in [0, 1); 0 if it is registered. A single run spends none.
    share : float
        Share of the runs that meet a registered event, in (0, 1], under pure and approximate privacy.
    design : {"coins", "outputs", "one_run"}
        `measure_loss`; equally many outputs for `measure_loss_from_outputs`; or `measure_loss_one_run`.

    Returns
    -------
    int
        Runs in all, over both databases, selection included; canaries if there is one run. The first size that reaches
        the power: a few larger ones may fall slightly short (Chernick and Liu, 2002).

    Raises
    ------
    OutOfReachError
        If not even 10**12 runs, or 10**6 canaries, are enough; it is a ValueError.

    Notes
    -----
    A plan is for outputs of one number that has the whole loss: randomized response, two shifted normal laws for
    Gaussian or zero-concentrated privacy, or one such law a canary. Other mechanisms may need more runs; for
    ``stop="early"`` see `plan_early`.

    The power is exact for games whose event is registered. A chosen event shares 5% of the error probability with a
    second one, as in about half of the audits. Regions and divergences are simulated, to a few percent of the size.
    """
    plan = _checked_plan(claim, confidence, distance, selection, share, design)
    worse, target = _checked_violation(violation), fraction("power", power)
    size = _simulated_size(plan, worse, target) if plan.method.simulated else _first_size(plan, worse, target)
    if size is None:
        most = f"{plan.most:,} {'canaries' if design == 'one_run' else 'runs'}"
        raise OutOfReachError(f"not even {most} would see {worse:g} times {claim} with power {target:g}")
    return size


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
        All runs over both databases: median, and 80% point.

    Raises
    ------
    OutOfReachError
        If 10**12 runs are too few for 80% of audits; also below 1.1, as these audits end when they would have found it.

    Notes
    -----
    Simulated audits of the mechanisms of `plan_size`. Randomized response teaches the best rule at once; for normal
    laws the numbers are larger by a half. Real audits are within two blocks of runs of both points.
    """
    plan = _checked_plan(claim, confidence, distance, 0.0, share, "coins")
    truth = claim.at(_checked_violation(violation) * claim.budget)
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
    last, late = (int(np.quantile(ends, part, method="inverted_cdf")) for part in (0.5, LATE))
    if late == len(sizes):
        raise OutOfReachError(f"not even {MOST:,} runs would show {violation:g} times {claim} in {LATE:.0%} of audits")
    total = TAUGHT + np.cumsum(sizes)
    return int(total[last]), int(total[late])


def plan_violation(
    claim: Claim,
    size: int,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
    distance: int = 1,
    selection: float = 0.3,
    share: float = 1.0,
    design: Design = "coins",
) -> float:
    """Return the smallest violation that a given number of runs detects, at least 1; infinite if it detects none.

    Parameters
    ----------
    claim, confidence, power, distance, selection, share, design
        As in `plan_size`.
    size : int
        Runs in all, over both databases, selection included; canaries if there is one run.

    Returns
    -------
    float
        True loss divided by the promise.
    """
    plan = _checked_plan(claim, confidence, distance, selection, share, design)
    return _smallest_violation(plan, _checked_size(plan, size), fraction("power", power))


def plan_power(
    claim: Claim,
    size: int,
    *,
    violation: float = 1.1,
    confidence: float = 0.95,
    distance: int = 1,
    selection: float = 0.3,
    share: float = 1.0,
    design: Design = "coins",
) -> float:
    """Return the probability that a given number of runs detects a violation of a given size.

    The arguments are those of `plan_size`, and `size` is as in `plan_violation`.

    Returns
    -------
    float
        Probability.
    """
    plan = _checked_plan(claim, confidence, distance, selection, share, design)
    return plan.power(_checked_size(plan, size), _checked_violation(violation))


def _first_size(plan: Plan, violation: float, power: float) -> int | None:
    low, high = plan.least - plan.step, plan.least
    while plan.power(high, violation) < power:
        low, high = high, high + max(1, high // (2 * plan.step)) * plan.step
        if high > plan.most:
            return None
    while high - low > plan.step:
        middle = low + (high - low) // (2 * plan.step) * plan.step
        low, high = (low, middle) if plan.power(middle, violation) >= power else (middle, high)
    sawtooth = plan.method.sawtooth(plan.claim.at(violation * plan.claim.budget)) if plan.share == 1 else 0.0
    if sawtooth == 0:
        return high
    # Power falls where one more right guess is needed. So smaller sizes may be enough, too: a window of them is tried.
    window = min(WINDOW, math.ceil(sawtooth / (1 - plan.selection)) + 20)
    sizes = np.arange(max(plan.least, high - window * plan.step), high + 1, plan.step)
    return int(sizes[np.argmax(plan.powers(sizes, violation) >= power)])


def _simulated_size(plan: Plan, violation: float, power: float) -> int | None:
    """Return the first size that reaches the power, to a relative error of `CLOSE`; None if there is none."""
    start = plan.least
    if plan.selection > 0:
        registered = _simulated_size(replace(plan, selection=0.0), violation, power)
        if registered is None:
            return None
        start = max(start, math.ceil(registered / (1 - plan.selection)))

    def size_at(log_size: float) -> int:
        return max(plan.least, plan.step * math.ceil(math.exp(log_size) / plan.step - 1e-9))

    def excess(log_size: float) -> float:
        return apart(plan.power(size_at(log_size), violation), power)

    log_size = crossing(excess, math.log(start), math.log(plan.least), math.log(plan.most), CLOSE)
    return None if math.isinf(log_size) else size_at(log_size)


def _smallest_violation(plan: Plan, size: int, power: float) -> float:
    def excess(log_excess: float) -> float:
        return apart(plan.power(size, 1 + math.exp(log_excess)), power)

    bottom, largest = math.log(LEAST_EXCESS), method_for(plan.claim, plan.distance, plan.confidence).largest
    top = math.log(max(largest / plan.claim.group(plan.distance).budget - 1, LEAST_EXCESS))
    start = min(0.0, top)
    if plan.method.simulated and plan.selection > 0:
        registered = _smallest_violation(
            replace(plan, selection=0.0, design="coins"), int(plan.split(np.array(size))[1]), power
        )
        start = min(max(math.log(max(registered - 1, LEAST_EXCESS)), bottom), top)
    log_excess = crossing(excess, start, bottom, top, CLOSE if plan.method.simulated else 1e-12)
    return 1 + math.exp(log_excess) if log_excess > bottom else 1.0


def _checked_plan(
    claim: Claim, confidence: float, distance: int, selection: float, share: float, design: Design
) -> Plan:
    check_question(claim, getattr(claim, "relation", "add_remove"), "auto", None, real_number("confidence", confidence))
    if design not in get_args(Design):
        raise ValueError(f"design must be one of {', '.join(get_args(Design))}, got {design!r}")
    selection, share = real_number("selection", selection), fraction("share", share, one=True)
    if selection != 0 and not SMALLEST_SHARE <= selection <= 1 - SMALLEST_SHARE:
        raise ValueError(f"selection must be 0, or {SMALLEST_SHARE:g} to 1 - {SMALLEST_SHARE:g}, got {selection}")
    if share < 1 and (method_for(claim, 1, confidence).simulated or design != "coins"):
        raise ValueError(f"share is for coins under pure or approximate privacy, got {claim} and design {design}")
    if share < 1 and selection > 0:
        raise ValueError(f"share below 1 needs an event fixed beforehand: selection must be 0, got {selection}")
    if design == "one_run" and claim.relation == "replace_one":
        raise ValueError("canaries are added or removed: the claim must be under add_remove, got replace_one")
    steps = whole_number("distance", distance, least=1)
    return Plan(claim, float(confidence), steps, selection, share, design)


def _checked_violation(violation: float) -> float:
    if not 1 < real_number("violation", violation) < math.inf:
        raise ValueError(f"violation must be more than 1 and finite, got {violation}")
    return float(violation)


def _checked_size(plan: Plan, size: int) -> int:
    runs = whole_number("size", size, least=plan.least)
    if runs > plan.most:
        raise ValueError(f"size must be at most {plan.most}, got {runs}")
    return runs
