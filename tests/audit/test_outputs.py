"""What an output may be: what is read of it, what is refused, and what a run that raises an exception is."""

import datetime
import json
import math
import re
from collections import Counter, deque
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from audit import values as codes
from audit.events import score_in_words
from audit.outputs import Kind, as_numbers, kind_of, read_outputs, resolve_types
from audit.sampling.calls import ATTEMPTS, PASSES, Caller
from audit.values import NAN, NOTHING, ODD_NAN, RAISED, RAISED_WORD, SHAPE, TYPE, WORD
from audit.written import FORM, all_written, as_given, types_in, written
from tests.audit.sampling.cases import in_threads
from tests.helpers import BrokenError, raising, refused_like

TEXT = Kind(None)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats()
PLAIN = st.none() | st.booleans() | NUMBERS | st.text(max_size=5)
NESTED = st.recursive(
    PLAIN, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=3), one, max_size=3), max_leaves=8
)


@dataclass
class Release:
    total: float
    area: str


STRUCTURED = np.array([("a", 1.5), ("b", 2.5)], dtype=[("area", "U3"), ("count", float)])


class Tensor:
    """An array of another library."""

    def __init__(self, *values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


class Stubborn:
    """An array of another library that will not be one of numpy."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("detach it first\nand then again")


def run(mechanism, data, size, rng, kind):
    return Caller(mechanism, data, kind).run(size, rng)


def same(one, other):
    """Whether two plain values are one, types and signs of zeros included; NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return repr(one) == repr(other)
    return one == other


def read_again(text):
    """What a text stands for: the keys of mappings are texts themselves."""

    def plain(value):
        if isinstance(value, dict):
            return {json.loads(key): plain(one) for key, one in value.items()}
        return list(map(plain, value)) if isinstance(value, list) else value

    return plain(json.loads(text.partition(FORM)[0]))


# Written down


@given(NESTED)
def test_what_is_written_is_read_again(value):
    """So no two outputs are taken for one."""
    text = written(value)
    assert same(read_again(text), value)
    assert text.isascii()
    assert "\n" not in text
    odd = {place: name for place, name in types_in(value).items() if name == "NaN of other bits"}
    assert json.loads(text.partition(FORM)[2] or "{}") == odd  # JSON says all other types


@given(
    st.lists(NESTED) | st.lists(st.text() | st.sampled_from(['"', ']\n["', "NaN"])) | st.lists(st.lists(PLAIN)),
    st.booleans(),
)
def test_many_at_once_are_written_like_each(outputs, tuples):
    outputs = [tuple(one) if tuples and isinstance(one, list) else one for one in outputs]
    assert all_written(outputs) == [written(one) for one in outputs]


@given(st.dictionaries(PLAIN | st.tuples(PLAIN, PLAIN), PLAIN, max_size=4))
def test_keys_of_any_type_are_told_apart(mapping):
    texts = [json.dumps(key) for key in mapping]
    if len(set(texts)) < len(texts):  # several NaN
        with refused_like(ValueError, "^keys of an output must be told apart, got .*NaN.* twice$"):
            written(mapping)
    else:
        assert list(json.loads(written(mapping).partition(FORM)[0])) == texts


@pytest.mark.parametrize(
    ("value", "like"),
    [
        ((1, "a"), [1, "a"]),
        (Release(1.5, "b"), {"total": 1.5, "area": "b"}),
        ({"b", "a"}, {"a": 1, "b": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (np.float32(1.5), 1.5),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (STRUCTURED, [["a", 1.5], ["b", 2.5]]),
        (np.ma.array([1.5, 2.5], mask=[False, True]), [1.5, None]),
        (Tensor(1.5, 2.5), [1.5, 2.5]),
        (pd.DataFrame({"n": [1, 2], "area": ["a", "b"]}), {"n": [1, 2], "area": ["a", "b"]}),
        (pd.DataFrame({"n": [1]}, index=["a"]), {"index": ["a"], "n": [1]}),
        (pa.table({"n": [1, None]}), {"n": [1, None]}),
        (pl.DataFrame({"n": [1, None]}), {"n": [1, None]}),
        (pd.Series([1, 2]), [1, 2]),
        (pd.Series([1, 2], index=["b", "a"]), {"b": 1, "a": 2}),
        (pd.Series([1, None], dtype="Int64"), [1, None]),
        (datetime.date(2024, 5, 1), "2024-05-01"),
        (np.datetime64("NaT"), "NaT"),
        (Decimal("0.1"), 0.1),
        (Fraction(1, 4), 0.25),
        (2**53 + 1, "whole number 0x20000000000001"),
    ],
)
def test_everything_else_is_written_like_what_it_holds(value, like):
    assert same(read_again(written(value)), read_again(written(like)))
    assert same(read_again(written([{"in": value}])), [{"in": read_again(written(like))}])


CYCLE: list = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (object(), TypeError, r"outputs must be numbers, words, None, or sequences and mappings .*builtins\.object$"),
        (1j, TypeError, r"got builtins\.complex$"),
        ({"a": [object()]}, TypeError, r"got builtins\.object$"),
        (
            Decimal("0.1000000000000000055511151231257827"),
            ValueError,
            "^outputs must be numbers that float64 tells apart, got 0.1000000000000000055511151231257827: return it as",
        ),
        (range(3), TypeError, r"got builtins\.range: make a list of it$"),
        (CYCLE, ValueError, "^an output must not contain itself, or be nested more deeply than JSON can be$"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, 'keys of an output .* got "a" twice'),
    ],
)
def test_what_cannot_be_read_is_refused(value, error, words):
    with refused_like(error, words):
        written(value)
    if value is CYCLE:
        with refused_like(error, words):
            kind_of([[value]])


# The kind of outputs


UNLIKE = [
    pd.DataFrame({"b": [1, 2]}),
    pd.DataFrame({"a": [1, 2]}, index=[1, 2]),
    pd.DataFrame({"a": [1, 2]}, index=pd.RangeIndex(2, name="n")),
    pd.DataFrame({"a": [1, 2]}, dtype=np.int32),
    pd.DataFrame({"a": [1, 2, 3]}),
    pl.DataFrame({"a": [1, 2]}),
    np.array([[1], [2]]),
]


@pytest.mark.parametrize("other", UNLIKE)
def test_a_table_unlike_the_first_ones_is_a_value_of_its_own(other):
    first = pd.DataFrame({"a": [1, 2]})
    kind = kind_of([[first, first]])
    assert read_outputs([first, other], kind)[0].tolist() == [[1], [2]]
    assert np.isin(read_outputs([first, other], kind)[1], (TYPE, SHAPE)).all()
    assert np.isin(read_outputs([other, other], kind), (TYPE, SHAPE)).all()


@pytest.mark.parametrize(
    ("batch", "shape"),
    [
        ([1, 2], ()),
        ([1, math.nan, 2], ()),
        ([True, 2.5], None),  # of several types: each run has its own
        (np.zeros((3, 2, 4)), (2, 4)),
        ([[1, 2], [3, 4]], (2,)),
        ([[1, 2], (3, 4)], None),
        (pd.Series([1, 2]), ()),
        (pd.DataFrame({"a": [1, 2], "b": [0.5, 1]}), (2,)),
        ([Tensor(1.0, 2.0)] * 3, (2,)),
        (np.ma.array([1, 2], mask=[True, False]), ()),
        (["a", 7.0], None),  # numpy would make it a word
        ([[1, 2], [1]], None),
        ([("a", 1.0)], None),
        (STRUCTURED, None),
        ([pd.Series([1, 2])] * 2, None),  # its index says what the numbers are about
        ([pd.DataFrame({"a": [1, 2], "b": [0.5, 1]})] * 2, (2, 2)),
        *(([pd.DataFrame({"a": [1, 2]}), other], None) for other in UNLIKE),  # each says something else
        ([pd.DataFrame({"a": [2**53 + 1], "b": [0.5]})] * 2, None),  # numpy would round it
        ([np.ma.array([1, 2], mask=[True, False])] * 2, None),  # numpy would read what is under the mask
        ([Stubborn()], None),
        (np.zeros((3, 0)), None),
    ],
)
def test_outputs_are_numbers_if_all_are_of_one_shape(batch, shape):
    assert kind_of([batch]).shape == shape
    assert kind_of([batch, ["a"]]).shape is None
    assert kind_of([batch, np.zeros((3, 7))]).shape is None


@pytest.mark.parametrize(
    ("x", "y", "got"),
    [
        (np.zeros((3, 1)), np.zeros(3), "one shape on both databases, got () and (1,)"),
        (np.zeros(3, np.float32), np.zeros(3), "the same type on both databases, got float32 and float64"),
        (["1", "2"], [1, 2], "same type on both databases, got numbers and words that say numbers"),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), "the same columns on both databases, got 'a' and 'b'"),
        (STRUCTURED, STRUCTURED.astype([("town", "U3"), ("count", float)]), "the same columns on both databases"),
    ],
)
def test_what_is_said_once_of_all_runs_must_not_tell_databases_apart(x, y, got):
    """A vector beside a column, or columns in another order, were a loss; other names of columns were none."""
    with refused_like(ValueError, f"^outputs must have .*{re.escape(got)}"):
        kind_of([x, y])

    for one in (x, y):
        plain = np.ndim(one) < 2 and np.asarray(one).dtype.kind != "U"
        kind_of([one, one, [1]] if plain else [one, one])
    kind_of([["1", "few"], [1, 2], ["1", 2]])
    assert kind_of([["1"], [1]]).shape is None  # single runs may be number and word by chance
    assert kind_of([[[[1, 2], [3, 4]]], [[[1, 2, 3, 4]]]]).shape is None  # of lists, each run has its own


