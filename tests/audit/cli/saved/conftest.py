"""Two audits of the same data: one within its claim, and a violation."""

from __future__ import annotations

import pytest

from algorithms.bugs.budget import HalfNoiseGDPC
from algorithms.flaxman import GDPC
from audit import NeighborPair, PureDP, measure_loss
from audit.results import AuditResult


def measured(mechanism: GDPC) -> AuditResult:
    pair = NeighborPair.add_people([120, 75, 43], cell=0)
    return measure_loss(mechanism, pair, PureDP(1.0), size=2000, confidence=0.999, attack="entries", rng=1)


@pytest.fixture(scope="session")
def sound() -> AuditResult:
    return measured(GDPC(1.0))


@pytest.fixture(scope="session")
def violated() -> AuditResult:
    return measured(HalfNoiseGDPC(1.0))
