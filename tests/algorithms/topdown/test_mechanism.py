"""TopDown's stages as mechanisms."""

import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.topdown import preset
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


def test_tables_promise_the_whole_budget():
    topdown = preset("micro", TREE, epsilon=3.0)
    for name in ("estimate", "rounded", "microdata"):
        assert topdown.stage(name, paths=[0]).claim == PureDP(3.0, "replace_one")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "measurements", "paths": [0]}, "paths must be of tables, got them of 'measurements'"),
        ({"name": "rounded", "paths": []}, r"at least one area must be released, got none of level None on paths \[\]"),
        ({"name": "tables"}, "stage must be one of measurements, estimate, rounded, microdata, got 'tables'"),
        ({"name": "measurements", "only": [(0, "sex")]}, "only must name levels and queries that are measured, got"),
        ({"name": "measurements", "only": []}, "at least one query must be released, got none"),
        ({"name": "rounded", "only": [(1, "detailed")]}, "only must be of the measurements, got it of 'rounded'"),
    ],
)
def test_bad_stages_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        preset("micro", TREE).stage(**arguments)
