"""What the constraints of a family leave open: conflicts, the failsafe's slack and the smallest tolerance."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from algorithms.topdown.estimation.family import Box
from algorithms.topdown.estimation.linear import Infeasible, conflict, failsafe, smallest_tolerance
from algorithms.topdown.estimation.rounding import round_family
from tests.algorithms.topdown.estimation.test_rounding import EACH, TOTAL, box, canonical, family, random_problem, seeds

CONFLICTS = {
    "bounds that contradict each other": (
        family(
            2,
            3,
            [4, 2, 2],
            boxes=(
                box("total", TOTAL, [[1], [1]], [[9], [9]]),
                box("least", TOTAL, [[2], [5]]),
                box("most", EACH, upper=[[9, 9, 9], [2, 1, 1]]),
            ),
        ),
        {"least in Safi >= 5", *(f"most in Safi, group {k} <= {n}" for k, n in ((0, 2), (1, 1), (2, 1)))},
    ),
    "a slack that is too small": (
        family(1, 2, [3, 2], margin=np.array([0, 0]), slack=1.0, boxes=(box("least", [0, 1], [[5, 0]]),)),
        {"slack", "least in Fes, group 0 >= 5"},
    ),
}


@pytest.mark.parametrize(("kin", "expected"), CONFLICTS.values(), ids=CONFLICTS)
def test_conflicts_are_named(kin, expected):
    names = conflict(kin, labels=["Fes", "Safi", "Taza"])
    assert (set(names), len(names)) == (expected, len(expected))


@settings(max_examples=6)
@given(seeds)
def test_none_of_the_names_can_be_left_out(seed):  # each solves dozens of programs
    rng = np.random.default_rng(seed)
    boxes = []
    for number in range(8):
        groups = canonical(rng.integers(0, 3, 4))
        lower, upper = np.zeros((2, groups.max() + 1)), np.full((2, groups.max() + 1), np.inf)
        at = rng.integers(2), rng.integers(groups.max() + 1)
        if rng.random() < 0.5:
            lower[at] = rng.integers(1, 5)
        else:
            upper[at] = rng.integers(0, 3)
        boxes.append(Box(f"bound {number}", groups, lower, upper))
    kin = family(2, 4, rng.integers(0, 4, 4), boxes=tuple(boxes))

    def possible(chosen):
        own = tuple(b for b in boxes if any(name.startswith(b.name) for name in chosen))
        held = replace(kin, boxes=own, parent=kin.parent if "parent" in chosen else None)
        try:
            smallest_tolerance(held, [])
        except Infeasible:
            return False
        return True

    names = conflict(kin)
    assert (names is None) == possible(["parent", *(b.name for b in boxes)])
    if names is not None:
        assert not possible(names)
        assert all(possible([other for other in names if other != name]) for name in names)


def test_an_error_names_few_and_survives_a_process():
    error = Infeasible(tuple(f"bound {number}" for number in range(12)))
    assert str(error).endswith("bound 8; bound 9; and 2 more")
    sent = copy.copy(error)  # by the steps of pickling
    assert (sent.names, str(sent)) == (error.names, str(error))


def test_the_slack_of_the_failsafe():
    boxes = (box("least", [0, 1, 2, 3], [[4, 0, 2, 0]]),)
    kin = family(1, 4, [3, 2, 0, 4], boxes=boxes)
    loose = failsafe(kin, np.array([0, 0, 1, 1]))  # one person too many in cell 0, two in cell 2, and as many too few
    assert (loose.slack, loose.margin.tolist(), loose.boxes) == (7.0, [0, 0, 1, 1], boxes)
    parts = family(2, 3, [5, 5, 5], boxes=(box("least", [0, 1, 2], [[4, 0, 0], [3, 0, 0]]),))
    assert failsafe(parts, TOTAL).slack == 5  # which give way together
    rounded = round_family(np.array([[4.25, 0.75, 2.25, 1.75]]), loose)
    assert (rounded.tables.tolist(), rounded.reach) == ([[4, 1, 2, 2]], 0)


def test_a_margin_that_cannot_be_kept():
    boxes = (box("least", EACH, [[3, 0, 0], [3, 0, 0]]),)
    with pytest.raises(Infeasible, match="no tables keep all of: ") as caught:
        failsafe(family(2, 3, [1, 2, 9], boxes=boxes), np.array([0, 0, 1]), labels=["Fes", "Safi"])
    assert set(caught.value.names) == {"parent", "least in Fes, group 0 >= 3", "least in Safi, group 0 >= 3"}


def test_far_from_the_tables_only_in_the_failsafe():
    loose = family(1, 3, [9, 9, 0], margin=TOTAL, slack=1.0)
    rounded = round_family(np.array([[5.5, 4.5, 8.0]]), loose)
    assert (rounded.tables.tolist(), rounded.reach) == ([[9, 9, 0]], 2)


def least_by_cells(kin, targets):
    """The same program on all cells, row by row and dense."""
    n, rows, most = kin.parts * kin.cells, [], []

    def bound(part, cells, upper, own):
        row = np.zeros(n + 1)
        row[part * kin.cells + cells] = np.sign(own)
        row[-1] = -(abs(own) == 2)
        rows.append(row)
        most.append(upper)

    for b in kin.boxes:
        for part, group in np.ndindex(b.lower.shape):
            cells = np.flatnonzero(b.groups == group)
            bound(part, cells, -b.lower[part, group], -1)
            if b.upper[part, group] < np.inf:
                bound(part, cells, b.upper[part, group], 1)
    for groups, values in targets:
        for part, group in np.ndindex(values.shape):
            bound(part, np.flatnonzero(groups == group), values[part, group], 2)
            bound(part, np.flatnonzero(groups == group), -values[part, group], -2)
    sums = np.hstack([np.tile(np.eye(kin.cells), kin.parts), np.zeros((kin.cells, 1))])
    return linprog(np.eye(n + 1)[-1], A_ub=np.array(rows), b_ub=most, A_eq=sums, b_eq=kin.parent).fun


@settings(max_examples=20)
@given(seeds)
def test_the_smallest_tolerance_is_that_of_all_cells(seed):
    """Cells that no query or bound tells apart are merged."""
    rng = np.random.default_rng(seed)
    _, kin, chain = random_problem(rng, 3, 6)
    targets = [(groups, rng.normal(2, 2, (3, groups.max() + 1))) for groups in chain[: rng.integers(0, 3)]]
    assert smallest_tolerance(kin, targets) == pytest.approx(least_by_cells(kin, targets), abs=1e-6)
