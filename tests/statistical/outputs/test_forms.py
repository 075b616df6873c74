"""The form of an output: types, signs of zeros, the order of keys and classes of exceptions tell databases apart."""

import math
import re
import warnings
from collections import OrderedDict
from dataclasses import make_dataclass
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from audit.attacks import Attack
from audit.claims import PureDP
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.neighbors import NeighborPair
from tests.helpers import refused_like

PAIR = NeighborPair.declared(np.array([0]), np.array([1]), "add_remove")
SURE = 1 - 1e-6
Row = make_dataclass("Row", ["a"])
PAYLOAD, MINUS = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(float).tolist()


def noisy(data, size, rng):
    """Two-tailed geometric noise at epsilon 1 on a count."""
    noise = rng.geometric(1 - math.exp(-1), (2, size))
    return data[0] + noise[0] - noise[1]


def told_by(on_x, on_y, share=1.0):
    """Outputs that are written in two ways: on `x` in a share of the runs by the first, on `y` always by the second."""

    def mechanism(data, size, rng):
        first = (rng.random(size) < share) & (data[0] == 0)
        return [(on_x if one else on_y)(int(n)) for n, one in zip(noisy(data, size, rng), first, strict=True)]

    return mechanism


def either(one, other):
    """The same two ways at random on both databases: no loss but that of the noise."""

    def mechanism(data, size, rng):
        both = zip(noisy(data, size, rng), rng.random(size) < 0.5, strict=True)
        return [(one if first else other)(int(n)) for n, first in both]

    return mechanism


def dated(n):
    return date(2024, 1, 15 + max(-9, min(9, n)))


