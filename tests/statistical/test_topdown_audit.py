"""Audits of sound TopDown: its tables are not accused. `reliability/test_accusations.py` audits its bugs."""

import pytest

from algorithms.topdown import TopDown
from algorithms.topdown.estimation.constraints import Invariant
from audit.attacks.statistics import weighted_sum
from audit.claims import ZCDP, PureDP
from audit.events import Event, ThresholdRule
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from tests.algorithms.bugs.systems.test_topdown import CONCENTRATED, COUNTS, MOVED, PURE, RARE, plant

CONFIDENCE = 1 - 1e-6


def total_of_first():
    cells = [(leaf, cell) for leaf in range(3) for cell in range(4)]
    total = float(COUNTS[:3].sum())
    return Event(weighted_sum(cells, [0.0] * 12, [-1.0] * 12), ThresholdRule(low=-total, high=1 - total))


def test_a_pair_that_breaks_an_invariant_is_refused_and_beyond_the_promise():
    topdown = plant(TopDown, PURE, invariants=[Invariant("total", 1)])
    for mechanism in (topdown, topdown.stage("measurements"), topdown.stage("rounded")):
        with pytest.raises(ValueError, match="such a pair is not covered by the promise"):
            measure_loss(mechanism, MOVED, PURE, size=100, rng=1)
    pair = NeighborPair.declared(MOVED.x, MOVED.y, "replace_one", label="not covered by the promise")
    result = measure_loss(
        lambda data, size, rng: topdown(data, size, rng), pair, PURE, event=total_of_first(), size=24, rng=1
    )
    assert (result.verdict, result.pair) == ("violated", "not covered by the promise")
    inside = NeighborPair.move_people(COUNTS, (0, 0), (2, 3))
    covered = measure_loss(topdown.stage("measurements"), inside, PURE, size=4_000, confidence=CONFIDENCE, rng=1)
    assert covered.verdict != "violated"


@pytest.mark.slow
@pytest.mark.parametrize("promise", [PURE, CONCENTRATED, PureDP(1.0), ZCDP(0.5)])
def test_published_tables_are_not_accused(promise):
    """25 audits for each noise and relation, 100 in all; false alarm 1e-4 in all.

    Counts of 32 calls vary up to 1.65 times as much as runs by chance; bounds allow for it, which costs runs.
    """
    topdown = plant(TopDown, promise, queries={"total": "1/5", "sex": "3/10", "detailed": "1/2"})
    pairs = [NeighborPair.add_people(COUNTS, (0, 0))] if promise.relation == "add_remove" else [MOVED, RARE]
    results = [
        measure_loss(topdown, pairs[seed % len(pairs)], promise, size=20_000, confidence=CONFIDENCE, rng=seed)
        for seed in range(25)
    ]
    assert {result.verdict for result in results} == {"not refuted"}  # and would have shown twice the promise
