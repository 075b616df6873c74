"""python-dp's algorithms, noise and partition selection: their promises in our words, audited, others refused."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from audit import NeighborPair, measure_loss
from audit.adapters import pydp
from audit.claims import ApproxDP, PureDP
from tests.helpers import refused

SURE = 1 - 1e-6  # false alarm of each audit below: one in a million


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydp", None)
    with refused(ImportError, "this adapter needs python-dp: pip install python-dp"):
        pydp.mechanism(5)


def test_what_the_library_did_not_make_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydp", ModuleType("pydp"))
    with refused(TypeError, "an algorithm, noise or a partition strategy of python-dp is needed, got 5"):
        pydp.mechanism(5)


@pytest.fixture
def library():
    pytest.importorskip("pydp")
    from pydp.algorithms import laplacian, numerical_mechanisms, partition_selection

    class Library:
        count = staticmethod(lambda epsilon=1.0: laplacian.Count(epsilon=epsilon, dtype="int"))
        mean = staticmethod(lambda: laplacian.BoundedMean(epsilon=1.0, lower_bound=0, upper_bound=1, dtype="float"))
        laplace = staticmethod(lambda: numerical_mechanisms.LaplaceMechanism(1.0, 1.0))
        selection = staticmethod(lambda: partition_selection.create_laplace_partition_strategy(1.0, 0.1, 1))

    return Library


def test_promises_are_the_librarys_own(library):
    made = (library.count(), library.mean, library.laplace, library.selection)
    assert [pydp.mechanism(one).claim for one in made] == [PureDP(1)] * 3 + [ApproxDP(1, 0.1)]
    assert pydp.mechanism(library.mean, relation="replace_one").claim == PureDP(1, "replace_one")


def test_everything_is_audited(library):
    rows = NeighborPair.add_record(np.zeros(5, int), 1)
    sound, less = pydp.mechanism(library.count), pydp.mechanism(lambda: library.count(3.0))
    assert measure_loss(sound, rows, sound.claim, size=6000, confidence=SURE, rng=1, n_jobs=2).verdict == "not refuted"
    assert measure_loss(less, rows, sound.claim, size=6000, confidence=SURE, rng=1).verdict == "violated"
    kept = pydp.mechanism(library.selection)
    users = NeighborPair.declared(1, 2, "add_remove")
    assert measure_loss(kept, users, kept.claim, size=6000, confidence=SURE, rng=1).verdict != "violated"
    noise = pydp.mechanism(library.laplace)
    assert abs(np.mean(noise(np.array(5.0), 2000, None)) - 5) < 0.3  # 9 standard errors
