"""The two solvers of families: known solutions, certificates of optimality, each other, and rounding."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from algorithms.topdown.estimation import batched, quadratic
from algorithms.topdown.estimation.family import Box, Family, Fit, answer

PAIR = np.arange(2)
TOTAL = np.zeros(2, np.int64)


def fit(groups, answers, weights):
    return Fit("fit", np.asarray(groups), np.asarray(answers, np.float64), np.asarray(weights, np.float64))


def box(groups, lower, upper):
    return Box("box", np.asarray(groups), np.asarray(lower, np.float64), np.asarray(upper, np.float64))


def solve_batched(family, **options):
    """The batched solver on one family in one run."""
    fits = [replace(fit, answers=fit.answers[None]) for fit in family.fits]
    parents, starts = None if family.parent is None else family.parent[None, None], np.array([0, family.parts])
    return batched.solve_level(parents, starts, fits, family.boxes, **options)


def both(family):
    """Tables of both solvers, which must have converged."""
    exact, fast = quadratic.solve(family), solve_batched(family, iterations=50_000)
    assert exact.converged
    assert fast.converged.all()
    return exact.tables, fast.tables[0]


def random_family(seed, parts, cells, *, root=False, zeros=0.2, noise=5.0, boxes=True):
    """A family that has a solution: measurements, bounds around tables that exist."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(rng.gamma(0.5, 8.0, size=(1, cells)), size=(parts, cells)) * (rng.random(cells) >= zeros)

    def partition():
        labels = rng.integers(0, rng.integers(1, cells + 1), size=cells)
        return np.unique(labels, return_inverse=True)[1].reshape(-1)

    queries = [np.arange(cells)] * int(rng.random() < 0.8) + [partition() for _ in range(rng.integers(1, 4))]
    fits = []
    for groups in queries:
        weights = np.exp(rng.normal(0, 1, parts)) if rng.random() < 0.5 else np.ones(parts)
        weights = weights * rng.choice([1.0, 0.01]) * (rng.random(parts) >= 0.15)
        exact = answer(groups, truth)
        fits.append(fit(groups, exact + rng.normal(0, noise, exact.shape), weights))
    bounds = []
    for _ in range(rng.integers(0, 3) if boxes else 0):
        groups = (partition(), queries[-1], np.arange(cells))[rng.integers(3)]
        exact = answer(groups, truth).astype(np.float64)
        slack = rng.choice([0.0, 1.0, 4.0, np.inf], size=(2, *exact.shape))
        bounds.append(box(groups, np.maximum(exact - slack[0], 0), exact + slack[1]))
    if root:
        return Family(parts, cells, tuple(fits), tuple(bounds))
    return Family(parts, cells, tuple(fits), tuple(bounds), parent=truth.sum(axis=0))


def slope(family, tables):
    """Gradient of the squares."""
    total = np.zeros(tables.shape)
    for item in family.fits:
        residual = answer(item.groups, tables) - item.answers
        total += 2 * item.weights[:, None] * residual[:, item.groups]
    return total


def certificate(family, tables):
    """By how much the squares could be smaller at most: for feasible tables a bound, by convexity, found by an LP."""
    gradient, index = slope(family, tables), np.arange(tables.size).reshape(tables.shape)
    rows = [] if family.parent is None else [(index[:, i], n, n) for i, n in enumerate(family.parent)]
    for item in family.boxes:
        for part, group in np.ndindex(item.lower.shape):
            rows.append((index[part, item.groups == group], item.lower[part, group], item.upper[part, group]))
    sides = [(sign, cells, limit) for cells, least, most in rows for sign, limit in ((-1, -least), (1, most))]
    sides = [(sign * np.isin(np.arange(tables.size), cells), limit) for sign, cells, limit in sides if limit < np.inf]
    matrix, limits = ([*column] for column in zip(*sides, strict=True)) if sides else (None, None)
    largest = 1000 + 2 * tables.max()  # the root has no parent: far enough for a descent to show
    best = linprog(gradient.ravel(), A_ub=matrix, b_ub=limits, bounds=(0, largest), method="highs")
    assert best.status == 0
    return float((gradient * tables).sum() - best.fun)