@given(arrays(st.sampled_from([np.float64, np.float32, np.int32, bool]), st.sampled_from([(3,), (2, 2), (1, 2, 3)])))
def test_numbers_are_a_copy(given):
    numbers = as_numbers(given)
    assert numbers.shape == given.shape
    assert np.isin(numbers[np.isnan(given)], [NAN, ODD_NAN]).all()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(numbers[~np.isnan(given)], given[~np.isnan(given)])
    assert not np.shares_memory(numbers, given)


@pytest.mark.parametrize(
    ("batch", "written_as"),
    [
        (np.array([2**53 + 1, 0]), ["0x20000000000001", "0.0"]),
        (np.array([2**64 - 1, 5], np.uint64), ["0xffffffffffffffff", "5.0"]),
        (pd.DataFrame({"n": [2**53 + 1, 2]}), ["0x20000000000001", "2.0"]),
    ],
)
def test_whole_numbers_that_no_float_holds_are_words(batch, written_as):
    """Else an audit would be blind to their lowest digits; numpy rounds some of them in mixed lists only."""
    assert as_numbers(batch) is None
    assert kind_of([batch]).shape is None
    assert all(like in text for like, text in zip(written_as, read_outputs(batch, TEXT), strict=True))
    assert read_outputs(batch, Kind((1,) if isinstance(batch, pd.DataFrame) else ())).ravel()[0] == WORD


