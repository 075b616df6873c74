"""How often a search over sound pairs accuses one of them."""

import pytest

from audit.claims import PureDP
from audit.measure.search import search_loss
from audit.methods import Game
from audit.neighbors import NeighborPair
from tests.audit.sampling.cases import geometric
from tests.helpers import most

TWENTY = [NeighborPair.add_people([5, other], 0) for other in range(20)]  # equally bad, all of them


@pytest.mark.slow
def test_each_of_twenty_pairs_at_the_confidence_of_the_whole_is_a_mistake():
    """1,000 searches at 95%; row 1 of the page of reliability has such searches at five confidences."""
    options = {"keep": 20, "size": 4000, "attack": "entries"}
    searches = [search_loss(geometric, TWENTY, PureDP(1.0), rng=k, **options) for k in range(1000)]
    wrong = [any(result.measured.budget > 1.0 for result in search.results) for search in searches]
    assert sum(wrong) <= most(1000)
    assert {len(search.results) for search in searches} == {20}
    alone = [
        max(Game(PureDP(1.0), 1, 0.95).lower(result.counts, result.basis) for result in search.results)
        for search in searches
    ]
    assert sum(bound > 1.0 for bound in alone) > most(1000)
