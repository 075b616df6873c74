"""From measurements to tables: every constraint kept, both solvers, the failsafe, and what does not work out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from algorithms.topdown import TopDown, estimate, preset
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation import batched, linear, quadratic, rounding
from algorithms.topdown.estimation.constraints import Bounds, Invariant, structural_zeros, tightened
from algorithms.topdown.estimation.family import answer
from audit.claims import ZCDP, PureDP
from tests.helpers import in_full

SCHEMA = Schema({"home": ("house", "prison", "dorm"), "age": ("minor", "adult")})
TREE = Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 0])
QUERIES = [{"total": "1/4", "home": "1/4", "detailed": "1/2"}] * 3
SHARES = ["1/4", "1/4", "1/2"]


def keeps_everything(topdown: TopDown, tables: np.ndarray, histogram: np.ndarray) -> None:
    """Hold tables, shape (nodes, cells), against every rule, computed anew from the plan."""
    tree, schema = topdown.tree, topdown.schema
    assert tables.dtype == np.int64
    assert tables.min() >= 0
    for node in range(tree.n_nodes):
        children = np.flatnonzero(tree.parent == node)
        assert not children.size or np.array_equal(tables[children].sum(axis=0), tables[node])
    truth = topdown.tables(histogram)
    for invariant in topdown.invariants:
        areas = tree.cut(invariant.level)
        groups = schema.query(invariant.query).groups
        assert np.array_equal(answer(groups, tables[areas]), answer(groups, truth[areas]))
    for bounds in topdown.bounds:
        result = answer(schema.query(bounds.query).groups, tables[tree.cut(bounds.level)])
        assert bounds.lower is None or (result >= np.asarray(bounds.lower)).all()
        assert bounds.upper is None or (result <= np.asarray(bounds.upper)).all()


@st.composite
def problems(draw: st.DrawFn) -> tuple[TopDown, np.ndarray, int]:
    """A ragged tree, a truth, and constraints of every kind that the truth keeps."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    parents = [-1, 0] + [int(rng.integers(0, i)) for i in range(2, draw(st.integers(3, 9)))]
    tree = Hierarchy.from_parents(parents)
    histogram = rng.poisson(rng.choice([0.3, 3, 30]), (tree.n_leaves, SCHEMA.cells)) * (rng.random(6) < 0.8)
    levels = tree.depth + 1
    invariants: list[Any] = []
    if draw(st.booleans()):
        invariants.append(Invariant(draw(st.sampled_from(["total", "age"])), draw(st.integers(0, tree.depth))))
    bounds = []
    for query in draw(st.sampled_from([[], ["home"], ["age"], ["home", "age"]])):
        exact = answer(SCHEMA.query(query).groups, histogram)
        lower, upper = np.maximum(exact - rng.integers(0, 3, exact.shape), 0), exact + rng.integers(0, 9, exact.shape)
        bounds.append(Bounds(query, query, tree.depth, lower, upper.astype(float)))
    if draw(st.booleans()):
        histogram[:, SCHEMA.where(home="dorm", age="minor")] = 0
        zeros = structural_zeros(SCHEMA, tree.depth, [{"home": "dorm", "age": "minor"}])
        bounds = [replace(one, lower=None) for one in bounds] + [zeros]
    promise = draw(st.sampled_from([PureDP(2.0, "replace_one"), ZCDP(0.5, "replace_one"), PureDP(0.1)]))
    total_first = {j: [["total"], ["home", "detailed"]] for j in range(1, levels)}
    topdown = TopDown(
        SCHEMA,
        tree,
        Budget(promise, [f"1/{levels}"] * levels, [QUERIES[0]] * levels),
        invariants=invariants,
        bounds=bounds,
        passes=draw(st.sampled_from([None, total_first])),
        rounding=draw(st.sampled_from([(), [["total"], ["home", "detailed"]]])),
        minimal=draw(st.sampled_from(["home", "total"])),
        solver=draw(st.sampled_from(["piqp", "batched"])),
    )
    return topdown, histogram, seed


@pytest.mark.parametrize("times", in_full(15, 1_000))
def test_every_constraint_holds(times: int) -> None:
    @given(problems())
    @settings(max_examples=times)
    def hold(problem: tuple[TopDown, np.ndarray, int]) -> None:
        topdown, histogram, seed = problem
        result = topdown.estimate(topdown.measure(histogram, np.random.default_rng(seed)))
        keeps_everything(topdown, result.tables, histogram)

    hold()