def test_floats_that_float64_does_not_tell_apart_are_refused():
    with refused_like(ValueError, "^outputs must be numbers that float64 tells apart, got (float128|float96): return"):
        as_numbers(np.array([1], np.longdouble) + np.longdouble(2) ** -60)


# Each output by itself, whatever batch it comes in

ODD = [1.5, 2, math.nan, math.inf, -math.inf, True, None, "suppressed", RAISED_WORD, [1.0, 2.0], [], {"a": 1}, {3}]
ODD += [np.float32(0.1), np.ma.masked, Decimal("0.1"), Fraction(1, 2), np.array(7.0), b"a", pd.NA, pd.Series([4.0])]
ODD += [np.array([3.0, 4.0]), np.ma.array([1.0, 2.0], mask=[True, False]), [1.0, None], [5.0, "a"], Tensor(1.0, 2.0)]
ODD += [pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0]), (2**60, 0.5), pl.DataFrame({"a": [1.0]})]


@pytest.mark.parametrize("kind", [Kind(()), Kind((2,)), TEXT])
@given(st.lists(st.sampled_from(ODD), min_size=1, max_size=6))
def test_an_output_is_read_alike_in_every_batch(kind, batch):
    """A batch without a word must not read otherwise what stands beside words in another: runs would not be alone."""
    together = read_outputs(batch, kind)
    alone = np.concatenate([read_outputs([one], kind) for one in batch])
    np.testing.assert_array_equal(together, alone)
    assert together.shape == (len(batch), *(kind.shape or ()))
    assert kind is TEXT or not np.isnan(together.astype(float)).any()


