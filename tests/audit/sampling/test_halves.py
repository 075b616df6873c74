from __future__ import annotations

import pytest

from audit.sampling.streams import Phase, halves


def test_phases_are_distinct():
    numbers = [int(phase) for phase in Phase]
    assert len(set(numbers)) == len(Phase) == 7


@pytest.mark.parametrize("runs", [0, 1, 2, 7, 100])
def test_halves_are_equal_or_nearly(runs):
    first, second = halves(runs)
    assert first + second == runs
    assert 0 <= first - second <= 1
