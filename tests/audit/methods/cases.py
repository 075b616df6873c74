"""What tests of methods share: counts by hand, events, and an evaluated audit."""

import time

import numpy as np
from hypothesis import strategies as st

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.events import Event, WeightRule, cell
from audit.measure.choice import Choice, Selected
from audit.measure.evaluation import evaluate
from audit.methods import Game, Gaussian, Renyi, TwoSamples, Variation

GUESSED = st.tuples(*[st.integers(0, 20)] * 3)
MANY, BINS = st.tuples(*[st.integers(0, 2000)] * 3), st.tuples(*[st.integers(0, 2000)] * 4)
CONFIDENCES = st.floats(0.01, 0.999)
ONE, BOTH = Event.at_least(0, 13), Event.at_least(0, 13, low=12)  # the sides that a rule names
WEIGHTS = Event(cell(0), WeightRule(np.array([-1.0, 0.0, 1.0]), np.array([-2.0, -0.5, 0.5, 2.0])))
PURE, TOTAL = PureDP(1), ApproxDP(0, 0.3)
CLAIMS = {Game: PURE, TwoSamples: PURE, Gaussian: GaussianDP(1), Renyi: ZCDP(0.5), Variation: TOTAL}
AUDITED = dict(
    mechanism="count",
    pair="1 person added to cell 0",
    relation="add_remove",
    unit="person",
    adjacency="verified",
    confidential=False,
    seed_entropy=42,
    provenance={},
)


def named(x, y):
    """Return counts of guesses (for x, for y, for neither) made on either database."""
    return {
        name: {"runs": sum(side), "guessed_x": side[0], "guessed_y": side[1]} for name, side in (("x", x), ("y", y))
    }


def binned(x, y):
    """Return counts of runs in each bin of a likelihood ratio."""
    return {
        name: {"runs": sum(side)} | {f"bin {k}": n for k, n in enumerate(side) if n}
        for name, side in (("x", x), ("y", y))
    }


def weighed(order=1.0, toward="y", weights=WEIGHTS.rule.weights):
    """Return an event that weighs four bins."""
    return Event(cell(0), WeightRule(WEIGHTS.rule.edges, np.asarray(weights), order, toward))


def lower(how, counts, event=BOTH, **basis):
    """Return the bound of a method on counts of an event."""
    return how.lower(counts, how.basis(event, **basis))


def audited(x, y, *, method=Game, claim=None, distance=1, confidence=0.95, event=BOTH, support=None):
    """Return the result of an audit with these counts."""
    counts = binned(x, y) if event.rule.family == "weights" else named(x, y)
    how = method(claim or CLAIMS[method], distance, confidence)
    selected = Selected("y if output[0] >= 13", "entries", counts=counts, basis=how.basis(event))
    choice = Choice((selected,), searched="thresholds on output[0]", tried=("entries",), size=2000, selection=600)
    return evaluate(time.perf_counter(), how, choice, support=support, **AUDITED)
