"""Events that the user names: the words of reports are read as what they describe."""

import numpy as np
import pytest

from audit.cli.inputs.events import parse_event
from audit.values import NAN, RAISED
from audit.written import as_given, written
from tests.helpers import refuses


@pytest.mark.parametrize(
    "words",
    [
        "y if output >= 120",
        "x if output[3] <= -0.5",
        "y if output[0] >= 121, x if output[0] <= 120",
        "x if output[1, 2] >= inf, y if output[1, 2] <= 1000",
        "y if output in {1, 5..9, 11}, x if output in {NaN, 2}",
        'y if output["a b"] in {"it\'s", \'no, x\'}',
    ],
)
def test_the_words_of_a_report_name_its_event(words):
    assert str(parse_event(words)) == words
    side, _, rest = words.partition(" if ")
    if side == "y" and ", x if" not in rest:
        assert str(parse_event(f" {rest} ")) == words


def test_what_an_event_guesses():
    values = np.array([[0, 3], [0, 4], [0, 5], [0, NAN]])
    assert parse_event("output[1] >= 5, x if output[1] <= 3").guess(values).tolist() == [-1, 0, 1, -1]
    assert parse_event("x if output[1] >= 5").guess(values).tolist() == [0, 0, -1, 0]
    assert parse_event("x if output[1] in {3..4}, y if output[1] in {NaN}").guess(values).tolist() == [-1, -1, 0, 1]
    assert parse_event("it raises").guess(np.array([RAISED, 1.0])).tolist() == [1, 0]


def test_columns_and_keys_and_words_have_their_names():
    values, columns = np.array([[3, 0], [4, 99], [5, 100]]), ("count", "ill=no")
    for entry in ("ill=no", 'output["ill=no"]', "output[1]"):
        assert parse_event(f"{entry} >= 99", columns).guess(values).tolist() == [0, 1, 1]
    outputs = as_given([*map(written, [{"a": "yes", "b": 2}, {"a": "no", "b": 3}]), "(raised ValueError)"])
    assert parse_event("""output["a"] in {'yes'}, x if output["a"] in {"no"}""").guess(outputs).tolist() == [1, -1, 0]
    assert parse_event('output["b"] >= 2.5').guess(outputs).tolist() == [0, 1, 0]
    assert parse_event("output in {'no', '2.0'}").guess(np.array(["yes", "no", 2.0], object)).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "words",
    [
        "y if output >= 1, y if output <= 0",
        "output in {1}, y if output in {0}",
        "output[0] >= 1, x if output[1] <= 0",
        "output >= 1, x if output >= 0",
        "output >= 1, x if output in {0}",
    ],
)
def test_parts_that_do_not_go_together(words):
    rule = "read one entry, and guess x once, y once or both, from one >=, one <= or both, or from values only"
    refuses(ValueError, f"an event must {rule}, got {words!r}", parse_event, words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("output >= 1, x if output <= 1", "low must be below high, got 1.0 and 1.0"),
        ("output in {5..1}", "a span of an event must go up, and by less than 1048576, got 5..1"),
        ("output in {0..9999999}", "a span of an event must go up, and by less than 1048576, got 0..9999999"),
        ("output in {'a' 'b'}", "an event must be written like "),
        ("output in {1, 'a'}", "values of an event must be all numbers or all words, each once, got [1.0, 'a']"),
        ("y if output in {1}, x if output in {1}", "values of an event must be all numbers or all words, each once, "),
        ("output >= nan", "a value of an event must be a number, NaN, None, or a word in quotes after `in`, got 'nan'"),
        ("b >= 1", "an event must read a column (a, c), or an entry by its place, such as output[0], got 'b'"),
        ("c >= 1", "an event must read a column (a, c, c), or an entry by its place, such as output[0], got 'c'"),
    ],
)
def test_values_and_entries_that_nothing_means(words, message):
    columns = ("a", "c", "c") if words == "c >= 1" else ("a", "c")
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as raised:
        parse_event(words, columns)
    assert str(raised.value).startswith(message)


def test_numbers_have_no_keys():
    with pytest.raises(ValueError, match="outputs have no keys: write the place of the entry, such as output"):
        parse_event('output["a"] >= 1').guess(np.zeros((3, 2)))
