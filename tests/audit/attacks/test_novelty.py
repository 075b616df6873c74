"""Numbers that only one database gives: in gaps of the other's, of fractions, in any entry; and words new each time."""

import pytest

from audit.claims import PureDP
from audit.measure.loss import measure_loss
from tests.audit.attacks.rare import NEW, PAIR, of_many

FASTER = {kind: made for kind, made in NEW.items() if "entries" not in kind} | {
    "gap in one of 6 entries": lambda rate: of_many(6, 4, rate),
    "gap in any of 12 entries": lambda rate: of_many(12, None, rate),
}


@pytest.mark.parametrize("kind", FASTER)
def test_what_is_new_among_others_is_found(kind):
    """Each is found in 20 of 20 at this rate."""
    result = measure_loss(FASTER[kind](0.1), PAIR, PureDP(1.0), size=4000, rng=1)
    assert result.verdict == "violated"
    assert result.attack in ("novelty", "words")
