"""Rows in any order: copies of a person's row are found, whatever a table is, and nothing where laws are equal."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

from audit.attacks import Attack
from audit.attacks.protocol import candidate_statistics
from audit.attacks.rows import candidates
from audit.attacks.rows.tables import Layout
from audit.claims import PureDP
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.values import NAN
from audit.written import written
from tests.audit.attacks.cases import exploration
from tests.audit.sampling.cases import given_runs

NONE_OR_ONE = NeighborPair.declared(np.array([0]), np.array([1]), "add_remove")
RECORDS = [{"area": f"a{number % 7}", "age": number % 9} for number in range(12)]
PERSON = {"area": "a6", "age": 3}
WORDS = np.array([f"a{number}" for number in range(7)])


def tables(rng, copied, rows=12, levels=(7, 9), person=(6, 3)):
    """Rows of whole numbers, none of them the person's but copies at a random place, in some of the tables."""
    cells = np.stack([rng.integers(0, level, (len(copied), rows)) for level in levels], axis=2)
    cells[(cells == person).all(axis=2), 0] = 0
    where = np.flatnonzero(copied)
    cells[where, rng.integers(0, rows, where.size)] = person
    return cells


def synthetic(data, size, rng, *, on_x=0.0, on_y=1.0):
    joined = data[0] == 1 if isinstance(data, np.ndarray) else len(data) > len(RECORDS)
    return tables(rng, rng.random(size) < (on_y if joined else on_x))


FORMS = {
    "array": lambda table: table,
    "tuples": lambda table: [(WORDS[area], int(age)) for area, age in table],
    "mappings": lambda table: [{"area": WORDS[area], "age": int(age)} for area, age in table],
    "columns": lambda table: {"area": WORDS[table[:, 0]].tolist(), "age": table[:, 1].tolist()},
    "pandas": lambda table: pd.DataFrame({"area": WORDS[table[:, 0]], "age": table[:, 1]}),
    "polars": lambda table: pl.DataFrame({"area": WORDS[table[:, 0]], "age": table[:, 1]}),
    "varying": lambda table: [(WORDS[area], int(age)) for area, age in table[table[:, 1] < 7]],
    "and a count": lambda table: ([(WORDS[area], int(age)) for area, age in table], len(table)),
    "in a mapping": lambda table: {"n": 12, "made": pd.DataFrame({"area": WORDS[table[:, 0]], "age": table[:, 1]})},
}


def found(x, y, size=4, pair=NONE_OR_ONE):
    """Statistics that the attack finds in outputs given on both databases."""
    runs = given_runs(x, y, pair)
    looked = candidate_statistics(runs, Attack(looks=("rows", "words")), size * len(x))
    return {one.name: one for one in looked.statistics_by_attack.get("rows", ())}


@pytest.mark.parametrize("form", FORMS)
def test_a_row_at_any_place_is_found_in_every_kind_of_table(form):
    rng = np.random.default_rng(1)
    x, y = (list(map(FORMS[form], tables(rng, np.full(120, copied)))) for copied in (False, True))
    name = "(6, 3)" if form == "array" else "('a6', 3)"
    x, y = (np.array(side) if form == "array" else side for side in (x, y))
    assert {f"rows equal to {name}", f"any row within one column of {name}"} <= found(x, y).keys()


@pytest.mark.parametrize("form", ["array", "varying"])
def test_every_statistic_scores_each_table_by_itself(form):
    rng = np.random.default_rng(2)
    sides = [list(map(FORMS[form], tables(rng, rng.random(240) < copied))) for copied in (0, 1)]
    x, y = (np.array(side) if form == "array" else side for side in sides)
    runs = given_runs(x, y).outputs[1]
    for statistic in found(x, y).values():
        together, alone = statistic(runs), [statistic(runs[place : place + 1])[0] for place in range(40)]
        assert together[:40].tolist() == alone


def test_the_bound_meets_the_exact_loss_of_a_copied_row():
    """Nothing but whether the row is there tells: once in ten tables on x, three times on y, the loss is ln 3."""
    copied = partial(synthetic, on_x=0.1, on_y=0.3)
    result = measure_loss(copied, NONE_OR_ONE, PureDP(0.5), size=8000, rng=1)
    assert (result.verdict, result.attack) == ("violated", "rows")
    assert 0.8 < result.measured.epsilon < np.log(3)