MASKED = np.ma.array([[120.0, 3.0], [121.0, 4.0]], mask=[[True, False], [False, False]])  # suppressed: not looked at


@pytest.mark.parametrize(
    ("kind", "batch", "values"),
    [
        (
            Kind(()),
            [1.5, 2, True, math.inf, math.nan, None, "suppressed", [1, 2], {"a": 1}, np.ma.masked, RAISED_WORD],
            [1.5, 2.0, 1.0, math.inf, NAN, NOTHING, WORD, SHAPE, SHAPE, NOTHING, RAISED],
        ),
        (
            Kind((2,)),
            [[1, 2], [1, None], ["a", math.nan], None, 3.0, [1, 2, 3]],
            [[1, 2], [1, NOTHING], [WORD, NAN], [NOTHING] * 2, [SHAPE] * 2, [SHAPE] * 2],
        ),
        *((Kind((2,)), batch, [[NOTHING, 3.0], [121.0, 4.0]]) for batch in (MASKED, list(MASKED))),
        (kind_of([[1, 2], [math.nan]]), [3, 2.5, math.nan, None, "a", True], [3, TYPE, NAN, NOTHING, WORD, TYPE]),
        (kind_of([[(1, 2.5)]]), [[3, 1.5], (3, 2), (3, None)], [[TYPE, TYPE], [TYPE, TYPE], [3, NOTHING]]),
        (TEXT, pl.DataFrame({"area": ["a", "b"], "count": [1.5, 2.5]}), ['["a", 1.5]', '["b", 2.5]']),
        (TEXT, pd.DataFrame([["x", 1]], columns=["a", "a"]), ['["x", 1.0]']),  # as if one missed
        # Large numbers that float64 holds.
        *((Kind(()), batch, batch.tolist()) for batch in (np.array([2**60, -(2**62)]), np.array([2**63], np.uint64))),
        (Kind(()), np.array([1.5], np.longdouble), [1.5]),
    ],
)
def test_what_is_no_number_is_a_value_of_its_own(kind, batch, values):
    assert read_outputs(batch, kind).tolist() == values


def test_values_are_no_numbers():
    assert [codes.value_of(one) for one in (2, None, "a", RAISED_WORD, [1])] == [2.0, NOTHING, WORD, RAISED, SHAPE]
    assert codes.is_value(np.array([NAN, ODD_NAN, NOTHING, WORD, SHAPE, TYPE, RAISED])).all()
    assert not codes.is_value(np.array([-codes.LARGEST, codes.LARGEST, -1e305, 0.0])).any()  # negative control
    assert codes.raised(np.array([[RAISED, RAISED], [1.0, RAISED]])).tolist() == [1, 0]
    assert codes.raised(np.array([RAISED_WORD, "a"])).tolist() == [1, 0]


SINGLE = ["abc", b"ab", {"a": 1}, {1, 2}, None, 3.0, np.float64(3), np.array(3.0), np.array({}), np.ma.masked, print]
SINGLE += [pl.LazyFrame({"a": [1]}), pa.table({"a": [1]}), csr_array([[1.0, 0.0]])]


