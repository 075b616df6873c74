from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.attacks import words
from audit.attacks.words import MOST, Words, learn_words
from audit.claims import PureDP
from audit.events import CellRule, Event, ThresholdRule, cell
from audit.loss import measure_loss
from audit.outputs import RAISED
from audit.sampling import blocks
from tests.audit.sampling.cases import THREE, given_runs, runs_of

WORDS = st.text("abcé ", max_size=4)


@given(*[st.lists(WORDS, min_size=1, max_size=30)] * 3)
def test_every_word_has_its_own_number_in_alphabetical_order_and_name(first, second, later):
    seen = Words.seen([np.array(first), np.array([second])])
    assert seen.known == tuple(sorted({*first, *second}))
    assert all(type(word) is str for word in seen.known)
    numbers = seen.number(np.array([later]))
    assert numbers.dtype == np.int64
    assert numbers.tolist() == [[seen.known.index(word) if word in seen.known else -1 for word in later]]
    assert [seen.name(number) for number in numbers[0].tolist()] == [
        repr(word) if word in seen.known else "another word" for word in later
    ]


def test_the_most_frequent_of_too_many_words_are_told_apart():
    names = np.array([f"word {k:05d}" for k in range(MOST + 900)])
    often, once = names[::10], np.setdiff1d(names, names[::10])
    batches = [names, often, np.random.default_rng(1).permutation(often)]
    seen = Words.seen(batches)
    assert len(seen.known) == MOST
    assert set(often.tolist()) <= set(seen.known)
    assert list(seen.known) == sorted(seen.known)
    assert (seen.number(often) >= 0).all()
    assert (seen.number(once) < 0).sum() == 900
    assert Words.seen([names[:MOST]]).known == tuple(names[:MOST].tolist())  # negative control: none too many


def test_names_are_what_events_show():
    seen = Words(("maybe", "no", "yes"))
    assert [seen.name(number) for number in (0.0, 2.0, -1.0, 3.0, np.inf, -np.inf)] == [
        *("'maybe'", "'yes'"),
        *["another word"] * 4,
    ]
    event = Event(cell(1), CellRule(np.array([2.0]), np.array([-1.0])), seen.name)
    assert str(event) == "y if output[1] in {'yes'}, x if output[1] in {another word}"
    assert str(Event(cell(), ThresholdRule(0, 1), seen.name)) == "y if output >= 'no', x if output <= 'maybe'"


def test_batches_without_words_are_of_exceptions():
    seen = Words.seen([np.array(["yes", "no", RAISED]), np.full(3, -np.inf)])
    assert seen.known == (RAISED, "no", "yes")
    assert seen.number(np.full((2, 2), -np.inf)).tolist() == [[0, 0], [0, 0]]
    assert Words(("no", "yes")).number(np.full(2, -np.inf)).tolist() == [-1, -1]


def test_words_are_learned_from_a_tenth_of_the_runs():
    def poll(data, size, rng):
        return rng.choice(["no", "yes", f"only {data[1]}"], size)

    told = []
    categories, spent = learn_words(runs_of(poll, shape=(), told=told), 1000)
    assert categories.known == ("no", "only 40", "only 41", "yes")
    assert spent == sum(told) == 100
    assert learn_words(runs_of(poll, shape=()), 8)[1] == 2
    words, spent = learn_words(given_runs([["a", "b"]] * 50, [["b", "c"]] * 50), 100)
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
    result = measure_loss(many_words, THREE, PureDP(1), size=60_000, rng=1)
    assert result.verdict == "violated"
    # Learned from 1,800 runs; of 21,000 on y 420 are zebras, which shows logit(0.05 ** (1 / 420)) = 4.9.
    assert result.measured.epsilon > 4
    assert "'zebra'" in result.event


@pytest.mark.parametrize("size", [27, 40])
def test_words_of_few_runs_are_audited(size):
    result = measure_loss(lambda data, n, rng: rng.choice(["a", "b"], (n, 2)), THREE, PureDP(1), size=size, rng=1)
    assert result.verdict == "no power"