def missed(family, tables):
    """By how much constraints are missed."""
    gaps = [-tables.min()]
    if family.parent is not None:
        gaps.append(np.abs(tables.sum(axis=0) - family.parent).max())
    for item in family.boxes:
        answers = answer(item.groups, tables)
        gaps += [(item.lower - answers).max(), (answers - item.upper).max()]
    return max(gaps)


HALF_MEASURED = (fit(PAIR, [[3, 1], [np.nan, np.nan]], [1, 0]), fit(TOTAL, [[np.nan], [np.nan]], [0, 0]))
BY_HAND = {
    # Not-a-number where the weight is 0; a query that no part is measured by; a part that nothing measures.
    "not measured": ((2, 2, HALF_MEASURED), [4, 4], [[3, 1], [1, 3]]),
    # Noise above the parent, which the lower bounds fill.
    "bounds on cells that leave no room": (
        (3, 1, (fit([0], [[-1], [10], [6]], [0.7, 0.3, 1]),), (box([0], [[0], [0], [3]], [[4], [5], [7]]),)),
        [3],
        [[0], [0], [3]],
    ),
}


@pytest.mark.parametrize(("parts", "parent", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_solutions_by_hand(parts, parent, expected):
    for tables in both(Family(*parts, parent=np.array(parent))):
        np.testing.assert_allclose(tables, expected, atol=1e-6)


def test_shortcuts_are_exact():
    only = Family(1, 2, (fit(PAIR, [[9, 2]], [1]),), parent=np.array([3, 4]))
    nobody = Family(2, 2, (fit(PAIR, [[9, 2], [3, 4]], [1, 1]),), parent=np.array([0, 0]))
    for family, tables in ((only, [[3, 4]]), (nobody, [[0, 0], [0, 0]])):
        assert quadratic.solve(family).tables.tolist() == solve_batched(family).tables[0].tolist() == tables
    impossible = replace(only, boxes=(box(TOTAL, [[8]], [[9]]),))
    for result in (quadratic.solve(impossible), solve_batched(impossible)):
        assert not np.any(result.converged)
        np.testing.assert_allclose(result.primal, 1)


def test_margin_and_slack():
    """Without a slack only the sum of 6 binds; with one of 2 one person moves, which counts twice."""
    family = Family(1, 2, (fit(PAIR, [[0, 6]], [1]),), parent=np.array([4, 2]), margin=TOTAL)
    for slack, expected in ((None, [0, 6]), (np.inf, [0, 6]), (2.0, [3, 3]), (5.0, [1.5, 4.5])):
        solution = quadratic.solve(replace(family, slack=slack))
        assert solution.converged
        np.testing.assert_allclose(solution.tables[0], expected, atol=1e-4)  # degenerate: 0 is its own optimum


def objective(family, tables):
    """The weighted sum of squares of tables, shape (parts, cells)."""
    return sum(fit.weights @ np.sum((answer(fit.groups, tables) - fit.answers) ** 2, axis=1) for fit in family.fits)


@settings(max_examples=40)  # two solvers and a linear program each
@given(
    seed=st.integers(0, 2**32), parts=st.integers(1, 5), cells=st.integers(2, 12), noise=st.sampled_from([0.5, 5, 50])
)
@example(seed=0, parts=5, cells=12, noise=5)
def test_both_solvers_are_optimal_and_agree(seed, parts, cells, noise):
    family = random_family(seed, parts, cells, noise=noise, root=parts == 1)
    exact, fast = both(family)
    value = objective(family, exact)
    assert objective(family, fast) == pytest.approx(value, rel=1e-7, abs=1e-6)
    if family.parent is not None:
        np.testing.assert_allclose(fast.sum(axis=0), family.parent, rtol=1e-13)
    assert min(fast.min(), exact.min()) >= 0
    assert max(missed(family, exact), missed(family, fast)) < 1e-5
    assert certificate(family, exact) < (1e-3 if parts == 1 else 1e-4) * (1 + value)
    assert parts == 1 or certificate(family, fast) < 1e-4 * (1 + value)


def test_certificate_sees_what_is_not_optimal():
    """Half a person moved between two parts, and one measurement shifted: the bound must rise."""
    family = random_family(3, 4, 6, zeros=0, boxes=False)
    tables = quadratic.solve(family).tables
    assert certificate(family, tables) < 1e-5
    place = int(np.argmax(np.sort(tables, axis=0)[-2]))
    giver, taker = np.argsort(tables[:, place])[-2:]
    moved = tables.copy()
    moved[[giver, taker], place] += [-0.5, 0.5]
    assert certificate(family, moved) > 1e-2
    first = family.fits[0]
    assert certificate(replace(family, fits=(replace(first, answers=first.answers + PAIR.sum()),)), tables) > 1e-2


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0, 1.0], [0.1, 5.0, 1.0, 2.0]])
def test_closed_form_is_the_solution(weights):
    """Detailed query alone, with bounds on cells or without: no steps, and the interior point method agrees."""
    rng = np.random.default_rng(5)
    truth = rng.poisson(3, size=(4, 30))
    fits = (fit(np.arange(30), truth + rng.normal(0, 6, truth.shape), weights),)
    bounds = box(np.arange(30), np.maximum(truth - 1, 0), truth + 2)
    for boxes, atol in (((), 2e-5), ((bounds,), 1e-4)):  # the other ends 3e-5 before a bound that is its own optimum
        family = Family(4, 30, fits, boxes, parent=truth.sum(axis=0))
        fast = solve_batched(family)
        assert fast.iterations.sum() == 0
        np.testing.assert_allclose(fast.tables[0], quadratic.solve(family).tables, atol=atol)