def small(**options: Any) -> TopDown:
    promise = options.pop("promise", PureDP(2.0, "replace_one"))
    return TopDown(SCHEMA, TREE, Budget(promise, SHARES, QUERIES), **options)


HISTOGRAM = np.random.default_rng(8).poisson(9, (4, 6))


@pytest.mark.parametrize("solver", ["piqp", "batched"])
@pytest.mark.parametrize("name", ["micro", "e2e-1940", "h1"])
def test_without_noise_the_truth_comes_back(name: str, solver: str) -> None:
    tree = Hierarchy.regular(2, 3)
    topdown = preset(name, tree, epsilon=1e5, solver=solver)
    histogram = np.random.default_rng(2).poisson(2, (tree.n_leaves, topdown.schema.cells))
    result = topdown(histogram, 2, np.random.default_rng(1))
    assert np.array_equal(result, [histogram] * 2)


def test_the_redistricting_data_come_back_too() -> None:
    tree = Hierarchy.from_codes(["c"] * 3, ["t", "t", "u"], ["1", "2", "1"])
    topdown = preset("pl94-2020", tree, rho=1e10, facilities=np.ones((3, 8), int) * 5)
    histogram, rng = np.zeros((3, 2016), np.int64), np.random.default_rng(3)
    for leaf in range(3):
        histogram[leaf, rng.integers(0, 2016, 40)] += 1
    adults = topdown.schema.where(votingage="18 and over")
    for kind in topdown.schema.attributes["hhgq"]:
        mask = topdown.schema.where(hhgq=kind)
        histogram[:, np.flatnonzero(mask & adults)[0]] += 5
    histogram[:, topdown.schema.where(hhgq="nursing") & ~adults] = 0
    assert np.array_equal(topdown(histogram, 1, rng)[0], histogram)


