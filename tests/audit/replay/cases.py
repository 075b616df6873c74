"""Mechanisms, databases and promises that the tests of replays share."""

import numpy as np

from algorithms.hierarchy import Hierarchy
from algorithms.nist.groups import Groups
from algorithms.nist.mechanism import NistDp3
from algorithms.noise import Laplace, add_noise
from algorithms.ons.tables import Table
from algorithms.ons.top_down import OnsTopDown
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from audit.claims import ZCDP, PureDP
from audit.neighbors import NeighborPair
from audit.replay.replaying import timing

TREE = Hierarchy.regular(3, 2)
SCHEMA = Schema({"sex": ("female", "male"), "age": ("minor", "adult")})
PEOPLE = 10 + np.arange(36).reshape(9, 4) % 7
ADDED = NeighborPair.add_people([50, 3, 7], 0)
PURE, CONCENTRATED = PureDP(1.0, "replace_one"), ZCDP(0.5, "replace_one")
MOVED = NeighborPair.move_people(PEOPLE, (0, 0), (8, 3))
FIELDS = Schema({"sex": ("male", "female"), "age": ("young", "old"), "county": ("a", "b", "c")})
PAIRED = Groups([["sex", "age"], ["county"]])
RECORDS = NeighborPair.add_record([[0, 1, 0]] * 100 + [[1, 0, 1]] * 50, [1, 1, 2])


def nist(**options):
    return NistDp3(FIELDS, PAIRED, 1.0, **options)


def ons(**options):
    levels = [Table(0, "total"), Table(1, "sex"), Table(2, "detailed")]
    return OnsTopDown(TREE, SCHEMA, 1.0, levels, ["1/4", "1/4", "1/2"], **options)


def topdown(kind=TopDown, promise=PURE, **options):
    budget = Budget(promise, ["1/3"] * 3, [{"detailed": "1/2", "sex": "1/2"}] * 3)
    return kind(SCHEMA, TREE, budget, **options)


def kinds(found):
    return [violation.kind for violation in found.violations]


def sum_of(law=None, *, query="sum", sensitivity=None, of=np.sum, claim=None):
    """A mechanism that releases one noisy number."""

    def mechanism(data, size, rng):
        return add_noise(of(data), law or Laplace(1.0), size, rng, query=query, sensitivity=sensitivity)

    mechanism.claim = claim
    return mechanism


def played(take, size=200, games=1):
    return [timing(take, size, np.random.default_rng(seed)) for seed in range(games)]