@pytest.mark.parametrize("batch", SINGLE, ids=lambda one: type(one).__name__)
def test_a_batch_is_a_sequence(batch):
    for read in (partial(read_outputs, kind=Kind(())), partial(read_outputs, kind=TEXT), lambda one: kind_of([one])):
        with refused_like(ValueError, f"^outputs must be a sequence, one a run, got {type(batch).__name__}$"):
            read(batch)


@pytest.mark.parametrize("give", [iter, deque, partial(map, float), lambda values: dict(enumerate(values)).values()])
def test_a_batch_that_can_be_read_once_is_kept(give):
    batch = Caller(lambda data, size, rng: give([1.0] * size), None).batch(3, np.random.default_rng(0))
    assert list(batch) == list(batch) == [1.0] * 3
    assert kind_of([batch]).shape == ()


# As a statistic of one's own gets them

KEYS = [("a", "x"), (("a", 1), None), frozenset("ab"), frozenset([(1, "a"), 2]), 1, 2.5, None, 2**60 + 1, "2", "Zürich"]


@pytest.mark.parametrize(
    ("batch", "shape", "given"),
    [
        (["b", "a"], (2,), ["b", "a"]),
        ([("a", 1.5), ("b", None), RAISED], (3, 2), [["a", 1.5], ["b", None], [RAISED_WORD] * 2]),
        *(([{key: {"n": 2.0}}, 1.0], (2,), [{key: {"n": 2.0}}, 1.0]) for key in KEYS),  # as they were
        ([pd.DataFrame({"area": ["West"]}), 1.0], (2,), [{"area": ["West"]}, 1.0]),
        ([(2**63 - 1, "a"), (-(2**63), "b")], (2, 2), [[2**63 - 1, "a"], [-(2**63), "b"]]),
    ],
)
def test_written_outputs_are_given_as_words_or_rows_or_as_they_are(batch, shape, given):
    texts = [RAISED_WORD if one is RAISED else written(one) for one in batch]
    found = as_given(np.array(texts, object))
    assert (found.shape, found.tolist()) == (shape, given)
    assert found.dtype.kind == ("U" if given == ["b", "a"] else "O")


def test_exceptions_have_the_word_and_the_value_of_their_class():
    words = [codes.raised_word(one) for one in (KeyError("a"), BrokenError(), type("E\n(é", (Exception,), {})())]
    assert words[:2] == ["(raised KeyError)", "(raised tests.helpers.BrokenError)"]
    assert words[2].isascii()
    assert "\n" not in words[2]
    values = np.array([*map(codes.raised_by, words), RAISED])
    assert len(set(values.tolist())) == 4
    assert codes.is_value(values).all()
    assert codes.raised(values).all()
    assert [score_in_words(one) for one in values] == [*words, RAISED_WORD]
    assert score_in_words(codes.raised_by("(raised Unheard)")) == "(raised Unheard)"
    assert score_in_words(np.nextafter(values[0], 0)) == "(raised another exception)"  # that only a worker knows
    kinds = [replace(TEXT, raises=one) for one in (None, words[1], "")]
    kept = [run(raising(1.0), None, 2, np.random.default_rng(0), kind) for kind in kinds]
    assert [one.tolist() for one in kept] == [[RAISED_WORD] * 2, [RAISED_WORD] * 2, [words[1]] * 2]


def test_types_are_settled_by_what_both_databases_have():
    noted = [{("type", "float64"), ("raised", "(raised KeyError)")}, {("type", "int64"), ("type", "float64")}]
    kind = resolve_types(Kind(()), noted)
    assert (kind.types, kind.raises) == (("float64", "int64"), "(raised KeyError)")
    assert resolve_types(Kind(()), [noted[0], noted[1] | {("raised", "(raised E)")}]).raises == ""  # each by its class
    with refused_like(ValueError, "^outputs must have the same type on both databases, got int8 and float64, int64$"):
        resolve_types(Kind(()), [{("type", "int8")}, noted[1]])
    assert resolve_types(Kind(()), [set(), {("type", "int8")}]).types == ("int8",)  # one of them only raises


