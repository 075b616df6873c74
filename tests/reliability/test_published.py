"""Tables that others published, and counts of production, row by row."""

from __future__ import annotations

import pytest

from experiments.experiment import find

QUICK = "phsafe_table10"


@pytest.mark.reliability(20)
@pytest.mark.parametrize("name", [QUICK, pytest.param("ons_unchanged", marks=pytest.mark.slow)])
def test_published_tables_are_made_again(name, record_property):
    """Made anew, and not as they were saved: the quick form has every row that is exact."""
    experiment = find(name)
    checks = list(experiment.check(experiment.functions.run(quick=True, seed=3, jobs=1)))
    record_property("tried", len(checks))
    assert [check.words for check in checks if not check.holds] == []