def test_infeasible_is_said_and_not_raised():
    """Lower bounds that add up to more than the parent, and to more than a cell that the parent does not have."""
    for lower in ([[4, 0], [7, 0]], [[0, 1], [0, 0]]):
        family = Family(2, 2, (fit(PAIR, [[3, 1], [4, 1]], [1, 1]),), (box(PAIR, lower, np.full((2, 2), np.inf)),))
        family = replace(family, parent=np.array([10, 0]))
        exact, fast = quadratic.solve(family), solve_batched(family, iterations=300)
        assert not exact.converged
        assert not fast.converged.any()
        assert min(exact.primal, fast.primal.max()) > 0.3  # one person too many, between three bounds at least
        np.testing.assert_allclose(fast.tables[0].sum(axis=0), family.parent)


def level(runs=6, boxes=True):
    """Two levels of weights, parents of different sizes, all that a level can have."""
    rng = np.random.default_rng(11)
    starts = np.array([0, 3, 4, 9])
    truth = rng.poisson(rng.gamma(0.5, 6, size=12), size=(9, 12))
    fits = []
    for groups in (np.arange(12), np.arange(12) // 4, np.arange(12) % 4, np.zeros(12, np.int64)):
        exact = answer(groups, truth)
        weights = np.where(np.arange(9) == 2, 0.3, 1.0)
        fits.append(Fit("fit", groups, exact + rng.normal(0, 4, size=(runs, *exact.shape)), weights))
    exact = answer(np.arange(12) // 4, truth).astype(np.float64)
    width = rng.integers(1, 4, size=(runs, *exact.shape))
    bounds = [Box("box", np.arange(12) // 4, np.maximum(exact - width, 0), exact + width)] if boxes else []
    if boxes:
        wide = rng.integers(1, 9, size=(runs, *truth.shape))
        bounds.append(Box("box", np.arange(12), np.maximum(truth - wide, 0.0), truth + wide.astype(float)))
    parents = np.array([truth[i:j].sum(axis=0) for i, j in itertools.pairwise(starts)])
    return np.broadcast_to(parents, (runs, 3, 12)), starts, fits, bounds


def only(arguments, runs):
    parents, starts, fits, boxes = arguments
    fits = [replace(item, answers=item.answers[runs]) for item in fits]
    boxes = [replace(item, lower=item.lower[runs], upper=item.upper[runs]) for item in boxes]
    return parents[runs], starts, fits, boxes


@pytest.mark.parametrize("boxes", [True, False])
def test_a_run_alone_is_as_in_a_batch(boxes):
    """Bit by bit, in any order and in two threads at once."""
    arguments = level(boxes=boxes)
    whole = batched.solve_level(*arguments)
    assert whole.converged.all()
    with ThreadPoolExecutor(2) as pool:
        alone = list(pool.map(lambda run: batched.solve_level(*only(arguments, [run])), range(6)))
    backwards = batched.solve_level(*only(arguments, [5, 3, 4, 0, 1, 2]))
    for run in range(6):
        assert (alone[run].tables[0] == whole.tables[run]).all()
        assert (alone[run].iterations[0] == whole.iterations[run]).all()
    assert (backwards.tables == whole.tables[[5, 3, 4, 0, 1, 2]]).all()


def test_a_level_is_its_families_needs_its_steps_and_is_rounded_to_its_parents():
    """Families that are cut out of the level, by the other solver."""
    parents, starts, fits, boxes = level()
    whole = batched.solve_level(parents, starts, fits, boxes)
    rounded = batched.largest_remainder(whole.tables, parents, starts)
    assert (np.add.reduceat(rounded, starts[:-1], axis=1) == parents).all()
    assert rounded.min() >= 0
    assert np.abs(rounded - whole.tables).max() < 1
    few = batched.solve_level(parents, starts, fits, boxes, iterations=3)
    assert not few.converged[:, [0, 2]].any()
    assert (few.iterations[:, [0, 2]] == 3).all()
    assert (few.dual[:, [0, 2]] > 0).all()
    for run, (number, (start, stop)) in itertools.product(range(2), enumerate(itertools.pairwise(starts))):
        parts, parent = slice(start, stop), parents[run, number]
        if number == 1:  # a single child is its parent, whether or not its bounds allow it
            assert (whole.tables[run, parts] == parent).all()
            continue
        cut = tuple(fit(item.groups, item.answers[run, parts], item.weights[parts]) for item in fits)
        bounds = tuple(box(item.groups, item.lower[run, parts], item.upper[run, parts]) for item in boxes)
        family = Family(stop - start, 12, cut, bounds, parent=parent)
        expected = objective(family, quadratic.solve(family).tables)
        assert objective(family, whole.tables[run, parts]) == pytest.approx(expected, rel=1e-7)


def test_counts_of_a_nation():
    """A hundred million people, noise of 1: what is added up exactly stays exact."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 10**7, size=(5, 12))
    queries = (np.arange(12), np.arange(12) // 4, np.zeros(12, np.int64))
    noisy = [answer(groups, truth) + rng.normal(0, 1, (5, groups.max() + 1)) for groups in queries]
    fits = tuple(fit(groups, answers, np.ones(5)) for groups, answers in zip(queries, noisy, strict=True))
    family = Family(5, 12, fits, parent=truth.sum(axis=0))
    exact, fast = both(family)
    assert objective(family, fast) == pytest.approx(objective(family, exact), rel=1e-6)
    np.testing.assert_allclose(fast, exact, atol=1e-4)


def test_a_root_is_rounded_to_the_nearest_and_tables_add_up():
    root = batched.largest_remainder(np.array([[[0.5, 1.49, 2.5, 3.0]]]), None, np.array([0, 1]))
    assert root.tolist() == [[[1, 1, 3, 3]]]
    with pytest.raises(ValueError, match=r"tables must add up to their parents, got a difference of 1"):
        batched.largest_remainder(np.array([[[1.0], [2.0]]]), np.array([[[4]]]), np.array([0, 2]))


@settings(max_examples=50)
@given(tenths=st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=2, max_size=5))
def test_largest_remainder_is_the_nearest(tenths):
    """No other whole table that adds up has a smaller sum of absolute errors: all are tried."""
    tables = np.array(tenths) / 10
    tables[-1] = np.ceil(tables[:-1].sum(axis=0) + tables[-1]) - tables[:-1].sum(axis=0)
    parent = np.rint(tables.sum(axis=0)).astype(np.int64)
    rounded = batched.largest_remainder(tables[None], parent[None, None], np.array([0, len(tables)]))[0]
    assert (rounded.sum(axis=0) == parent).all()
    assert (np.abs(rounded - tables) < 1).all()
    for column, whole, total in zip(tables.T, rounded.T, parent, strict=True):
        floors = np.floor(column + 1e-6)
        others = np.array([ups for ups in itertools.product((0, 1), repeat=len(column)) if sum(floors + ups) == total])
        assert np.abs(whole - column).sum() <= np.abs(floors + others - column).sum(axis=1).min() + 1e-9