# Runs


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (lambda data, size, rng: rng.random(size + 1), "one output a run: asked for 4 runs, got 5"),
        (lambda data, size, rng: 3.0, "outputs must be a sequence, one a run, got float"),
    ],
)
@pytest.mark.parametrize("kind", [Kind(()), TEXT])
def test_another_number_of_outputs_is_refused(mechanism, words, kind):
    with refused_like(ValueError, words):
        run(mechanism, None, 4, np.random.default_rng(0), kind)


def test_an_array_that_is_never_used_again_is_not_copied():
    """What is no number has values of its own in a copy, and nobody writes into what belongs to the mechanism."""
    whole, broken = np.arange(6.0).reshape(3, 2), np.array([[1.0, np.nan]])
    kept = run(in_threads(lambda *_: whole), None, 3, np.random.default_rng(0), Kind((2,)))
    assert np.shares_memory(kept, whole)
    with refused_like(ValueError, "read-only"):
        kept[0] = 1.0
    kept = run(in_threads(lambda *_: broken), None, 1, np.random.default_rng(0), Kind((2,)))
    np.testing.assert_array_equal(kept, [[1.0, NAN]])
    assert np.isnan(broken[0, 1])
    masked = np.ma.MaskedArray([[1.0, 2.0]], mask=[[False, True]])
    kept = run(in_threads(lambda *_: masked), None, 1, np.random.default_rng(0), Kind((2,)))
    np.testing.assert_array_equal(kept, [[1.0, NOTHING]])


@pytest.mark.parametrize("runs", [1, 2, 16, 128])
@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_exceptions_are_as_frequent_as_they_are(rate, runs):
    rng = np.random.default_rng(2020)
    outputs = np.concatenate([run(raising(rate), None, runs, rng, Kind(())) for _ in range(6400 // runs)])
    failed = outputs == RAISED
    # 4 standard errors: false alarm of all 8 cases 5e-4. Were batches that raise run again and free to raise no more,
    # those of one run would raise at the square of the rate, and losses of 0.5 look like 1.
    assert abs(failed.mean() - rate) < 4 * math.sqrt(rate * (1 - rate) / failed.size)
    # The others are as random as ever: mean and spread of a fair number (false alarm 5e-4 each).
    others = outputs[~failed]
    assert abs(others.mean() - 0.5) < 4 / math.sqrt(12 * others.size)
    assert abs(others.var() - 1 / 12) < 4 / math.sqrt(180 * others.size)


def test_a_run_that_raises_is_told_from_every_word_and_number():
    words = raising(0.3, lambda size, rng: rng.choice(["a", RAISED_WORD], size).tolist())
    kept = run(words, None, 50, np.random.default_rng(0), TEXT)
    assert set(kept.tolist()) == {'"a"', f'"{RAISED_WORD}"', RAISED_WORD}
    assert (run(raising(1.0), None, 3, np.random.default_rng(0), Kind((2,))) == RAISED).all()


def test_an_error_that_is_no_output_arrives_in_one_piece():
    error = BrokenError("no such area", 17)

    def batches(data, size, rng):
        sizes.append(size)
        if size > 1:
            raise error
        return rng.random(size)

    sizes = []
    with pytest.raises(BrokenError) as caught:  # by itself no run raises: it is the batch that cannot be run
        run(batches, None, 5, np.random.default_rng(0), Kind(()))
    assert caught.value is error
    assert sizes == [5, 2, 3] + [1] * 2 * PASSES + [2] * ATTEMPTS


def test_exhausted_memory_and_an_interrupt_are_no_output():
    def at_once(data, size, rng):
        sizes.append(size)
        raise MemoryError

    def interrupted(data, size, rng):
        raise KeyboardInterrupt

    class Large:
        def __array__(self, dtype=None, copy=None):
            raise MemoryError

    sizes = []
    with pytest.raises(MemoryError):
        run(at_once, None, 4, np.random.default_rng(0), Kind(()))
    assert sizes == [4]
    with pytest.raises(KeyboardInterrupt):
        run(interrupted, None, 4, np.random.default_rng(0), Kind(()))
    with pytest.raises(MemoryError):
        as_numbers(Large())
