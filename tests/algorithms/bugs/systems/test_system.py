"""Known bugs of whole systems as they are registered: on the databases that are to show them they break the promise."""

import math

import pytest

from algorithms.systems import systems


def promises_lost(mechanism, pair):
    """How many times its promise a mechanism loses on a pair, by the exact law or a witness."""
    if hasattr(mechanism, "support_masses"):
        return math.inf * max(mechanism.support_masses(pair))
    if hasattr(mechanism, "spent"):
        return mechanism.spent(pair) / mechanism.claim.budget
    return mechanism.exact_loss(pair).maximum / mechanism.claim.budget


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("topdown-factor-two", 2),
        ("topdown-level-shares", 1.5),
        ("topdown-pruned", math.inf),
        ("topdown-silent-totals", math.inf),
        ("phsafe-two-tau", 1.105),
        ("phsafe-units-twice", 2),
        ("phsafe-shared-noise", math.inf),
        ("bottom-up-weights", 6),
        ("bottom-up-fractions", math.inf),
        ("bottom-up-undeclared-totals", math.inf),
        ("nist-domain", math.inf),
    ],
)
def test_the_registered_pair_breaks_the_promise(name, times):
    system = systems()[f"bug-{name}"]
    stage = "measurements" if name in ("topdown-factor-two", "topdown-level-shares") else ""
    assert promises_lost(system.mechanism(stage=stage), system.pair()) == pytest.approx(times)