def test_rows_that_are_drawn_from_counts_are_weighed():
    """Many rows differ a little: their sum tells more than any of them."""
    rng = np.random.default_rng(4)
    on_x, on_y = np.arange(10.0, 20.0), np.arange(20.0, 10.0, -1)
    x, y = (np.stack([rng.choice(10, (2000, 30), p=p / p.sum())] * 2, axis=2) for p in (on_x, on_y))
    several = found(x, y)
    weighed = next(one for name, one in several.items() if name.startswith("weighted sum"))
    scores = [weighed(side) for side in (x, y)]
    best = np.log(on_y / on_x)
    assert np.corrcoef(np.concatenate(scores), best[np.concatenate([x, y])[:, :, 0]].sum(axis=1))[0, 1] > 0.98


@pytest.mark.parametrize("made", [pl.DataFrame, list])
def test_the_row_that_differs_is_known_from_records(made):
    """No run has to choose it: a copy in one of eight tables is found in as few runs as it takes to count it."""
    pair = NeighborPair.add_row(made(RECORDS), PERSON)
    drawn = partial(synthetic, on_y=0.125)

    def written(data, size, rng):
        return [FORMS["tuples"](table) for table in drawn(data, size, rng)]

    result = measure_loss(written, pair, PureDP(1.0), size=800, rng=1)
    assert (result.verdict, result.event) == ("violated", "y if rows equal to ('a6', 3) >= 1")


def test_rows_that_are_known_share_half_of_the_error_probability():
    """A row that is replaced is known on either database."""
    x, y = (tables(np.random.default_rng(1), np.full(200, copied)) for copied in (False, True))
    known = exploration(x, y, "rows")
    known = replace(known, runs=replace(known.runs, pair=NeighborPair.replace_row(RECORDS, 0, PERSON)))
    assert list(candidates(known))
    assert [event.share for event in known.registered_events] == [0.25, 0.25]


def test_columns_that_data_do_not_have_may_hold_anything():  # 400 data frames
    """The index of a sorted frame is one: no two tables have a row in common."""
    pair = NeighborPair.add_row(RECORDS, PERSON)
    drawn = partial(synthetic, on_y=0.25)

    def written(data, size, rng):
        frames = [
            pd.DataFrame({"area": WORDS[table[:, 0]], "age": table[:, 1], "n": 7}) for table in drawn(data, size, rng)
        ]
        return [frame.set_index(pd.Index(rng.permutation(100)[:12])) for frame in frames]

    result = measure_loss(written, pair, PureDP(1.0), size=400, rng=1)
    assert (result.verdict, result.event) == ("violated", "y if rows equal to (any, 'a6', 3, any) >= 1")


def test_pairs_of_columns_are_weighed_where_the_rest_of_a_row_is_drawn_apart():
    rng = np.random.default_rng(5)
    person = np.full(6, 3)
    pair = NeighborPair.add_record(rng.integers(0, 3, (9, 6)), person)
    x, y = (rng.integers(0, 5, (800, 20, 6)) for _ in "xy")
    at = np.flatnonzero(rng.random(800) < 0.6)
    y[at, 0, 1], y[at, 0, 4] = 3, 3
    name = f"weighted pairs of columns in which rows agree with {tuple(person.tolist())}"
    assert name in found(x, y, pair=pair)
    assert name not in found(x, x[::-1], pair=pair)


@pytest.mark.parametrize("form", ["array", "tuples", "pandas"])
def test_tables_of_equal_laws_show_no_row(form):
    rng = np.random.default_rng(6)
    x, y = (list(map(FORMS[form], tables(rng, rng.random(200) < 0.2))) for _ in "xy")
    assert list(found(*(np.array(side) if form == "array" else side for side in (x, y)))) == ["different rows"]


def test_other_outputs_are_left_alone():
    rng = np.random.default_rng(7)
    counts = np.arange(40).reshape(10, 4) + rng.laplace(size=(400, 10, 4))
    pair = NeighborPair.add_record(np.ones((9, 4), int), np.arange(4))
    with pytest.raises(ValueError, match="must find something to look at"):
        found(counts, counts, pair=pair)
    for outputs in (counts, counts[:, :, 0], counts[:, None, :, 0], [{"a": 1.0}] * 400, ["a"] * 400):
        assert list(candidates(exploration(outputs, outputs, "rows"))) == []


def test_a_value_has_one_code():
    numbers = Layout(1)(np.array([0.0, -0.0, 2.0, 2 + 1e-12, 2.5, 1e300, NAN]).reshape(1, -1, 1))[0, 0]
    assert len(set(numbers.tolist())) == 5
    assert Layout(1)(np.array([[[0], [2]]], np.int8))[0, 0].tolist() == numbers[[0, 2]].tolist()
    table = written([[0], [2.0], [2.5], [float("nan")], ["2"], [None], [[1]]])
    listed = Layout(1)(np.array([table], object))[0, 0, :-1]
    assert listed[[0, 1, 2]].tolist() == numbers[[0, 2, 4]].tolist()
    assert len(set(listed.tolist())) == 7
