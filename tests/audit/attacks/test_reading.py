"""Outputs that are not arrays of numbers: their columns, the words in them, and what was never seen."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.attacks import reading
from audit.attacks.protocol import Attack, candidate_statistics
from audit.attacks.reading import COLUMNS, FEW, MANY, learn
from audit.claims import PureDP
from audit.events import CellRule, Event, ThresholdRule, cell
from audit.measure.loss import measure_loss
from audit.outputs import Kind, read_outputs
from audit.sampling.runs import GivenRuns
from audit.values import ABSENT, ANOTHER, NAN, NOTHING, NUMBER, RAISED, RAISED_WORD, WORD
from tests.audit.sampling.cases import ROOT, THREE, given_runs, runs_of
from tests.audit.test_outputs import NESTED
from tests.helpers import BrokenError, refused_like

CHOOSING = 10_000


def texts(*outputs):
    """Outputs as they are written; an exception is a run that raised."""
    read = [RAISED_WORD if one is BrokenError else read_outputs([one], Kind(None))[0] for one in outputs]
    return np.array(read, object)


def learned(*outputs, inside=True):
    """What there is to read of some outputs, all of which selection sees."""
    given = np.tile(texts(*outputs), 2)
    runs = GivenRuns(THREE, ROOT, Kind(None), (given, given), [np.arange(len(given))] * 2)
    return learn(runs, 20 * len(given), inside=inside)[0]


def columns_of(found, *outputs):
    """The scores of outputs by the names of their columns."""
    scores = found(texts(*outputs))
    assert scores.shape == (len(outputs), len(found.columns))
    names = [column.name + ("" if column.words is None else " in words") for column in found.columns]
    return dict(zip(names, scores.T.tolist(), strict=True))


# Columns


def test_a_word_has_its_own_number_in_alphabetical_order():
    found = learned("yes", "no", "perhaps")
    (column,) = found.columns
    assert column.words == ("no", "perhaps", "yes")
    assert columns_of(found, "no", "yes", "never", BrokenError) == {"output in words": [0, 2, ANOTHER, RAISED]}
    assert [column.in_words(score) for score in (0.0, 2.0, ANOTHER, RAISED, 3.0)] == [
        *("'no'", "'yes'", "(another word)", "(raised an exception)", "3")
    ]


@pytest.mark.parametrize(
    ("outputs", "later", "columns"),
    [
        (
            [("a", 1.5), ("b", None), (2, math.nan)],
            [("b", 7.0), (2.0, None), ("c", math.nan), BrokenError],
            {
                "output[0]": [WORD, 2, WORD, RAISED],
                "output[0] in words": [1, NUMBER, ANOTHER, RAISED],
                "output[1]": [7, NOTHING, NAN, RAISED],
            },
        ),
        (
            [{"a": 1, "b": 2}, {"b": 3}, {1: 4, "a": 0}],  # absence of a key is a value
            [{"a": 5}, {}, {"1": 6}, BrokenError],
            {
                "number of keys of output": [1, 0, 1, RAISED],
                'output["a"]': [5, ABSENT, ABSENT, RAISED],
                'output["b"]': [ABSENT, ABSENT, ABSENT, RAISED],
                "output[1]": [ABSENT, ABSENT, ABSENT, RAISED],
            },
        ),
        (
            [{"total": [1, {"of": "a"}]}, {"total": [2, {"of": "b"}]}],
            [{"total": [5, {"of": "b"}]}],
            {
                "number of keys of output": [1],
                'output["total"][0]': [5],
                'number of keys of output["total"][1]': [1],
                'output["total"][1]["of"] in words': [1],
            },
        ),
        (
            [1, 2.0, True, np.float64(3), np.float64(4)],
            [7, False, 2.5, np.float64(1), "a", BrokenError],
            {
                "output": [7, 0, 2.5, 1, WORD, RAISED],
                "type of output in words": [3, 0, 1, 2, ANOTHER, RAISED],  # bool, float, float64, int
            },
        ),
    ],
    ids=["rows", "keys", "nested", "types"],
)
def test_columns_are_told_apart_and_so_are_words_and_numbers(outputs, later, columns):
    assert columns_of(learned(*outputs), *later) == columns


@pytest.mark.parametrize(
    "keys", [[("a", "x"), ("b", 1)], [frozenset("ab"), frozenset("b")], [(("a", 1), "x"), math.nan]]
)
def test_keys_of_any_kind_have_columns_and_an_order(keys):
    """Every table of counts by two attributes, without its empty cells."""
    one, other = keys
    first = columns_of(learned({one: 1, other: 2}, {other: 3}), {one: 5, other: 6}, {one: 7}, {})
    found = sorted(scores for name, scores in first.items() if name.startswith("output["))
    assert found == [[5, 7, ABSENT], [6, ABSENT, ABSENT]]
    assert "order of keys of output in words" not in first
    both = columns_of(learned({one: 1, other: 2}, {other: 3, one: 1}), {one: 5, other: 6}, {other: 7, one: 1})
    assert sorted(both["order of keys of output in words"]) == [0, 1]


def test_zeros_of_both_signs_have_a_column_and_are_one_value():
    zeros = columns_of(learned([0.0], [-0.0], [1.0]), [-0.0], [0.0], [5.0], [0])
    assert zeros["sign of zero of output[0] in words"] == [0, 1, ABSENT, ABSENT]
    assert not np.signbit(zeros["output[0]"]).any()  # one of equal values stands for all: no sign of a zero hangs on it


def test_lists_of_varying_length_have_a_length_and_hold_words():
    found = learned(["a", "b"], ["b", "b", "b"], [])
    first = columns_of(found, ["b", "a", "b"], [], ["c"], BrokenError)
    assert first["length of output"] == [3, 0, 1, RAISED]
    assert first["'b' within output"] == [2, ABSENT, ABSENT, RAISED]
    assert first["'a' within output"] == [1, ABSENT, ABSENT, RAISED]
    assert first["output[1] in words"] == [ANOTHER, ABSENT, ABSENT, RAISED]
    assert "output[2] in words" in first


@settings(max_examples=20)
@given(st.lists(NESTED, min_size=1, max_size=5), st.lists(NESTED, min_size=1, max_size=5))
def test_every_output_is_read_by_itself(first, later):
    """Whatever selection saw: a number for each column, none of them NaN, the same alone as beside others."""
    found = learned(*first)
    together = found(texts(*later))
    assert not np.isnan(together).any()
    np.testing.assert_array_equal(together, np.concatenate([found(texts(one)) for one in later]))
    new = found.new(texts(*later))
    np.testing.assert_array_equal(new, np.concatenate([found.new(texts(one)) for one in later]))
    assert found.new(texts(*first)).tolist() == [0] * len(first)  # nothing of what was seen is new
    assert set(new.tolist()) <= {0.0, 1.0}


def test_the_most_frequent_of_too_many_words_are_told_apart():
    names = [f"{k:05d} word" for k in range(COLUMNS + 900)]
    often = names[::10]
    column = reading._words("output", "output", str, reading.Counter([*names, *often, *often]))
    assert len(column.words) == COLUMNS
    assert set(often) <= set(column.words)
    assert list(column.words) == sorted(column.words)
    assert (column.scores(names) == ANOTHER).sum() == 900


# Types, signs of zeros and the order of keys


def names_of(*outputs):
    return [column.name for column in learned(*outputs).columns]


def test_what_never_varies_or_shows_in_values_has_no_column():
    assert names_of((1, "a"), (2, "b")) == ["output[0]", "output[1]"]
    assert names_of([1], [None], [math.nan]) == ["output[0]"]  # None and NaN are values of their own
    assert names_of(1, "a", None) == ["output", "output"]
    assert names_of(0.0, 1.5) == names_of(-0.0, 1.5) == ["output"]  # one kind of zero
    sparse = names_of({"a": 1, "c": 1}, {"a": 1, "b": 1}, {"b": 1, "c": 1}, {"c": 1})  # parts of one order
    assert not any(name.startswith("order") for name in sparse)


# Inside words


def test_what_is_inside_words_of_many_values_is_looked_at():
    words = [f"a{number}:{number % 7}.5e2 -> {'xy'[number % 2]}" for number in range(MANY + 1)]
    found = learned(*words)
    ends = [
        f"{end} {n} of output" for n in ("letter", "2 letters", "4 letters", "8 letters") for end in ("first", "last")
    ]
    numbers, around = [f"number {place} in output" for place in (1, 2)], "text around the numbers of output"
    assert [column.name for column in found.columns] == ["output", *numbers, "length of output", around, *ends]
    assert found.n_parts == 1
    first = columns_of(found, "a12:3.5e2 -> y", "b", 7)
    assert first["number 1 in output"] == [12, ABSENT, NUMBER]
    assert first["number 2 in output"] == [350, ABSENT, NUMBER]
    assert columns_of(found, "a1,234:0 x")["number 1 in output"] == [1234]
    assert first["length of output"] == [14, 1, NUMBER]
    assert first[f"{around} in words"] == [1, ANOTHER, NUMBER]
    assert first["last letter of output in words"] == [1, ANOTHER, NUMBER]
    assert first["first letter of output in words"] == [0, ANOTHER, NUMBER]
    fewer = ["output", *numbers, "length of output", around]
    assert [column.name for column in learned(*words[:MANY]).columns] == fewer
    few = learned(*words[:FEW])  # negative control: so few are words themselves
    assert len(few.columns) == few.n_parts == 1
    assert len(learned(*words, inside=False).columns) == 1


def test_of_words_of_as_many_values_the_first_are_looked_into():
    """Not those that a set has first, which are others in every process."""
    found = reading._learned([{f"part {k}": "word"} for k in range(12)], inside=True)
    inside = [column.source for column in found.columns[found.n_parts :]]
    assert list(dict.fromkeys(inside)) == [f"part {k}" for k in range(reading.LOOKED_INTO)]


def test_one_column_alone_is_read_as_among_all():
    first = [{"a": 1, "b": "x"}, {"a": 2.5, "b": None}, {"c": [1, "y", True]}, {"a": math.nan, "b": ""}, BrokenError]
    found = learned(*first)
    every = found(texts(*first))
    for place in range(len(found.columns)):
        alone = found(texts(*first), only=place)
        assert alone[:, place].tolist() == every[:, place].tolist()
        assert not np.delete(alone, place, axis=1).any()


def test_a_run_that_is_unlike_all_that_were_seen_is_new():
    found = learned("count 12 of area a", "count 7 of area b")
    later = ("count 99999 of area a", "count 1 of area c", "count 1.5e3 of area b", 3, BrokenError)
    assert found.new(texts(*later)).tolist() == [0, 1, 0, 1, 0]
    rows = learned(("a", 1), ("b", 2))
    assert rows.new(texts(("a", 9), ("c", 1), ("a", 1, 5), {"x": 1})).tolist() == [0, 1, 1, 1]
    areas = learned(("area 1", 1), ("area 2", 2))  # of a list that is always as long, columns say everything
    assert areas.new(texts(("area 9", 1), ("place 1", 1), ("area 1", 1, "area 9"))).tolist() == [0, 1, 1]


# Runs that teach


def test_columns_are_learned_from_a_tenth_of_the_runs():
    def poll(data, size, rng):
        return rng.choice(["no", "yes", f"only {data[1]}"], size)

    progress = []
    found, spent = learn(runs_of(poll, shape=None, progress=progress), 1000, inside=True)
    assert found.columns[0].words == ("no", "only 40", "only 41", "yes")
    assert spent == sum(progress) == 101  # the first says how long texts are
    assert learn(runs_of(poll, shape=None), 8, inside=True)[1] == 3
    found, spent = learn(given_runs([["a", "b"]] * 50, [["b", "c"]] * 50), 100, inside=True)
    assert ([column.words for column in found.columns], spent) == ([("a", "b"), ("b", "c")], 11)


def test_no_more_is_learned_than_memory_holds(monkeypatch):
    monkeypatch.setattr(reading, "HELD", 640)
    runs = runs_of(lambda data, size, rng: ["a" * 30] * size, shape=None)
    assert learn(runs, CHOOSING, inside=True)[1] == 21  # of 32 letters, in quotes
    monkeypatch.setattr(reading, "BLOCK", 300)
    with refused_like(ValueError, "^outputs must be written in at most 30 letters each, got 32$"):
        learn(runs, CHOOSING, inside=True)


# What candidates are called, and which attack found them


def test_events_are_told_in_the_words_of_the_outputs():
    runs = runs_of(lambda data, size, rng: [(one, 1.5) for one in rng.choice(["no", "yes"], size)], shape=None)
    found = candidate_statistics(runs, Attack.named("entries"), 3000)
    assert found.reading is not None
    place = [column.words is not None for column in found.reading.columns].index(True)
    event = found.counted(Event(cell(place), CellRule(np.array([1.0]), np.array([ANOTHER]))))
    assert str(event) == "y if output[0] in {'yes'}, x if output[0] in {(another word)}"
    assert event.guess(texts(("yes", 2), ("no", 2), ("never", 1))).tolist() == [1, 0, -1]
    threshold = found.counted(Event(cell(place), ThresholdRule(0.0, 1.0)))
    assert str(threshold) == "y if output[0] >= 'yes', x if output[0] <= 'no'"


NAMES = ["Zürich", "ill=no", 2020]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda values: pd.DataFrame(values, columns=NAMES), 'output["ill=no"]'),
        (
            lambda values: pd.DataFrame(values, columns=pd.MultiIndex.from_product([["a"], NAMES])),
            'output[["a", "ill=no"]]',
        ),
        (lambda values: [pd.DataFrame([row, row], columns=NAMES) for row in values], 'output["ill=no"][0]'),
    ],
    ids=["pandas", "levels", "tables"],
)
def test_columns_have_their_names_in_events(make, name):
    def mechanism(data, size, rng):
        return make(rng.laplace([0, 4 * (data[1] - 40), 0], size=(size, 3)).round(3))

    result = measure_loss(mechanism, THREE, PureDP(1.0), attack="entries", size=300, rng=1)
    assert result.event.startswith(f"y if {name} >= ")
    assert "output[1" not in result.searched
