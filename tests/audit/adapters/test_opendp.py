"""OpenDP's measurements: their promises in our words, audited, and what is none refused."""

import sys

import numpy as np
import pytest

from audit import NeighborPair, measure_loss
from audit.adapters import opendp
from audit.claims import ZCDP, ApproxDP, PureDP
from tests.helpers import refused, refused_like

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib")

WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
COUNTS = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PAIR = NeighborPair.add_people(5, ())
SURE = 1 - 1e-6  # false alarm of each audit below: one in a million


def counting(scale=1.0):
    """A count with geometric noise, one number at a time."""
    return dp.m.make_laplace(*WHOLE, scale)


def counts(scale=1.0):
    """Counts with geometric noise on each."""
    return dp.m.make_laplace(*COUNTS, scale)


@pytest.mark.parametrize(
    ("measurement", "d_in", "options", "claim"),
    [
        (counting(), 1, {}, PureDP(1.0)),
        (counting(0.5), 2, {"relation": "replace_one"}, PureDP(4.0, "replace_one")),
        (dp.m.make_gaussian(*WHOLE, 2.0), 1, {}, ZCDP(0.125)),
        (ROWS >> dp.t.then_count() >> dp.m.then_laplace(1.0), 1, {}, PureDP(1.0)),
        (dp.m.make_randomized_response([1, 2, 3], 0.6), 1, {}, PureDP(np.log(3), "replace_one")),
    ],
)
def test_the_promise_is_the_librarys_own(measurement, d_in, options, claim):
    found = opendp.promise(measurement, d_in, **options)
    assert (type(found), found.relation) == (type(claim), claim.relation)
    assert found.budget == pytest.approx(claim.budget, rel=1e-9)


def test_a_curve_is_held_to_a_delta():
    gaussian = dp.m.make_gaussian(*WHOLE, 2.0)
    at = opendp.promise(dp.c.make_zCDP_to_approxDP(gaussian), delta=1e-6)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    assert at == opendp.promise(fixed) == ApproxDP(at.epsilon, 1e-6)
    assert 2 < at.epsilon < 3
    with refused(ValueError, "no claim says what SmoothedMaxDivergence promises: give a delta"):
        opendp.promise(dp.c.make_zCDP_to_approxDP(gaussian))
    with refused_like(ValueError, r"no claim says what Approximate\(ZeroConcentratedDivergence\) promises"):
        opendp.promise(dp.c.make_approximate(gaussian))


@pytest.mark.parametrize("entrywise", [False, True])
def test_a_sound_count_is_not_accused_and_half_the_noise_is(entrywise):
    """Both forms of the call agree on what they find; false alarm 1e-6 each. OpenDP takes 1 s for so many numbers."""
    make, size = (counts, 10_000) if entrywise else (counting, 2000)
    pair = PAIR if entrywise else NeighborPair.declared(5, 6, "add_remove")
    sound, less = (opendp.mechanism(lambda s=scale: make(s), entrywise=entrywise) for scale in (1.0, 0.5))
    assert sound.claim == PureDP(1.0)
    for mechanism, verdict in ((sound, "not refuted"), (less, "violated")):
        result = measure_loss(mechanism, pair, sound.claim, size=size, confidence=SURE, rng=1)
        assert result.verdict == verdict
        assert not result.provenance.get("seedable", False)
    assert 0.5 < result.measured.epsilon <= 2


def test_entries_of_a_vector_are_runs_of_their_own():
    mechanism = opendp.mechanism(counts, entrywise=True)
    outputs = mechanism(np.array([0, 1000]), 2000, np.random.default_rng(1))
    assert outputs.shape == (2000, 2)
    assert abs(outputs.mean(axis=0) - [0, 1000]).max() < 0.3  # 10 standard errors
    assert abs(np.corrcoef(outputs.T)[0, 1]) < 0.15  # 6 standard errors
    assert mechanism(np.array(7), 3, None).shape == (3,)


def test_a_measurement_is_run_as_it_is_or_made_anew():
    made = []

    def make():
        made.append(1)
        return counting()

    assert len(opendp.mechanism(counting())(np.array(5), 4, None)) == 4
    mechanism = opendp.mechanism(make)
    assert [len(mechanism(np.array(5), 3, None)) for _ in range(2)] == [3, 3]
    assert len(made) == 2  # once for its promise, once to run
    rows = opendp.mechanism(ROWS >> dp.t.then_count() >> dp.m.then_laplace(1.0))
    assert abs(np.mean(rows(np.arange(50), 200, None)) - 50) < 1


def test_what_is_no_noise_for_each_entry_is_refused():
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    chosen = opendp.mechanism(lambda: dp.m.make_noisy_max(*floats, dp.max_divergence(), 1.0), d_in=1.0, entrywise=True)
    with refused_like(ValueError, r"entrywise noise gives an output for each entry, 4, got \(\)"):
        chosen(np.array([1.0, 2.0]), 2, None)


def test_bad_input_is_refused_in_one_line(monkeypatch):
    for wrong in (5, lambda: 5, None):
        with refused_like(TypeError, "a measurement of OpenDP, or a function that makes one, is needed, got"):
            opendp.mechanism(wrong)
    with refused(ValueError, "the relation of SymmetricDistance is add_remove, got replace_one"):
        opendp.promise(ROWS >> dp.t.then_count() >> dp.m.then_laplace(1.0), relation="replace_one")
    monkeypatch.setitem(sys.modules, "opendp.mod", None)
    with refused(ImportError, "this adapter needs opendp: pip install opendp"):
        opendp.mechanism(counting)
