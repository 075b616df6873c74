"""diffprivlib's mechanisms and tools: their promises in our words, audited, and what is none refused."""

import sys
from functools import partial
from types import ModuleType

import numpy as np
import pytest

from audit import NeighborPair, measure_loss
from audit.adapters import diffprivlib
from audit.claims import ApproxDP, PureDP
from tests.helpers import refused, refused_like

SURE = 1 - 1e-6  # false alarm of each audit below: one in a million
PAIR = NeighborPair.declared(0, 1, "add_remove")


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    for name in ("diffprivlib", "diffprivlib.mechanisms", "diffprivlib.tools"):
        monkeypatch.setitem(sys.modules, name, None)
    for ask in (partial(diffprivlib.mechanism, None), partial(diffprivlib.tool, np.mean, epsilon=1.0)):
        with refused(ImportError, "this adapter needs diffprivlib: pip install diffprivlib"):
            ask()


def test_a_random_state_is_refused(monkeypatch):
    for name in ("diffprivlib", "diffprivlib.tools"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with refused(ValueError, "random_state must be None, since every process would repeat it, got 1"):
        diffprivlib.tool(np.mean, epsilon=1.0, random_state=1)


@pytest.fixture
def library():
    return pytest.importorskip("diffprivlib")


def test_promises_are_the_librarys_own(library):
    of = library.mechanisms
    assert diffprivlib.mechanism(partial(of.Geometric, epsilon=0.5)).claim == PureDP(0.5)
    uniform = diffprivlib.mechanism(of.Uniform(delta=0.1, sensitivity=1), relation="replace_one")
    assert uniform.claim == ApproxDP(0, 0.1, "replace_one")
    tools = {name: diffprivlib.tool(getattr(library.tools, name), epsilon=1.0) for name in ("mean", "histogram")}
    assert [tools[name].claim for name in tools] == [PureDP(1, "replace_one"), PureDP(1, "add_remove")]


def test_mechanisms_and_tools_are_audited(library):
    sound, less = (diffprivlib.mechanism(partial(library.mechanisms.Geometric, epsilon=e)) for e in (1.0, 3.0))
    assert measure_loss(sound, PAIR, sound.claim, size=6000, confidence=SURE, rng=1, n_jobs=2).verdict == "not refuted"
    assert measure_loss(less, PAIR, sound.claim, size=6000, confidence=SURE, rng=1).verdict == "violated"
    uniform = diffprivlib.mechanism(partial(library.mechanisms.Uniform, delta=0.1, sensitivity=1))
    result = measure_loss(uniform, NeighborPair.declared(0.0, 1.0, "add_remove"), uniform.claim, size=20_000, rng=1)
    assert 0.05 < result.measured.delta <= 0.1  # of 0.1: false alarm 0.05, and this seed gives none
    rows = NeighborPair.declared(np.zeros(5), np.array([0.0, 0, 0, 0, 1]), "replace_one", unit="record")
    mean = diffprivlib.tool(library.tools.mean, epsilon=1.0, bounds=(0, 1))
    assert measure_loss(mean, rows, mean.claim, size=1000, confidence=SURE, rng=1).verdict != "violated"
    histogram = diffprivlib.tool(library.tools.histogram, epsilon=1.0, bins=2, range=(0, 1))
    assert np.shape(histogram(np.zeros(5), 3, None)) == (3, 5)  # two counts, three edges
    choice = diffprivlib.mechanism(partial(library.mechanisms.Exponential, epsilon=1.0, sensitivity=1, utility=[0, 9]))
    assert set(choice(None, 50, None)) <= {0, 1}


def test_bad_input_is_refused_in_one_line(library):
    with refused_like(TypeError, "a mechanism of diffprivlib, or a function that makes one, is needed, got 5"):
        diffprivlib.mechanism(5)
    with refused(ValueError, "random_state must be None, since every process would repeat it, got 3"):
        diffprivlib.mechanism(library.mechanisms.Geometric(epsilon=1.0, random_state=3))
