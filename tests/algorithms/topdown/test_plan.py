"""What a TopDown release is told beforehand: schema, spine, shares, constraints."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian, TwoTailedGeometric
from algorithms.schema import Grouping, Schema
from algorithms.topdown import TopDown, preset
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import (
    Bounds,
    Constraint,
    Invariant,
    broken,
    facility_bounds,
    structural_zeros,
)
from audit.claims import ZCDP, ApproxDP, PureDP

SCHEMA = Schema(
    {"home": ("house", "prison", "dorm"), "age": ("minor", "adult")},
    {"kind": Grouping("home", {"own": ("house",), "shared": ("prison", "dorm")})},
)
BOUNDED = PureDP(1.0, "replace_one")
TREE = Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
HALVES = Budget(BOUNDED, ["1/4", "1/4", "1/2"], [{"detailed": 1}, {"total": "1/3", "home": "2/3"}, {"detailed": 1}])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((BOUNDED, [1], [["total"]]), TypeError, "queries of level 0 must be a mapping of names to shares"),
        ((ApproxDP(1, 1e-9), [1], [{"total": 1}]), TypeError, "PureDP or ZCDP"),
        ((PureDP(0.0), [1], [{"total": 1}]), ValueError, "epsilon must be positive and finite, got 0"),
        ((ZCDP(np.inf), [1], [{"total": 1}]), ValueError, "rho must be positive and finite, got inf"),
        ((BOUNDED, ["1/2", "1/3"], [{"total": 1}] * 2), ValueError, "levels must add up to 1, got 5/6"),
        ((BOUNDED, ["1/2", "1/2"], [{"total": 1}]), ValueError, "each of 2 levels, got 1"),
        ((BOUNDED, [1], [{"total": "1/2", "age": "1/4"}]), ValueError, "queries at level 0 must add up to 1, got 3/4"),
    ],
)
def test_bad_budgets_are_refused(arguments: tuple, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Budget(*arguments)
    with pytest.raises(ValueError, match="relation"):
        HALVES.under("unbounded")


def test_noise_pays_for_what_a_neighbor_changes() -> None:
    for promise, law in (
        (PureDP(0.8, "replace_one"), TwoTailedGeometric(0.05)),
        (PureDP(0.8, "add_remove"), TwoTailedGeometric(0.1)),
        (ZCDP(0.8, "replace_one"), DiscreteGaussian(10**0.5)),
        (ZCDP(0.8, "add_remove"), DiscreteGaussian(5**0.5)),
    ):
        budget = Budget(promise, ["1/2", "1/2"], [{"total": 1}, {"total": "1/4", "age": "3/4"}])
        result = budget.law(Fraction(1, 2), "total", 1)
        assert type(result) is type(law)
        assert result.variance == pytest.approx(law.variance, rel=1e-12)
        assert result.variance >= law.variance  # rounded towards more noise


@given(st.fractions(Fraction(1, 10**9), 1), st.floats(0.1, 1e6), st.sampled_from(["replace_one", "add_remove"]))
@settings(max_examples=100)
def test_rounding_never_spends_more_than_the_share(share: Fraction, total: float, relation: Any) -> None:
    """In exact fractions, of what the law itself says: epsilon, or one over its squared scale."""
    factor = 1 if relation == "add_remove" else 2
    concentrated = Budget(ZCDP(total, relation), [1], [{"total": 1}]).law(share, "total", 0)
    pure = Budget(PureDP(total, relation), [1], [{"total": 1}]).law(share, "total", 0)
    assert factor / (2 * Fraction(concentrated.scale) ** 2) <= Fraction(total) * share
    assert factor * Fraction(pure.epsilon) <= Fraction(total) * share


def test_smaller_trees_go_without_some_levels() -> None:
    for name, levels in (
        ("pl94-2020", (104, 1440, 447, 687, 1256, 165)),
        ("pl94-2020", (104, 1440, 447, 687, 165)),
        ("pl94-2020", (1440, 447, 687, 165)),
        ("h1", (350, 1456, 495)),
        ("e2e-1940", (1, 1, 1)),
    ):
        topdown = preset(name, Hierarchy.regular(2, len(levels) - 1))
        assert tuple(topdown.budget.levels) == tuple(Fraction(part, sum(levels)) for part in levels)


ONES = np.ones((4, 8))
BAD_PRESETS = [
    ("pl94", {}, "preset must be one of e2e-1940, pl94-2020, h1, micro, got 'pl94'"),
    ("e2e-1940", {"tree": Hierarchy.regular(2, 5)}, "levels of e2e-1940, .*: 4, got 6"),
    ("e2e-1940", {"tree": "tree"}, "TypeError: tree must be a Hierarchy, got str"),
    ("micro", {"epsilon": 1, "rho": 1}, "epsilon and rho exclude each other, got 1 and 1"),
    ("h1", {"levels": ("state", "country", "block")}, "levels must be of nation.*'country'"),
    ("h1", {"levels": ("block", "state", "tract")}, "in the order nation"),
    ("h1", {"levels": ("state", "block")}, "levels of h1, state, block: 2, got 3"),
    ("e2e-1940", {"facilities": ONES[:3]}, r"shape \(4, 8\), got \(3, 8\)"),
    ("e2e-1940", {"facilities": -ONES}, r"whole numbers from 0 to less than 2\*\*40, got -1"),
    ("e2e-1940", {"facilities": ONES * 1.5}, "whole numbers from 0 .*, got 1.5"),
    ("e2e-1940", {"facilities": 5}, "TypeError: facilities must be a table of counts by type, got 5"),
    ("micro", {"facilities": ONES}, "facilities must be given with settings of persons, got them with micro"),
    ("micro", {"solver": "gurobi"}, 'solver must be "piqp" or "batched"'),
    ("micro", {"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
    ("micro", {"minimal": "race"}, "query must be"),
    ("micro", {"minimal": 3}, "TypeError: minimal must be the name of a query, got 3"),
    ("micro", {"passes": {1: [["total"]]}}, "passes of level 1 must name its queries once, detailed"),
    ("micro", {"passes": [["detailed"]]}, "TypeError: passes must be a mapping of levels"),
    ("micro", {"invariants": [Invariant("total", 1)] * 2}, "invariants must be distinct"),
    ("micro", {"invariants": [("total", 0)]}, "TypeError: invariants must each be Invariant, got"),
    ("micro", {"bounds": ["x"]}, "TypeError: bounds must each be Bounds, got 'x'"),
]


@pytest.mark.parametrize(("name", "options", "words"), BAD_PRESETS)
def test_bad_presets_are_refused(name: str, options: dict, words: str) -> None:
    with pytest.raises((TypeError, ValueError)) as error:
        preset(name, **{"tree": Hierarchy.regular(2, 2), **options})
    assert error.type is (TypeError if words.startswith("TypeError: ") else ValueError)
    assert re.search(words.removeprefix("TypeError: "), str(error.value))


CONFLICTING = [Bounds("a", "age", 2, [5, 2], None), Bounds("h", "home", 2, None, [1, 2, 1])]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": 1.0}, "budget must be a Budget, got float"),
        ({"tree": Hierarchy.regular(2, 1)}, "each of 2 levels of the tree, got 3"),
        ({"budget": Budget(BOUNDED, [0, "1/2", "1/2"], HALVES.queries)}, "the root must be measured"),
        ({"bounds": CONFLICTING}, "a and h conflict: total in 5 would be 7 or more and 4 or less"),
    ],
)
def test_a_plan_needs_parts_that_fit(change: dict, words: str) -> None:
    with pytest.raises(TypeError if change == {"budget": 1.0} else ValueError, match=words):
        TopDown(**{"schema": SCHEMA, "tree": TREE, "budget": HALVES, **change})


def test_bounds_of_an_area_are_those_of_its_parts() -> None:
    query = SCHEMA.query("age")
    lower = [[1, 0], [2, 5], [0, 0]]
    upper = [[4, np.inf], [3, 9], [7, 8]]
    result = Constraint.spread("ages", query, TREE, TREE.leaves, lower, upper)
    assert result.lower.tolist() == [[3, 5], [3, 5], [0, 0], *lower]
    assert result.upper.tolist() == [[14, np.inf], [7, np.inf], [7, 8], *upper]
    answers = np.zeros((TREE.n_nodes, 2), np.int64)
    assert broken(result, answers, TREE) == "ages: minor in 0 must be from 3 to 14, got 0"
    words = f"ages: minor in {TREE.labels[3]} must be from 1 to 4, got 0"
    assert broken(result, answers[3:], TREE, slice(3, 6)) == words
    assert broken(result, np.array([[1, 0], [2, 5]]), TREE, slice(3, 5)) is None


def test_bad_bounds_are_refused() -> None:
    for lower, upper, words in (
        ([[0, 0]], [np.inf, np.inf], "lower bounds of ages must have shape \\(3, 2\\), got \\(1, 2\\)"),
        ([0.5, 0], [np.inf, np.inf], "must be whole numbers, 0 or more, got 0.5"),
        ([np.inf, 0], [np.inf, np.inf], "must be whole numbers, 0 or more, got inf"),
        ([3, 0], [2, 5], "must not be above the upper, got 3 above 2 for minor in 3"),
    ):
        with pytest.raises(ValueError, match=words):
            Constraint.spread("ages", SCHEMA.query("age"), TREE, TREE.leaves, lower, upper)


def test_facilities_and_structural_zeros_bound_persons() -> None:
    result = facility_bounds("home", 2, [[3, 0, 2], [0, 1, 0], [1, 1, 1]])
    assert np.asarray(result.lower).tolist() == [[0, 0, 2], [0, 1, 0], [0, 1, 1]]
    assert np.asarray(result.upper).tolist() == [[297, 0, 199_998], [0, 99_999, 0], [99, 99_999, 99_999]]
    result = facility_bounds("home", 2, [[3, 0, 2]], (1, 99_999))
    assert np.asarray(result.lower).tolist() == [[3, 0, 2]]
    assert np.asarray(result.upper).tolist() == [[299_997, 0, 199_998]]
    result = structural_zeros(SCHEMA, 2, [{"home": "dorm", "age": "minor"}])
    assert np.asarray(result.upper).tolist() == [np.inf, np.inf, np.inf, np.inf, 0, np.inf]


def test_the_truth_must_keep_what_is_public_before_any_noise() -> None:
    histogram = np.ones((3, 6), np.int64)
    zeros = structural_zeros(SCHEMA, 2, [{"home": "dorm", "age": "minor"}])
    topdown = TopDown(SCHEMA, TREE, HALVES, bounds=[zeros])
    words = "before any noise, and break structural zeros: dorm, minor in 0 must be 0, got 3"
    with pytest.raises(ValueError, match=words):
        topdown.measure(histogram, np.random.default_rng(1))
    least = Bounds("a hundred", "total", 1, [100], None)
    with pytest.raises(ValueError, match="a hundred: total in 0 must be 200 or more, got 18"):
        TopDown(SCHEMA, TREE, HALVES, bounds=[least]).measure(histogram, np.random.default_rng(1))


def test_bad_histograms_are_refused() -> None:
    for histogram, words in (
        (np.ones((2, 6)), "shape \\(3, 6\\): leaves of the tree, cells of the schema; got \\(2, 6\\)"),
        (np.full((3, 6), -1), "must not be negative, got -1"),
        (np.full((3, 6), 2**38), "less than 2\\*\\*40 people"),
    ):
        with pytest.raises(ValueError, match=words):
            TopDown(SCHEMA, TREE, HALVES).measure(histogram, np.random.default_rng(1))