def test_both_solvers_find_the_same_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real tables of the root have one optimum; rounded they are equally near to it, ties falling either way."""
    options: dict[str, Any] = {"invariants": [Invariant("total", 1)], "promise": PureDP(0.5, "replace_one")}
    monkeypatch.setattr(quadratic, "_TOLERANCE", 1e-10)  # at 1e-9 tables may be 2e-4 from the optimum
    first, second = small(solver="piqp", **options), small(solver="batched", **options)
    result = first.measure(HISTOGRAM, np.random.default_rng(5), size=10)
    one, other = first.estimate(result), second.estimate(result)
    assert np.array_equal(one, one.tables)  # as an array, an estimate is its tables
    assert np.abs(one.real[:, 0] - other.real[:, 0]).max() < 1e-4
    off, away = (np.abs(each.tables - each.real)[:, 0].sum(axis=-1) for each in (one, other))
    assert np.abs(off - away).max() < 1e-3
    same = (one.tables[:, 0] == other.tables[:, 0]).all(axis=-1)
    assert same.any()
    assert np.abs(one.real[same] - other.real[same])[:, :4].max() < 1e-4


def test_the_root_has_the_variance_of_least_squares() -> None:
    """Far from zero the estimate is linear: its covariance is the inverse of the weighted sum of all queries.

    Six variances and their 15 covariances over 4,000 runs, each within 5 standard errors: false alarm below 2e-5.
    """
    topdown = small(solver="batched")
    histogram = HISTOGRAM + 1_000
    result = topdown.measure(histogram, np.random.default_rng(9), size=4_000)
    errors = topdown.estimate(result).real[:, 0] - histogram.sum(axis=0)
    information = np.zeros((6, 6))
    for name in ("total", "home", "detailed"):
        groups = SCHEMA.query(name).groups
        information += (groups[:, np.newaxis] == groups) / result.noisy[0, name].variance[0]
    expected = np.linalg.inv(information)
    spread = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / len(errors))
    assert (np.abs(np.cov(errors.T) - expected) < 5 * 1.5 * spread).all()  # a half more for tails longer than normal
    measured = result.noisy[0, "detailed"].variance[0]
    assert np.diag(expected).max() < 0.95 * measured  # negative control: not the measured cells alone
    assert np.diag(np.cov(errors.T)).max() < measured


def test_bounds_of_cells_need_no_other_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = [Bounds("few", "detailed", 2, np.maximum(HISTOGRAM - 2, 0), HISTOGRAM + 3)]
    topdown = small(solver="batched", bounds=bounds)
    monkeypatch.setattr(quadratic, "solve", None)
    for run in topdown.estimate(topdown.measure(HISTOGRAM, np.random.default_rng(5), size=4)).tables:
        keeps_everything(topdown, run, HISTOGRAM)


def incompatible(*invariants: Invariant, **options: Any) -> tuple[TopDown, Any]:
    """A parent with six people in two cells, of whom its parts can have five.

    Of three people each, one part has at most one in either cell, the other three. No bound on a single cell says so.
    """
    tree = Hierarchy.regular(2, 1)
    histogram = np.array([[1, 1, 1, 0, 0, 0], [2, 1, 0, 0, 0, 0]])
    budget = Budget(PureDP(1e5, "replace_one"), ["1/2", "1/2"], [{"detailed": 1}] * 2)
    few = Bounds("few", "detailed", 1, None, [[1, 1, 3, 3, 0, 0], [3, 3, 1, 1, 0, 0]])
    rules = {"invariants": [Invariant("total", 1), *invariants], "bounds": [few]}
    topdown = TopDown(SCHEMA, tree, budget, **rules, **options)
    result = topdown.measure(histogram, np.random.default_rng(1))
    noisy = dict(result.noisy)
    noisy[0, "detailed"] = replace(noisy[0, "detailed"], answers=np.array([[4, 2, 0, 0, 0, 0]]))
    return topdown, replace(result, noisy=noisy)


@pytest.mark.parametrize("solver", ["piqp", "batched"])
def test_the_failsafe_keeps_constraints_and_is_reported(solver: str) -> None:
    """Also ages of the nation, which are invariant, and of which the minimal schema of the failsafe has none."""
    topdown, measurements = incompatible(minimal="total", solver=solver)
    result = topdown.estimate(measurements)
    keeps_everything(topdown, result.tables, np.array([[1, 1, 1, 0, 0, 0], [2, 1, 0, 0, 0, 0]]))
    assert result.tables[0, :2].sum() == 5  # one person gave way
    assert np.abs(result.tables[0] - [4, 2, 0, 0, 0, 0]).sum() == 2
    (failure,) = result.failures
    assert (failure.run, failure.area, result.routes["failsafe"]) == (0, "0", 1)
    assert all(words in failure.reason for words in ("parent", "few in 1, house, minor <= 1", "conflict"))
    ages = Invariant("age", 0)
    topdown, measurements = incompatible(ages, minimal="total", solver=solver)
    adult = replace(measurements.noisy[1, "detailed"], answers=np.array([[1, 1, 0, 1, 0, 0], [2, 1, 0, 0, 0, 0]]))
    noisy = {**measurements.noisy, (1, "detailed"): adult}  # who gives way would rather be an adult
    known = {**measurements.known, str(ages): np.array([[4, 2]])}
    result = topdown.estimate(replace(measurements, noisy=noisy, known=known))
    assert result.failures
    assert answer(SCHEMA.query("age").groups, result.tables[0]).tolist() == [4, 2]


def test_bounds_are_tightened_by_each_other() -> None:
    """What a total leaves: at most what the others need not have, at least what they cannot have; added up."""
    topdown, measurements = incompatible()
    with pytest.raises(ValueError, match=r"no tables keep all constraints of 1, 2: .*parent.* conflict"):
        topdown.estimate(measurements)  # without a failsafe conflicts are named
    few, totals, leave = topdown.tightened(measurements.known)
    assert few.upper.tolist() == [[4, 4, 4, 4, 0, 0], [1, 1, 3, 3, 0, 0], [3, 3, 1, 1, 0, 0]]
    assert not few.lower.any()
    assert totals.lower[:, 0].tolist() == [6, 3, 3]
    assert leave.box(slice(None)) is None
    least = few.lower.copy()
    least[2, 2] = 1  # somebody of the second part is there for certain: two at most are elsewhere
    again, *_ = tightened([replace(few, lower=least), totals], topdown.tree, SCHEMA.query("total"))
    assert again.upper[2].tolist() == [2, 2, 1, 1, 0, 0]
    assert again.lower[0].tolist() == [0, 0, 1, 0, 0, 0]
    more = np.where(np.arange(6) < 4, 1.0, 0.0) * [[0], [0], [1]]
    words = r"few and total of level 1 .* conflict: total in 2 would be 4 or more and 3 or less"
    with pytest.raises(ValueError, match=words):
        tightened([replace(few, lower=more), totals], topdown.tree, SCHEMA.query("total"))


@pytest.mark.parametrize("solver", ["piqp", "batched"])
def test_a_first_pass_that_does_not_converge_is_never_hidden(monkeypatch: pytest.MonkeyPatch, solver: str) -> None:
    """The batched solver stops after one step of the first pass: those families are solved one by one, both passes."""
    passes = {j: [["total", "home"], ["detailed"]] for j in range(3)}
    sound = small(solver="piqp", passes=passes)
    result = sound.measure(HISTOGRAM, np.random.default_rng(5), size=2)
    solve = batched.solve_level
    calls = []

    def hasty(*arguments: Any, **options: Any) -> Any:
        calls.append(len(calls))
        return solve(*arguments, **options, iterations=1 if len(calls) % 2 else 2000)

    monkeypatch.setattr(batched, "solve_level", hasty)
    assert np.array_equal(small(solver=solver, passes=passes).estimate(result).tables, sound.estimate(result).tables)
    assert bool(calls) == (solver == "batched")


def test_a_root_without_tables_names_its_conflicts() -> None:
    """Invariants that were tampered with: the bounds allow 20 people, and 99 are said to live there."""
    least = Bounds("small", "total", 0, [0], [20])
    topdown = small(promise=PureDP(1.0), invariants=[Invariant("age", 0)], bounds=[least], minimal="total")
    result = topdown.measure(np.zeros((4, 6), int), np.random.default_rng(1))
    (name,) = result.known
    with pytest.raises(ValueError, match=r"small.*age of level 0|age of level 0.*small"):
        topdown.estimate(replace(result, known={name: np.array([[50, 49]])}))


def stopping(solve: Any, where: Any) -> Any:
    """A solver that stops early in some families, and never in others."""
    return lambda family, **given: replace(solve(family, **given), converged=not where(family), primal=3.5)


def test_a_solver_that_stops_early_is_never_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    result = small().measure(HISTOGRAM, np.random.default_rng(5))
    solve = quadratic.solve
    monkeypatch.setattr(quadratic, "solve", stopping(solve, lambda family: True))
    with pytest.raises(RuntimeError, match=r"does not converge: residuals 3.5 \(people\).*there is no failsafe"):
        small().estimate(result)
    parts = stopping(solve, lambda family: family.margin is None and family.parent is not None)
    monkeypatch.setattr(quadratic, "solve", parts)
    saved = small(minimal="home").estimate(result)
    copied = {"2"} if saved.routes.get("copy") else set()
    assert {failure.area for failure in saved.failures} == {"0", "1", "2"} - copied
    keeps_everything(small(), saved.tables, HISTOGRAM)


def test_a_failsafe_that_does_not_work_out_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its solver stops early, what came out breaks a constraint, or no tables are left to it."""
    topdown, measurements = incompatible(minimal="total", solver="piqp")
    early = stopping(quadratic.solve, lambda family: family.margin is not None)

    def impossible(*_: Any, **__: Any) -> Any:
        raise linear.Infeasible(("few in 1", "parent"))

    neither = "no tables keep all of: .*, and neither does the failsafe: residuals"
    broken = "the tables must keep every .*, and break few in 1$"
    for place, name, other, error, words in (
        (quadratic, "solve", early, RuntimeError, neither),
        (estimate, "broken", lambda *_: "few in 1", RuntimeError, broken),
        (linear, "failsafe", impossible, ValueError, "no tables keep .* of 1, 2, not in the failsafe ei.*few"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, other)
            with pytest.raises(error, match=f"^{words}"):
                topdown.estimate(measurements)


def test_a_rounding_that_breaks_a_constraint_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    result = small().measure(HISTOGRAM, np.random.default_rng(5))
    monkeypatch.setattr(rounding, "check", lambda *_, **__: ("few in 1",))
    with pytest.raises(RuntimeError, match=r"^rounding breaks few in 1, and there is no failsafe for "):
        small().estimate(result)
