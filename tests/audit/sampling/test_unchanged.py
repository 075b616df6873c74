"""A mechanism that changes its data is refused: later runs would be on other databases than those of the pair."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from audit.claims import PureDP
from audit.measure.loss import measure_loss
from audit.mechanism import per_run
from audit.neighbors import NeighborPair
from audit.sampling.checkpoint import contents

ROWS = [{"a": number} for number in range(5)]


def popping(rows, rng):
    """On the larger database alone, so that both become the same, and no loss is left."""
    if len(rows) > 5 and rng.random() < 0.3:
        rows.pop()
    return len(rows) + rng.laplace()


def seldom(rows, rng):
    if len(rows) > 5 and rng.random() < 0.002:  # hardly ever among the first runs
        rows.pop()
    return len(rows) + rng.laplace()


def dropping(frame, rng):
    if len(frame) > 5 and rng.random() < 0.3:
        frame.drop(index=frame.index[-1], inplace=True)
    return len(frame) + rng.laplace()


@pytest.mark.parametrize(
    ("function", "table"),
    [(popping, ROWS), (seldom, ROWS), (dropping, pd.DataFrame(ROWS))],
    ids=["list", "late", "frame"],
)
def test_it_is_refused(function, table):
    with pytest.raises(ValueError, match=r"^a mechanism must not change the data that it is given: copy them before$"):
        measure_loss(per_run(function), NeighborPair.add_row(table, {"a": 1}), PureDP(1), size=4000, rng=1)


def test_what_only_reads_is_not():
    table = pd.DataFrame(ROWS)
    for function, data in (
        (lambda rows, rng: len(rows) + rng.laplace(), ROWS),
        (lambda f, rng: f.a.sum() + rng.laplace(), table),
    ):
        measure_loss(per_run(function), NeighborPair.add_row(data, {"a": 1}), PureDP(1), size=400, rng=1)
    held = contents(table, np.arange(3), {"a": [1]})
    assert held == contents(table.copy(), np.arange(3), {"a": [1]}) != contents(table, np.arange(3), {"a": [2]})
