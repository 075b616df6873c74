"""TopDown's stages as mechanisms, and its records of persons."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.topdown import preset
from algorithms.topdown.mechanism import records_of, tabulate
from audit.claims import PureDP

TREE = Hierarchy.regular(3, 2)
COUNTS = 10 + np.arange(36).reshape(9, 4) % 7


def test_tables_of_paths_are_those_of_their_areas():
    topdown = preset("micro", TREE)
    whole, part, one = (
        topdown.stage("rounded", **options)(COUNTS, 5, np.random.default_rng(4))
        for options in ({}, {"paths": [0, 8]}, {"paths": [8], "level": 1})
    )
    np.testing.assert_array_equal(part, whole[:, [0, 1, 3, 4, 12]])
    np.testing.assert_array_equal(one, whole[:, [3]])


@pytest.mark.parametrize("name", ["estimate", "rounded", "microdata"])
def test_tables_promise_the_whole_budget_under_either_relation(name):
    topdown = preset("micro", TREE, epsilon=3.0)
    assert topdown.stage(name, paths=[0]).claim == PureDP(3.0, "replace_one")
    assert topdown.stage(name, level=0, relation="add_remove").claim == PureDP(1.5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "measurements", "paths": [0]}, "paths must be of tables, got them of 'measurements'"),
        ({"name": "rounded", "paths": []}, r"at least one area must be released, got none of level None on paths \(\)"),
        ({"name": "rounded", "paths": [9]}, r"leaf must be in 0..8, got 9"),
        ({"name": "tables"}, "stage must be one of measurements, estimate, rounded, microdata, got 'tables'"),
        ({"name": "rounded", "level": 5}, "level must be in 0..2, got 5"),
        ({"name": "measurements", "level": -1}, "level must be in 0..2, got -1"),
        ({"name": "measurements", "only": [(0, "sex")]}, "only must name levels and queries that are measured, got"),
        ({"name": "measurements", "only": []}, "at least one query must be released, got none"),
        ({"name": "rounded", "only": [(1, "detailed")]}, "only must be of the measurements, got it of 'rounded'"),
    ],
)
def test_bad_stages_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        preset("micro", TREE).stage(**arguments)


def test_records_are_the_tables():
    topdown = preset("micro", TREE)
    release = topdown(COUNTS, 1, np.random.default_rng(1))[0]
    records = records_of(topdown, release)
    assert records.shape == (release.sum(), 3)
    assert np.array_equal(records, records[np.lexsort(records.T[::-1])])
    assert np.array_equal(tabulate(topdown, records), release)
    stages = [topdown.stage(name)(COUNTS, 2, np.random.default_rng(1)) for name in ("rounded", "microdata")]
    assert np.array_equal(*stages)
    assert topdown.stage("estimate", level=1)(COUNTS, 2, np.random.default_rng(1)).shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (np.zeros((2, 2), int), "must have 3 columns, the leaf and each attribute, got shape \\(2, 2\\)"),
        (np.array([[0, 0, 0], [9, 0, 0]]), "that exist, got \\[9, 0, 0\\] in row 1"),
        (np.array([[0, 2, 0]]), "that exist, got \\[0, 2, 0\\] in row 0"),
        (np.array([[0, 0, -1]]), "that exist, got \\[0, 0, -1\\] in row 0"),
    ],
)
def test_records_that_nobody_can_be_are_refused(records, words):
    with pytest.raises(ValueError, match=words):
        tabulate(preset("micro", TREE), records)
