"""The known bugs of NistDp3, and what its experiment notices."""

from __future__ import annotations

import numpy as np

from algorithms.bugs.census import ABSENT
from algorithms.bugs.systems.nist import DomainFromData, GroupsFromData
from algorithms.nist import Groups, NistDp3
from algorithms.schema import Schema
from audit.neighbors import NeighborPair
from tests.helpers import refuses

SCHEMA = Schema({"sex": ("male", "female"), "county": ("a", "b", "c", "d")})
RECORDS = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]] * 8, np.uint8)
NEW = NeighborPair.add_record(RECORDS, [0, 3], label="the only person of a county")
KNOWN = NeighborPair.add_record(RECORDS, [0, 1], label="one more person")
BITS = Schema({"a": "xy", "b": "xy"})


def nist(groups=None, **options):
    return NistDp3(SCHEMA, groups or Groups.single(SCHEMA), 1.0, **{"rows": 5, **options})


def flipping_pair():
    """Records of two bits, and one more of them that brings their association below 0.3."""
    found = GroupsFromData(BITS, 1.0)
    records = np.array([[0, 0]] * 13 + [[1, 1]] * 13 + [[0, 1], [1, 0]] * 5)
    while len(found.groups(records)) == 1:
        last, records = records, np.vstack([records, [[0, 1]]])
    return NeighborPair.add_record(last, [0, 1], label="the record that parts two fields")


FLIP = flipping_pair()


def test_a_domain_from_the_data_shows_the_levels_that_occur():
    bug = DomainFromData(nist(Groups([["county", "sex"]])), "county")
    for data, there in ((NEW.x, [True, True, False, False]), (NEW.y, [True, True, False, True])):
        shown = bug(data, 50, np.random.default_rng(1)).reshape(50, 4, 2)
        np.testing.assert_array_equal(shown >= 0, np.broadcast_to(np.array(there)[:, None], shown.shape))
        assert shown.min() == ABSENT
    assert bug.support_masses(NEW) == (1, 1)
    assert bug.support_masses(KNOWN) == (0, 0)
    assert bug.claim == nist().claim
    refuses(ValueError, "observed must be a field of the schema, got 'state'", DomainFromData, nist(), "state")


def test_groups_from_the_data_flip_with_one_record():
    bug = GroupsFromData(BITS, 1.0, rows=3)
    assert [bug.groups(data).fields for data in (FLIP.x, FLIP.y)] == [(("a", "b"),), (("a",), ("b",))]
    assert bug(FLIP.y, 4, np.random.default_rng(2))[:, 0].tolist() == [[0, 1]] * 4
    assert bug(FLIP.x, 1, np.random.default_rng(2))[0, 0].tolist() == [0, 0]
    assert bug.support_masses(FLIP) == (1, 1)
    assert bug.support_masses(NeighborPair.add_record(FLIP.x, [0, 0])) == (0, 0)
    assert bug.claim.epsilon == 1
