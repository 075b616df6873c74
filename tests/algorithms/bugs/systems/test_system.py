"""Known bugs of whole systems as they are registered: databases that show them, and sound systems on the same."""

from __future__ import annotations

import pytest

from algorithms.systems import systems
from audit.measure.loss import measure_loss

SURE = 1 - 1e-6


@pytest.mark.parametrize(
    ("name", "stage", "size"),
    [
        ("bug-topdown-factor-two", "measurements", 20_000),
        ("bug-topdown-pruned", "", 2_000),
        ("bug-topdown-silent-totals", "", 100),
        ("bug-phsafe-units-twice", "", 20_000),
        ("bug-phsafe-shared-noise", "", 2_000),
        ("bug-bottom-up-weights", "", 2_000),
        ("bug-bottom-up-fractions", "", 500),
        ("bug-bottom-up-undeclared-totals", "", 500),
        ("bug-nist-domain", "", 200),
    ],
)
def test_a_registered_bug_is_found(name, stage, size):
    """False alarm: 1e-6 each."""
    system = systems()[name]
    mechanism, pair = system.mechanism(stage=stage), system.pair()
    result = measure_loss(mechanism, pair, mechanism.claim, size=size, confidence=SURE, rng=3)
    assert result.verdict == "violated"
