"""Whether two values are the same, and by how much they differ."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from algorithms.flaxman import GDPC
from algorithms.noise import TwoTailedGeometric
from algorithms.noise.losses import losses_of_change
from audit.claims import PureDP
from audit.replay.sameness import change_of, norms, numbers_in, same
from tests.audit.replay.cases import topdown


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (np.array([1, math.nan]), np.array([1, math.nan]), True),
        (np.array([1, 2]), np.array([[1, 2]]), False),
        (np.array(["a", "b"]), np.array(["a", "bc"]), False),
        (np.array([1, "a"], object), np.array([1, "a"], object), True),
        ({"a": (1, [2])}, {"a": (1, [2])}, True),
        ({"a": (1, [2])}, {"a": (1, [3])}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1, 2, 3], False),
        (None, None, True),
        (None, 1, False),
        ({1, 2}, {2, 1}, True),
        (GDPC(1.0), GDPC(1.0), True),
        (topdown(), topdown(), True),
        (topdown(), topdown(promise=PureDP(2.0, "replace_one")), False),
        (SimpleNamespace(equals=lambda _: True), SimpleNamespace(equals=lambda _: True), True),
    ],
)
def test_outputs_are_compared_whatever_they_are(one, other, equal):
    assert same(one, other) is equal


class Held:
    __slots__ = ("__dict__", "slot")

    def __init__(self, slot, **others):
        self.slot = slot
        vars(self).update(others)


class Listed(list):
    pass


@dataclasses.dataclass(frozen=True)
class Holder:
    array: np.ndarray


def listed(extra):
    found = Listed([1])
    found.extra = extra
    return found


def circle(value):
    found = Held(value)
    found.itself = [found]
    return found


@pytest.mark.parametrize(
    ("make", "value", "other"),
    [
        (lambda v: np.ma.array([1, 2], mask=[False, v]), True, False),
        (lambda v: pd.Series([1.0], name=v), "a", "b"),
        (lambda v: pd.DataFrame({"a": [v]}), 1, 2),
        (lambda v: pd.DataFrame({"a": [1]}, index=pd.Index([0], name=v)), "a", "b"),
        (listed, 1, 2),
        (Held, 1, 2),
        (lambda v: Held(1, other=v), 1, 2),
        (lambda v: Holder(np.array([v])), 1, 2),
        (lambda v: sparse.csr_matrix(np.array([[0, v]])), 1, 2),
        (lambda v: np.zeros(2, v), np.float32, np.float64),
        (lambda v: np.array([v]), 0.0, -0.0),
        (lambda v: np.array([1, v]), 1 + 2j, 1 - 2j),
        (lambda v: dict.fromkeys(v), "ab", "ba"),
        (circle, 1, 2),
    ],
)
def test_whatever_an_output_holds_is_compared(make, value, other):
    assert same(make(value), make(value))
    assert not same(make(value), make(other))


def test_numbers_in_an_output():
    table = pd.DataFrame({"a": [1, 2]})
    found = numbers_in({"a": [3, (4.5, "no", True)], "b": Holder(np.array([[5]])), "c": table, "d": circle(None)})
    assert found.tolist() == [3, 4.5, 5, 1, 2]
    assert numbers_in(np.array([7, "no"], object)).tolist() == [7]
    assert numbers_in(None).size == 0


def test_changes_of_large_integers():
    ends = np.array([2**63 - 1, 0]), np.array([-(2**63), 0])
    assert change_of(*ends).tolist() == [1 - 2**64, 0]
    assert norms(change_of(*ends)) == (2.0**64, 2.0**64)
    assert change_of(np.array([-(2**62)]), np.array([2**62])).tolist() == [2**63]
    assert change_of(np.array([2**60], np.uint64), np.array([2**60 + 40], np.uint64)).tolist() == [40]
    assert norms(np.full(4, 2**62)) == (2.0**64, 2.0**63)
    assert losses_of_change(TwoTailedGeometric(1.0), change_of(*ends)) is None


@pytest.mark.parametrize(
    ("one", "other", "change"),
    [
        ([2**53, 1], [2**53 + 1, 0], [1, -1]),
        ([True, False], [True, True], [0, 1]),
        ([0.5, math.nan, math.inf], [1.0, math.nan, math.inf], [0.5, 0, 0]),
        ([0.0], [math.inf], [math.inf]),
    ],
)
def test_changes(one, other, change):
    assert change_of(np.array(one), np.array(other)).tolist() == change
