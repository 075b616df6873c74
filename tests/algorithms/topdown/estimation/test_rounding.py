"""Whole numbers for a family, and what its constraints leave open: by hand, by brute force, and on random problems."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.topdown.estimation.family import Box, Family, answer
from algorithms.topdown.estimation.linear import Infeasible, conflict, failsafe, solve, system
from algorithms.topdown.estimation.rounding import check, round_family
from tests.helpers import in_full

TOTAL = np.array([0, 0, 0])
EACH = np.array([0, 1, 2])
seeds = st.integers(0, 2**32 - 1)


def box(name, groups, lower=None, upper=None):
    """Bounds by rows; 0 and infinity where there are none."""
    shape = np.shape(lower if upper is None else upper)
    low = np.zeros(shape) if lower is None else np.array(lower, float)
    high = np.full(shape, np.inf) if upper is None else np.array(upper, float)
    return Box(name, np.array(groups), low, high)


def family(parts, cells, parent=None, **others):
    return Family(parts, cells, (), parent=None if parent is None else np.array(parent), **others)


def keeps(tables, kin):
    """Every constraint, cell by cell in plain Python."""
    parts, cells = range(kin.parts), range(kin.cells)
    fine = all(tables[c][k] >= 0 for c in parts for k in cells)
    if kin.parent is not None:
        margin = list(cells) if kin.margin is None else kin.margin
        gap = [sum(tables[c][k] for c in parts) - kin.parent[k] for k in cells]
        fine &= all(sum(gap[k] for k in cells if margin[k] == g) == 0 for g in set(margin))
        fine &= kin.slack is None or sum(map(abs, gap)) <= kin.slack
    for bounds in kin.boxes:
        for c, g in np.ndindex(bounds.lower.shape):
            total = sum(tables[c][k] for k in cells if bounds.groups[k] == g)
            fine &= bounds.lower[c, g] <= total <= bounds.upper[c, g]
    return bool(fine)


def distance(tables, x, queries):
    return sum(np.abs(answer(groups, tables - x)).sum() for groups in queries)


def canonical(groups):
    return np.unique(groups, return_inverse=True)[1]


def random_problem(rng, parts, cells, root=False):
    """A mixture of integer tables with the same parent, bounds that it and some integers keep, and a chain of queries.

    Bounds are the range of the tables that are mixed, or the whole numbers around the answer of the mixture.
    """
    fine = canonical(rng.integers(0, cells, cells))
    coarse = canonical(rng.integers(0, 3, fine.max() + 1)[fine])
    chain = [np.zeros(cells, np.int64), coarse, fine, np.arange(cells)]
    tables = [rng.poisson(rng.choice([0.7, 3.0]), (parts, cells))]
    for _ in range(2):
        table = tables[0].copy()
        for _ in range(parts * cells * 2):  # people of two cells change parts, or in a part change cells
            (a, b), (i, j) = rng.integers(parts, size=2), rng.integers(cells, size=2)
            if rng.random() < 0.7 and coarse[i] != coarse[j]:
                continue
            if min(table[a, i], table[b, j]) > 0 and (a != b or root):
                table[a, i] -= 1
                table[b, j] -= 1
                table[b, i] += 1
                table[a, j] += 1
            elif root and table[a, i] > 0:
                table[a, i] -= 1
                table[a, j] += 1
        tables.append(table)
    tables = np.array(tables)
    x = np.tensordot(rng.dirichlet(np.ones(3)), tables, 1)
    boxes = []
    for number, groups in enumerate(chain):
        if rng.random() < 0.6:
            answers = answer(groups, tables).astype(float)
            lower, upper = answers.min(axis=0), answers.max(axis=0)
            if rng.random() < 0.5:
                lower, upper = np.floor(answer(groups, x) + 1e-9), np.ceil(answer(groups, x) - 1e-9)
            lower[rng.random(lower.shape) < 0.3] = 0
            upper[rng.random(upper.shape) < 0.3] = np.inf
            boxes.append(Box(f"query {number}", groups, lower, upper))
    parent = None if root else tables[0].sum(axis=0)
    return x, Family(parts, cells, (), tuple(boxes), parent), chain


BY_HAND = {
    "largest remainders": (
        [[0.2, 1.5], [0.7, 0.9], [1.1, 0.6]],
        family(3, 2, [2, 3]),
        ([[0, 1], [1, 1], [1, 1]], "remainder"),
    ),
    "whole already": ([[2 - 1e-7, 0.0], [1.0, 3 + 1e-7]], family(2, 2, [3, 3]), ([[2, 0], [1, 3]], "copy")),
}


@pytest.mark.parametrize(("x", "kin", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_roundings_by_hand(x, kin, expected):
    rounded = round_family(np.array(x), kin)
    assert (rounded.tables.tolist(), rounded.route) == expected
    assert (rounded.tables.dtype, rounded.reach) == (np.int64, 0)


def test_bounds_between_whole_numbers_mean_those_within():
    x = np.array([[0.9, 0.9]])
    assert round_family(x, family(1, 2, boxes=(box("band", [0, 0], [[0.3]], [[1.9]]),))).tables.sum() == 1
    with pytest.raises(Infeasible, match=r"^no tables keep all of: band in Fes >= 2; band in Fes <= 1$|<= 1; .* >= 2"):
        round_family(x, family(1, 2, boxes=(box("band", [0, 0], [[1.2]], [[1.9]]),)), labels=["Fes"])


def test_a_bound_moves_what_the_remainders_would_not():
    x = np.array([[0.6, 0.6], [0.4, 0.4]])
    assert round_family(x, family(2, 2, [1, 1])).tables.tolist() == [[1, 1], [0, 0]]
    bounded = family(2, 2, [1, 1], boxes=(box("total", [0, 0], upper=[[1], [2]]),))
    rounded = round_family(x, bounded)
    assert (rounded.tables.sum(axis=1).tolist(), rounded.route) == ([1, 1], "linear")
    kin = family(2, 2, [2, 2], boxes=(box("total", [0, 0], [[1], [3]], [[1], [3]]),))
    rounded = round_family(np.ones((2, 2)), kin)  # whole already
    assert (rounded.tables.sum(axis=1).tolist(), rounded.reach) == ([1, 3], 1)


def test_a_wider_reach_only_where_floor_and_ceiling_fail():
    rounded = round_family(np.array([[0.5], [0.6]]), family(2, 1, [3]))
    assert (rounded.tables.sum(), rounded.route, rounded.reach) == (3, "linear", 1)
    passes = [[np.array([0])], [np.array([0])]]
    assert round_family(np.array([[2.5], [2.6]]), family(2, 1, [3]), passes=passes).tables.sum() == 3
    with pytest.raises(Infeasible, match="no whole numbers near the solution keep all constraints"):
        round_family(np.array([[0.5], [0.6]]), family(2, 1, [30]))


def test_what_is_checked():
    kin = family(
        2,
        2,
        [3, 4],
        boxes=(box("total", [0, 0], [[3], [4]], [[3], [4]]), box("cells", [0, 1], [[0, 0], [0, 2]], [[1, 9], [9, 9]])),
    )
    assert check(np.array([[1, 2], [2, 2]]), kin) == ()
    assert check(np.array([[2, 1], [1, 3]]), kin, labels=["Fes", "Safi"]) == ("cells in Fes, group 0 <= 1",)
    assert check(np.array([[0, 3], [3, 1]]), kin) == ("cells in part 1, group 1 >= 2",)
    assert check(np.array([[-1, 4], [4, 0]]), kin)[0] == "negative"
    assert check(np.array([[1, 2], [2, 3]]), kin) == ("parent", "total in part 1 = 4")
    loose = family(1, 2, [3, 2], margin=np.array([0, 0]), slack=3.0)
    assert check(np.array([[4, 1]]), loose) == ()
    assert check(np.array([[5, 0]]), loose) == ("slack",)
    assert check(np.array([[4, 2]]), loose) == ("parent",)


def test_tables_that_no_solver_returns():
    for wrong in (-0.01, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"tables must be finite and not negative, got {wrong}"):
            round_family(np.array([[1.5, wrong, 0.0]]), family(1, 3))


def roundings(x, kin):
    """All ways to go up or down that keep the constraints."""
    floor = np.floor(x).astype(int)
    cells = np.argwhere(x > floor)
    for ups in itertools.product((0, 1), repeat=len(cells)):
        table = floor.copy()
        table[tuple(cells.T)] += np.array(ups, int)
        if keeps(table.tolist(), kin):
            yield table


@settings(max_examples=40)
@given(seeds)
def test_no_rounding_is_nearer(seed):
    rng = np.random.default_rng(seed)
    x, kin, chain = random_problem(rng, int(rng.integers(1, 4)), int(rng.integers(1, 4)), root=bool(rng.integers(2)))
    every, passes = list(roundings(x, kin)), [chain[:1], chain[1:]]
    rounded = round_family(x, kin).tables
    assert distance(rounded, x, chain[-1:]) == pytest.approx(min(distance(t, x, chain[-1:]) for t in every), abs=1e-6)
    rounded = round_family(x, kin, passes=passes)
    assert rounded.route in ("copy", "linear")
    for queries in passes:  # the second among those that are as near in the first
        best = min(distance(table, x, queries) for table in every)
        assert distance(rounded.tables, x, queries) == pytest.approx(best, abs=1e-6)
        every = [t for t in every if (answer(chain[0], t) == answer(chain[0], rounded.tables)).all()]


@pytest.mark.parametrize("times", in_full(40, 1_000))
def test_every_constraint_is_kept_without_branching(times):
    @given(seeds)
    @settings(max_examples=times)
    def hold(seed):
        rng = np.random.default_rng(seed)
        parts, cells = int(rng.integers(1, 6)), int(rng.integers(1, 9))
        x, kin, chain = random_problem(rng, parts, cells, root=rng.random() < 0.2)
        near = np.maximum(x + rng.choice([0.0, 1e-7, 1e-4]) * rng.uniform(-1, 1, x.shape), 0)  # as solvers leave it
        for passes in ((), ([chain[0]], chain[1:])):
            rounded = round_family(near, kin, passes=passes)
            assert keeps(rounded.tables.tolist(), kin)
            assert check(rounded.tables, kin) == ()
            assert rounded.tables.dtype == np.int64
            assert rounded.route != "integer"
            assert (rounded.reach, np.abs(rounded.tables - near).max(initial=0) < 1 + 1e-6) == (0, True)

    hold()


@settings(max_examples=6)
@given(seeds)
def test_the_failsafe_rounds_too(seed):  # each solves a dozen programs
    rng = np.random.default_rng(seed)
    x, kin, chain = random_problem(rng, int(rng.integers(1, 4)), 6)
    kin = replace(kin, parent=rng.permutation(kin.parent), boxes=kin.boxes[:3])  # the wrong parent
    assert (conflict(kin) is None) <= (failsafe(kin, chain[0]).slack == 1)
    loose = failsafe(kin, chain[0])
    rules = system(loose)
    n = rules.matrix.shape[1]
    free = np.tile([0.0, np.inf], (n, 1))
    some = [solve(rng.random(n), rules.matrix, rules.lower, rules.upper, free)[: x.size] for _ in range(3)]
    for passes in ((), [chain[:1], chain[1:]]):
        rounded = round_family(np.mean(some, axis=0).reshape(x.shape), loose, passes=passes)
        assert keeps(rounded.tables.tolist(), loose)
        assert (check(rounded.tables, loose), rounded.route != "integer") == ((), True)


def test_queries_and_bounds_that_are_not_nested():
    """Three pairs of three cells: queries need the integer program, and bounds may have no whole solution."""
    cycle = [np.array(groups) for groups in ([0, 0, 1], [1, 0, 0], [0, 1, 0])]
    x = np.array([[0.5, 0.5, 0.5]])
    rounded = round_family(x, family(1, 3), passes=[cycle])
    best = min(distance(np.array([table]), x, cycle) for table in itertools.product((0, 1), repeat=3))
    assert rounded.route == "integer"
    assert distance(rounded.tables, x, cycle) == best == 2.5
    kin = family(1, 3, boxes=tuple(box("pair", groups, [[1, 0]], [[1, np.inf]]) for groups in cycle))
    assert conflict(kin) is None
    with pytest.raises(Infeasible, match="no whole numbers near the solution"):
        round_family(x, kin)
