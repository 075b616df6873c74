from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.attacks.words import MOST, Words
from audit.events import CellRule, Event, ThresholdRule, cell
from audit.outputs import RAISED

WORDS = st.text("abcé ", max_size=4)


def test_words_are_numbered_in_alphabetical_order():
    seen = Words.seen([np.array(["pear", "fig"]), np.array([["apple", "fig"], ["Fig", "pear"]])])
    assert seen.known == ("Fig", "apple", "fig", "pear")
    assert all(type(word) is str for word in seen.known)
    numbers = seen.number(np.array([["pear", "apple"], ["Fig", "fig"]]))
    assert numbers.tolist() == [[3, 1], [0, 2]]
    assert numbers.dtype == np.int64


@pytest.mark.parametrize("unseen", ["", "a", "bb", "grape", "zzz", "figs", "fi"])
def test_words_that_were_not_seen_have_one_number(unseen):
    seen = Words.seen([np.array(["apple", "fig"])])
    assert seen.number(np.array([unseen, "fig", unseen])).tolist() == [-1, 1, -1]


@given(st.lists(WORDS, min_size=1, max_size=30), st.lists(WORDS, min_size=1, max_size=30))
def test_every_word_has_its_own_number_and_name(first, later):
    seen = Words.seen([np.array(first)])
    assert seen.known == tuple(sorted(set(first)))
    numbers = seen.number(np.array(later)).tolist()
    assert numbers == [seen.known.index(word) if word in first else -1 for word in later]
    assert [seen.name(number) for number in numbers] == [
        repr(word) if word in first else "another word" for word in later
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


def test_a_frequent_word_is_kept_wherever_it_was_seen():
    rare = np.array([f"a{k:05d}" for k in range(2 * MOST)])
    seen = Words.seen([rare, np.full(50, "zebra")])  # the last in the alphabet, and in one batch only
    assert "zebra" in seen.known


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
