"""Any audit and any estimate that a file may hold, for properties of all of them."""

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.results import verdict_of
from tests.helpers import audited, estimated

FEW = settings(max_examples=25)  # of many fields each
LOSSES = st.floats(0, math.inf)
RELATIONS = st.sampled_from(["add_remove", "replace_one"])
FEWER = st.integers(0, 2**50)
GUESSED = st.builds(lambda a, b, c: {"runs": a + b + c, "guessed_x": a, "guessed_y": b}, FEWER, FEWER, FEWER)
BINNED = st.dictionaries(st.integers(0, 300).map("bin {}".format), FEWER, max_size=4)
COUNTED = GUESSED | BINNED.map(lambda bins: {"runs": sum(bins.values())} | bins)
FAMILIES = {
    "epsilon": PureDP,
    "epsilon at a delta": lambda epsilon, relation="add_remove": ApproxDP(epsilon, 1e-6, relation),
    "rho": ZCDP,
    "mu": GaussianDP,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def audits(draw):
    relation, detectable = draw(RELATIONS), draw(LOSSES)
    claim = draw(st.sampled_from([*FAMILIES.values()]))(draw(LOSSES), relation)
    measured = claim.at(draw(LOSSES))
    order = st.fixed_dictionaries({"order": st.text(), "probability": st.floats(0, 1, exclude_min=True)})
    support = draw(st.none() | order)
    return audited(
        **{name: draw(st.text()) for name in ("mechanism", "event", "searched", "pair", "bound")},
        claim=claim,
        measured=measured,
        verdict=verdict_of(claim, measured, detectable, support is not None),
        counts={"x": draw(COUNTED), "y": draw(COUNTED)},
        relation=relation,
        unit=draw(st.sampled_from(["person", "household", "record"])),
        distance=draw(st.integers(1, 2**53 - 1)),
        adjacency=draw(st.sampled_from(["verified", "declared"])),
        confidence=draw(st.floats(0, 1, exclude_min=True, exclude_max=True)),
        ceiling=draw(LOSSES),
        detectable=detectable,
        support=support,
        seed_entropy=draw(st.none() | st.integers(0)),
        seconds=draw(st.floats(0, 1e9)),
        attack=draw(st.text()),
        tried=tuple(draw(st.lists(st.text(), max_size=3))),
        notes=tuple(draw(st.lists(st.text(), max_size=3))),
    )


@st.composite
def estimates(draw):
    points = draw(st.integers(0, 5))
    curve = {name: draw(arrays(float, points, elements=st.floats())) for name in ("at", "loss", "low", "high")}
    return estimated(**curve, value=draw(st.floats()), interval=(draw(st.floats()), draw(st.floats())))
