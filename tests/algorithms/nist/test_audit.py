"""The known bugs of NistDp3, and what its experiment notices."""

import numpy as np

from algorithms.bugs.census import ABSENT
from algorithms.bugs.systems.nist import DomainFromData, GroupsFromData
from algorithms.nist import Groups, NistDp3
from algorithms.schema import Schema
from audit.neighbors import NeighborPair
from tests.helpers import refuses

SCHEMA = Schema({"sex": ("male", "female"), "county": ("a", "b", "c", "d")})
RECORDS = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]] * 8, np.uint8)
NEW = NeighborPair.add_record(RECORDS, [0, 3])  # the only person of a county
BITS = Schema({"a": "xy", "b": "xy"})


# One record more brings the association of two bits below 0.3.
FLIP = NeighborPair.add_record(np.array([[0, 0], [0, 0], [1, 1], [1, 1], [0, 1]]), [0, 1])


def test_a_domain_from_the_data_shows_the_levels_that_occur():
    nist = NistDp3(SCHEMA, Groups([["county", "sex"]]), 1.0)
    bug = DomainFromData(nist, "county")
    for data, there in ((NEW.x, [True, True, False, False]), (NEW.y, [True, True, False, True])):
        shown = bug(data, 50, np.random.default_rng(1)).reshape(50, 4, 2)
        np.testing.assert_array_equal(shown >= 0, np.broadcast_to(np.array(there)[:, None], shown.shape))
        assert shown.min() == ABSENT
    assert bug.support_masses(NEW) == (1, 1)
    assert bug.support_masses(NeighborPair.add_record(RECORDS, [0, 1])) == (0, 0)
    assert bug.claim == nist.claim
    refuses(ValueError, "observed must be a field of the schema, got 'state'", DomainFromData, nist, "state")


def test_groups_from_the_data_flip_with_one_record():
    bug = GroupsFromData(BITS, 1.0, rows=3)
    assert [bug.groups(data).fields for data in (FLIP.x, FLIP.y)] == [(("a", "b"),), (("a",), ("b",))]
    assert bug(FLIP.y, 4, np.random.default_rng(2))[:, 0].tolist() == [[0, 1]] * 4
    assert bug(FLIP.x, 1, np.random.default_rng(2))[0, 0].tolist() == [0, 0]
    assert bug.support_masses(FLIP) == (1, 1)
    assert bug.support_masses(NeighborPair.add_record(FLIP.x, [0, 0])) == (0, 0)
    assert bug.claim.epsilon == 1