PAIRS = {
    "float and int": (float, int, "type of output"),
    "bool and int": (lambda n: n > 0, lambda n: int(n > 0), "type of output"),
    "int of numpy": (np.int64, int, "type of output"),
    "array of no dimension": (lambda n: np.array(float(n)), np.float64, "type of output"),
    "arrays of either type": (lambda n: np.array([n, 1.0]), lambda n: np.array([n, 1]), "type of output"),
    "one number of a row": (lambda n: [n, 1.0], lambda n: [n, 1], "type of output[1]"),
    "in a nested list": (lambda n: [[n, 1.0], [1, 2]], lambda n: [[n, 1], [1, 2]], "type of output[0][1]"),
    "in a mapping": (lambda n: {"n": float(n)}, lambda n: {"n": n}, 'type of output["n"]'),
    "tuple and list": (lambda n: (n, 1), lambda n: [n, 1], "type of output"),
    "words of numpy": (lambda n: np.str_(n), str, "type of output"),
    "word and date": (lambda n: str(dated(n)), dated, "type of output"),
    "Decimal and float": (Decimal, float, "type of output"),
    "sets": (lambda n: frozenset([n]), lambda n: {n}, "type of output"),
    "ordered": (lambda n: OrderedDict(a=n), lambda n: {"a": n}, "type of output"),
    "dataclass": (Row, lambda n: {"a": n}, "type of output"),
    "keys of numpy": (lambda n: {np.int64(1): n}, lambda n: {1: n}, "type of output"),
    "tables": (lambda n: pd.DataFrame({"n": [n]}, dtype="int8"), lambda n: pd.DataFrame({"n": [n]}), "type of output"),
    "masked": (lambda n: np.ma.masked if n > 0 else 1.5, lambda n: None if n > 0 else 1.5, "type of output"),
    "order of keys": (lambda n: {"a": n, "b": 1}, lambda n: {"b": 1, "a": n}, "order of keys of output"),
    "sign of zero": (
        lambda n: {"a": [-0.0 if n < 0 else 0.0]},
        lambda n: {"a": [0.0]},
        'sign of zero of output["a"][0]',
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_a_form_that_only_one_database_has_is_found(case):
    on_x, on_y, words = PAIRS[case]
    options = {"size": 800, "confidence": SURE, "rng": 1, "attack": "words"}
    result = measure_loss(told_by(on_x, on_y), PAIR, PureDP(1.0), **options)
    assert result.verdict == "violated"
    assert words in result.event


@pytest.mark.parametrize("case", ["float and int", "tuple and list", "order of keys", "in a mapping", "sets"])
def test_a_form_that_varies_alike_on_both_is_no_loss(case):
    """Negative control: at most 1e-6 of false alarm each."""
    result = measure_loss(either(*PAIRS[case][:2]), PAIR, PureDP(1.0), size=4000, confidence=SURE, rng=1)
    assert result.verdict == "not refuted"
    assert 0.5 < result.measured.epsilon <= 1.0


@pytest.mark.parametrize("case", ["float and int", "order of keys", "tuple and list"])
def test_a_rare_form_is_told_apart_by_an_event(case):
    on_x, on_y, words = PAIRS[case]
    options = {"size": 20_000, "rng": 1, "attack": "words"}
    result = measure_loss(told_by(on_x, on_y, share=0.02), PAIR, PureDP(1.0), **options)
    assert (result.verdict, words in result.event) == ("violated", True)


# Of arrays and tables, a type is said of a whole call


def as_type(x, y):
    return lambda data, size, rng: noisy(data, size, rng).astype(y if data[0] else x)


def in_table(make, x, y):
    return lambda data, size, rng: make({"n": noisy(data, size, rng).astype(y if data[0] else x)})


def masked_on_x(data, size, rng):
    return noisy(data, size, rng) if data[0] else np.ma.array(noisy(data, size, rng))


def listed_on_x(data, size, rng):
    return noisy(data, size, rng) if data[0] else noisy(data, size, rng).tolist()


def later_on_x(data, size, rng):
    return noisy(data, size, rng).astype(float if data[0] == 0 and size > 16 else int)


@pytest.mark.parametrize(
    ("mechanism", "got"),
    [
        (as_type(float, int), "float64 and int64"),
        (as_type(np.int8, int), "int8 and int64"),
        (as_type(np.uint8, int), "uint8 and int64"),
        (in_table(pd.DataFrame, float, int), "DataFrame of float64 and DataFrame of int64"),
        (in_table(pl.DataFrame, np.int32, int), "DataFrame of Int32 and DataFrame of Int64"),
        (masked_on_x, "MaskedArray of int64 and int64"),
        (listed_on_x, "list and int64"),
    ],
)
def test_arrays_of_another_type_on_either_database_are_refused(mechanism, got):
    with refused_like(ValueError, f"^outputs must have the same type on both databases, got {got}$"):
        measure_loss(mechanism, PAIR, PureDP(1.0), size=2000, rng=1)


def test_a_type_that_arrays_only_have_later_is_refused():
    with refused_like(ValueError, "same type in every call, got float64 after int64: return a list, in which each run"):
        measure_loss(later_on_x, PAIR, PureDP(1.0), size=10_000, rng=1)


def test_given_outputs_of_another_type_are_refused_or_told_apart():
    rng = np.random.default_rng(1)
    x, y = (noisy([n], 2000, rng) for n in (0, 1))
    options = {"relation": "add_remove", "confidence": SURE, "rng": 1}
    with refused_like(ValueError, "same type on both databases, got float64 and int64$"):
        measure_loss_from_outputs(x.astype(float), y, PureDP(1.0), **options)
    result = measure_loss_from_outputs(x.astype(float).tolist(), y.tolist(), PureDP(1.0), **options)
    assert (result.verdict, "type of output" in result.event) == ("violated", True)
    odd = x.astype(object)
    odd[7] = "err"  # as a reader of files makes all numbers words for one: no loss, and a loss in lists
    for on_x, on_y, got in ((odd, y, "object and int64"), (pd.Series(odd), pd.Series(y), "object and int64")):
        with refused_like(ValueError, f"same type on both databases, got {got}: lists may hold both$"):
            measure_loss_from_outputs(on_x, on_y, PureDP(1.0), **options)
    for frame, got in ((pd.DataFrame, "object and int64"), (pl.DataFrame, "String and Int64")):
        with refused_like(ValueError, f"same type on both databases, got {got}: lists may hold both$"):
            given = odd if frame is pd.DataFrame else odd.astype(str)
            measure_loss_from_outputs(frame({"a": given}), frame({"a": y}), PureDP(1.0), **options)


def mixed_in_arrays(data, size, rng):
    """Arrays of whole numbers, now and then, when there are few runs; of floats always, when there are many."""
    return np.array(either(int, float)(data, size, rng))


def missing_in_tables(make):
    """A column of whole numbers, which one that is missing makes a column of floats."""

    def mechanism(data, size, rng):
        missing = rng.random(size) < 1 / 200
        return make({"n": [None if no else int(n) for n, no in zip(noisy(data, size, rng), missing, strict=True)]})

    return mechanism


def none_in_arrays(data, size, rng):
    """An array of numbers, which one that is missing makes an array of objects."""
    return np.array([None if rng.random() < 1 / 200 else int(n) for n in noisy(data, size, rng)])


@pytest.mark.parametrize(
    "mechanism", [none_in_arrays, mixed_in_arrays, missing_in_tables(pd.DataFrame), missing_in_tables(pl.DataFrame)]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_type_that_hangs_on_the_other_runs_of_a_call_is_neither_refused_nor_accused(mechanism, seed):
    result = measure_loss(mechanism, PAIR, PureDP(1.0), size=4000, confidence=SURE, rng=seed)
    assert (result.verdict, result.measured.epsilon > 0.5) == ("not refuted", True)


# Signs of zeros and bits of NaN in arrays


def zeros(data, size, rng):
    return np.where(noisy(data, size, rng) <= 0, -0.0 if data[0] == 0 else 0.0, 1.0)


def zeros_in_any_entry(data, size, rng):
    """Known truth: -0.0 in one of three entries, at random, in a fifth of the runs on `x` only."""
    outputs = np.zeros((size, 3)) + (noisy(data, size, rng)[:, None] > 0)
    negative = (rng.random(size) < 0.2) & (data[0] == 0)
    outputs[negative, rng.integers(0, 3, negative.sum())] = -0.0
    return outputs


def nan_of(bits):
    return lambda data, size, rng: np.where(
        rng.random(size) < 0.3, math.nan if data[0] else bits, noisy(data, size, rng)
    )


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (zeros, "sign of zero of output"),
        (zeros_in_any_entry, "negative zeros of output"),
        (nan_of(PAYLOAD), "NaN"),
        (nan_of(MINUS), "NaN"),
    ],
)
def test_bits_of_zeros_and_nans_are_found(mechanism, words):
    result = measure_loss(mechanism, PAIR, PureDP(1.0), size=4000, confidence=SURE, rng=1)
    assert (result.verdict, words in result.event) == ("violated", True)


def test_rounded_noise_has_negative_zeros_and_is_not_accused():
    """Negative control: rounding keeps the loss of 1, and its zeros the sign of what was rounded."""

    def rounded(data, size, rng):
        return np.round(data[0] + rng.laplace(size=size))

    result = measure_loss(rounded, PAIR, PureDP(1.0), size=20_000, confidence=SURE, rng=1)
    assert result.verdict == "not refuted"
    assert "sign of zero of output" in result.searched
    without = measure_loss(lambda *arguments: rounded(*arguments) + 0.0, PAIR, PureDP(1.0), size=4000, rng=1)
    assert "zero" not in without.searched


# Exceptions and warnings


def failing(on_x, on_y, give=noisy, share=0.3):
    def mechanism(data, size, rng):
        if (rng.random(size) < share).any():
            raise on_y if data[0] else on_x
        return give(data, size, rng)

    return mechanism


@pytest.mark.parametrize("give", [noisy, lambda data, size, rng: rng.choice(["a", "b"], size)])
@pytest.mark.parametrize(
    ("on_x", "on_y", "words"),
    [
        (ValueError("none"), KeyError("none"), "KeyError"),
        (SystemExit(3), RuntimeError("none"), "RuntimeError"),
        (type("On0", (Exception,), {})(), type("On1", (Exception,), {})(), "On"),
    ],
)
def test_the_class_of_an_exception_is_part_of_an_output(give, on_x, on_y, words):
    options = {"size": 600, "rng": 1, "attack": Attack(looks=("entries",))}
    result = measure_loss(failing(on_x, on_y, give), PAIR, PureDP(1.0), **options)
    assert result.verdict == "violated"
    assert "(raised " in result.event
    assert words in result.event
    same = measure_loss(failing(on_x, on_x, give), PAIR, PureDP(1.0), **options)  # negative control
    assert same.verdict != "violated"


def test_classes_that_vary_alike_are_no_loss():
    def mechanism(data, size, rng):
        if (rng.random(size) < 0.2).any():
            raise [KeyError, ValueError, type(f"E{rng.integers(3)}", (Exception,), {})][rng.integers(3)]("none")
        return noisy(data, size, rng)

    result = measure_loss(mechanism, PAIR, PureDP(1.0), size=4000, confidence=SURE, rng=1)
    assert result.verdict == "not refuted"


@pytest.mark.parametrize(
    ("times", "database"),
    [
        ((1, 0), r"warned \d+ times on x, never on y: "),
        ((0, 2), r"warned \d+ times on y, never on x: "),
        ((1, 1), r"warned \d+ times: "),
    ],
)
def test_a_warning_says_on_which_database(times, database):
    def warning(data, size, rng):
        for _ in range(times[data[0]]):
            warnings.warn("a cell is empty", stacklevel=1)
        return noisy(data, size, rng)

    (note,) = measure_loss(warning, PAIR, PureDP(2.0), size=2000, rng=1).notes
    assert re.match(database + "UserWarning: a cell is empty$", note)
