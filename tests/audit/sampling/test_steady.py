"""A mechanism whose runs change from the first to the last, or which changes its data, is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from audit.claims import PureDP
from audit.measure.loss import measure_loss
from audit.mechanism import per_run
from audit.neighbors import NeighborPair
from audit.outputs import Kind
from audit.sampling.calls import Caller
from audit.sampling.checkpoint import contents
from audit.sampling.probes import probe
from tests.audit.sampling.cases import SEED
from tests.helpers import geometric, noisy, raising, refused_like

UNSTEADY = "^runs must be independent: later ones differ from the first, as if the mechanism counted them or spent a bu"
ONE_OR_NONE = NeighborPair.declared(np.array([1]), np.array([0]), "add_remove")
SURE = 1 - 1e-6


class Budget:
    """A noisy count from a library that raises once the budget of all runs together is spent."""

    def __init__(self, runs):
        self.left = runs

    def __call__(self, data, rng):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("budget exhausted")
        return int(data[0] + geometric(1.0, (), rng))


class Growing:
    """Noise that is wider from call to call."""

    runs_per_block = 100

    def __init__(self, by):
        self.scale, self.by = 1.5, by

    def __call__(self, data, size, rng):
        self.scale += self.by
        return (data[0] + self.scale * rng.laplace(size=size)).round(6)


@pytest.mark.parametrize("runs", [400, 2600, 3500, 4300, 5000, 5990])
def test_a_budget_that_is_spent_over_all_runs_is_refused(runs):
    """Runs that raise speak for the database that is run last: 1.7 was proved of a promise of 1 that is kept."""
    with refused_like(ValueError, UNSTEADY):
        measure_loss(per_run(Budget(runs)), ONE_OR_NONE, PureDP(1.0), size=6000, confidence=SURE, rng=1)


def test_a_budget_that_lasts_is_not():
    result = measure_loss(per_run(Budget(10**6)), ONE_OR_NONE, PureDP(1.0), size=2000, confidence=SURE, rng=1)
    assert result.verdict == "not refuted"
    assert result.provenance["parameters"].get("seedable", True)


@pytest.mark.parametrize("by", [0.1, 1.0])
def test_noise_that_grows_is_refused(by):
    with refused_like(ValueError, UNSTEADY):
        measure_loss(Growing(by), ONE_OR_NONE, PureDP(1.0), size=6000, confidence=SURE, rng=1)


def callers(mechanism):
    return [Caller(mechanism, data, Kind(())) for data in (0, 1)]


def test_what_a_seed_does_not_repeat_is_compared_by_its_law():
    """A sound mechanism with entropy of its own, one that rarely uses it, and one that raises now and then."""
    own = np.random.default_rng(3)

    def rarely(data, size, rng):
        return data + np.where(rng.random(size) < 0.02, own.laplace(size=size), rng.laplace(size=size))

    mechanisms = {
        "own": lambda data, size, rng: data + own.laplace(size=size),
        "rarely": rarely,
        "words": lambda data, size, rng: [f"about {one:.0f}" for one in data + own.laplace(size=size)],
        "raising": raising(0.05),
        "seeded": noisy,
    }
    for mechanism in mechanisms.values():
        for seed in range(10):
            root = np.random.SeedSequence(seed)
            probe(callers(mechanism), 4000, root).check_steady()
    probes = probe(callers(noisy), 4000, SEED)
    replace(probes, callers=callers(mechanisms["own"])).check_steady()  # the same law
    with refused_like(ValueError, UNSTEADY):
        replace(probes, callers=callers(lambda data, size, rng: 3 * own.laplace(size=size))).check_steady()


ROWS = [{"a": number} for number in range(5)]


def seldom(rows, rng):
    """On the larger database alone, so that both become the same, and no loss is left."""
    if len(rows) > 5 and rng.random() < 0.002:  # hardly ever among the first runs
        rows.pop()
    return len(rows) + rng.laplace()


def dropping(frame, rng):
    if len(frame) > 5 and rng.random() < 0.3:
        frame.drop(index=frame.index[-1], inplace=True)
    return len(frame) + rng.laplace()


@pytest.mark.parametrize(("function", "table"), [(seldom, ROWS), (dropping, pd.DataFrame(ROWS))], ids=["list", "frame"])
def test_a_mechanism_that_changes_its_data_is_refused(function, table):
    with pytest.raises(ValueError, match=r"^a mechanism must not change the data that it is given: copy them before$"):
        measure_loss(per_run(function), NeighborPair.add_row(table, {"a": 1}), PureDP(1), size=4000, rng=1)


def test_a_mechanism_that_only_reads_is_not():
    table = pd.DataFrame(ROWS)
    for function, data in (
        (lambda rows, rng: len(rows) + rng.laplace(), ROWS),
        (lambda f, rng: f.a.sum() + rng.laplace(), table),
    ):
        measure_loss(per_run(function), NeighborPair.add_row(data, {"a": 1}), PureDP(1), size=400, rng=1)
    held = contents(table, np.arange(3), {"a": [1]})
    assert held == contents(table.copy(), np.arange(3), {"a": [1]}) != contents(table, np.arange(3), {"a": [2]})
