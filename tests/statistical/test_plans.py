"""A violation is seen as often as planned: whole audits of the mechanism that a plan is for."""

import math

import numpy as np
import pytest

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.planning import plan_power, plan_size
from tests.audit.audits import as_planned


def called(claim, size, violation, audits, distance=1, seed=0):
    """The share of audits that call it violated."""
    pair = NeighborPair.declared(0, 1, "add_remove", distance=distance)
    mechanism = as_planned(claim.at(violation * claim.budget).group(distance))
    streams = np.random.SeedSequence(seed).spawn(audits)
    return float(
        np.mean([measure_loss(mechanism, pair, claim, size=size, rng=rng).verdict == "violated" for rng in streams])
    )


@pytest.mark.slow
@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(1.0)])
def test_what_is_planned_is_seen_as_often_as_planned(claim):
    """Of 40 audits a share of 0.8 strays by 0.25 with probability below 1e-4 (binomial)."""
    violation = 1.5
    size = plan_size(claim, violation=violation)
    assert called(claim, size, violation, 40) == pytest.approx(0.8, abs=0.25)
    assert called(claim, size // 4, violation, 20) < 0.75  # negative control: 0.27 or 0.3, false alarm below 1e-4


@pytest.mark.slow
@pytest.mark.reliability(row=4)
@pytest.mark.parametrize("power", [0.5, 0.95])
@pytest.mark.parametrize(
    ("claim", "violation", "distance"),
    [
        *((claim, 1.5, 1) for claim in (PureDP(1.0), ApproxDP(1.0, 1e-2), GaussianDP(1.0), ZCDP(0.5))),
        (PureDP(0.1), 1.5, 10),
        (GaussianDP(0.1), 2.0, 10),
        (ZCDP(0.05), 2.0, 1),
    ],
)
def test_every_family_is_seen_as_often_as_planned(claim, violation, distance, power, record_property):
    """Within 3 points, and 4 standard errors of 200 audits (false alarm below 1e-4)."""
    size = plan_size(claim, violation=violation, power=power, distance=distance)
    planned = plan_power(claim, size, violation=violation, distance=distance)
    error = math.sqrt(planned * (1 - planned) / 200)
    found = called(claim, size, violation, 200, distance=distance, seed=5)
    case = f"{claim}, {violation:g} times as much, distance {distance}"
    for name, value in {"tried": 200, "case": case, "announced": planned, "found": round(200 * found)}.items():
        record_property(name, value)
    assert found == pytest.approx(planned, abs=0.03 + 4 * error)
