"""How often a search over sound pairs accuses one of them."""

from __future__ import annotations

import pytest

from audit.bounds.game import guessing_game_lower
from audit.claims import PureDP
from audit.search import search_loss
from tests.audit.sampling.cases import PAIRS, STEP, geometric

MISSES = 23  # of 200 searches at 95%: a valid family misses more often with probability below 1e-4


def missed(searches, truth):
    return sum(any(result.measured.budget > truth for result in search.results) for search in searches)


@pytest.mark.slow
def test_many_sound_pairs_accuse_nobody():
    """200 searches of six pairs at the boundary, and the mistake: each pair at the confidence of the whole."""
    searches = [search_loss(geometric, PAIRS, PureDP(1.0), keep=6, size=2400, event=STEP, rng=k) for k in range(200)]
    assert missed(searches, 1.0) <= MISSES
    uncorrected = 0
    for search in searches:
        numbers = []
        for result in search.results:
            right = result.counts["x"]["guessed_x"] + result.counts["y"]["guessed_y"]
            wrong = result.counts["x"]["guessed_y"] + result.counts["y"]["guessed_x"]
            numbers.append(float(guessing_game_lower(right, right + wrong, confidence=0.95)))
        uncorrected += max(numbers) > 1.0
    assert uncorrected > MISSES


@pytest.mark.slow
@pytest.mark.parametrize("keep", [1, 3])
def test_the_first_look_costs_no_confidence(keep):
    """Pairs chosen as the worst looking of six, by runs of their own."""
    searches = [search_loss(geometric, PAIRS, PureDP(1.0), keep=keep, size=4000, event=STEP, rng=k) for k in range(200)]
    assert missed(searches, 1.0) <= MISSES
