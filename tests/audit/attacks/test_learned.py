from __future__ import annotations

import numpy as np
import pytest

from audit.attacks import words
from audit.attacks.words import learn_words
from audit.claims import PureDP
from audit.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.sampling import blocks
from audit.sampling.runs import GivenRuns, MechanismRuns
from tests.helpers import noisy

SEED = np.random.SeedSequence(2021)


PAIR = NeighborPair.add_people([30, 40, 50], cell=1)


def runs_of(mechanism=noisy, pair=PAIR, shape=(3,), *, root=SEED, told=None):
    return MechanismRuns(mechanism, pair, shape, root, 1, (told if told is not None else []).append)


def given(x, y, pair=PAIR):
    return GivenRuns((np.asarray(x), np.asarray(y)), pair, SEED)


def test_words_are_learned_from_a_tenth_of_the_runs():
    def poll(data, size, rng):
        return rng.choice(["no", "yes", f"only {data[1]}"], size)

    told = []
    categories, spent = learn_words(runs_of(poll, shape=(), told=told), 1000)
    assert categories.known == ("no", "only 40", "only 41", "yes")
    assert spent == sum(told) == 100
    assert learn_words(runs_of(poll, shape=()), 8)[1] == 2
    words, spent = learn_words(given([["a", "b"]] * 50, [["b", "c"]] * 50), 100)
    assert (words.known, spent) == (("a", "b", "c"), 10)


def test_no_more_words_are_learned_than_memory_holds(monkeypatch):
    monkeypatch.setattr(words, "HELD", 600)
    _, spent = learn_words(runs_of(lambda data, size, rng: rng.choice(["a", "b"], (size, 30)), shape=(30,)), 10_000)
    assert spent == 20


@pytest.mark.parametrize("cells", [10, 40])
def test_blocks_of_the_same_few_words_are_no_sign_of_a_shared_stream(cells, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS", 20 * cells)
    letters = np.array(list("abcdefghijklmnopqrst"))
    runs = runs_of(lambda data, size, rng: rng.choice(letters, (size, cells)), shape=(cells,))
    assert learn_words(runs, 1000)[0].known == tuple(letters.tolist())  # each block holds all 20


def many_words(data, size, rng):
    """One of a million words; on `y` now and then the last in the alphabet."""
    words = np.char.add("w", rng.integers(0, 10**6, size).astype(str))
    return np.where((rng.random(size) < 0.02) & (data[1] == 41), "zebra", words)


def test_a_word_that_gives_one_database_away_is_found_among_a_million():
    result = measure_loss(many_words, PAIR, PureDP(1), size=60_000, rng=1)
    assert result.verdict == "violated"
    # Learned from 1,800 runs; of 21,000 on y 420 are zebras, which shows logit(0.05 ** (1 / 420)) = 4.9.
    assert result.measured.epsilon > 4
    assert "'zebra'" in result.event


@pytest.mark.parametrize("size", [27, 40])
def test_words_of_few_runs_are_audited(size):
    result = measure_loss(lambda data, n, rng: rng.choice(["a", "b"], (n, 2)), PAIR, PureDP(1), size=size, rng=1)
    assert result.verdict == "no power"
