"""Spreads and products of entries: those that change are found, and nothing else is."""

import numpy as np
import pytest
from scipy import stats

from audit.attacks import movement
from audit.attacks.moments import candidates, product
from audit.attacks.movement import explore
from tests.audit.attacks.cases import exploration, names

RUNS = 2000


def found(x, y):
    """What the attack finds in outputs, all of which it may look at."""
    return tuple(candidates(exploration(x, y, "moments")))


@pytest.mark.parametrize(("held", "glimpse"), [(2**21, 2**20), (2**10, 2**20), (2**10, 40)])
@pytest.mark.parametrize("factor", [1.4, 0.7])
def test_an_entry_that_spreads_otherwise_is_found(held, glimpse, factor, monkeypatch):
    """Also where few outputs are held, or where one is all that is looked at: variances are compared in all of them."""
    monkeypatch.setattr(movement, "HELD", held)
    monkeypatch.setattr(movement, "GLIMPSE", glimpse)
    rng = np.random.default_rng(1)
    x, y = rng.normal(100, 3, (2, RUNS, 4, 10))
    y[:, 1, 7] = 100 + (y[:, 1, 7] - 100) * factor
    distance, ratio = found(x, y)
    assert ratio.name == "log-likelihood ratio of normal laws of output[1, 7]"
    assert ratio.proportional
    exact = stats.norm.logpdf(x[:9, 1, 7], 100, 3 * factor) - stats.norm.logpdf(x[:9, 1, 7], 100, 3)
    np.testing.assert_allclose(ratio(x[:9]), exact, rtol=0.2, atol=0.1)
    assert distance.name.startswith("distance of output[1, 7] from ")
    assert float(distance.name.rpartition(" ")[2]) == pytest.approx(100, abs=0.3)


def test_an_entry_of_few_values_is_of_no_normal_law():
    rng = np.random.default_rng(9)
    x, y = rng.integers(-1, 2, (2, RUNS, 40))
    y[:, 3] = 3 * rng.integers(-1, 2, RUNS)
    assert [name.partition(" from ")[0] for name in names(found(x, y))] == ["distance of output[3]"]


@pytest.mark.parametrize(
    "law", [lambda rng, size: rng.exponential(size=size) - 1, lambda rng, size: rng.choice([-1, 1], size)]
)
def test_third_and_fourth_moments_are_compared(law):
    """Laws with the mean and variance of the normal one."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, RUNS, 40))
    y[:, 3] = law(rng, RUNS)
    assert next(name.partition(" from ")[0] for name in names(found(x, y))) == "distance of output[3]"


@pytest.mark.parametrize(("correlation", "entries"), [(0.4, 40), (1.0, 40), (0.4, 400)])
def test_two_entries_whose_correlation_turns_are_found(correlation, entries):
    rng = np.random.default_rng(3)
    x, y = rng.normal(50, 7, size=(2, RUNS, entries))
    for outputs, sign in ((x, -1), (y, 1)):
        apart = np.sqrt(1 - correlation**2) * (outputs[:, 1] - 50)
        outputs[:, 1] = 50 + sign * correlation * (outputs[:, -1] - 50) + apart
    y[:, [1, -1]] *= 1 + 0.3 * (entries > 256)  # among more entries, those that change by themselves are paired
    assert f"product of output[1] and output[{entries - 1}] about their means" in names(found(x, y))


def test_equal_laws_and_entries_that_only_shift_give_nothing():
    """False alarm: 3 standard errors beyond the largest of as many by chance, in four laws."""
    rng = np.random.default_rng(5)
    for law in (
        lambda: rng.normal(size=(RUNS, 40)),
        lambda: rng.laplace(size=(RUNS, 40)),
        lambda: rng.integers(0, 2, (RUNS, 60)),
        lambda: np.zeros((RUNS, 3)),
    ):
        assert names(found(law(), law())) == []
    x, y = rng.laplace(size=(2, RUNS, 5))
    assert names(found(x, y + 0.5)) == []


def test_the_distance_of_a_single_number_is_tried_before_its_spread_clearly_changes():
    x, y = np.random.default_rng(5).normal(0, [[2], [1]], (2, 60))
    (distance,) = names(found(x, y))
    assert distance.startswith("distance of output from ")


def test_a_product_is_in_standard_deviations_and_0_for_what_is_no_number():
    rng = np.random.default_rng(6)
    x, y = rng.normal([10, -500, 0], [2, 30, 1], (2, RUNS, 3))
    score = product(explore(exploration(x, y, "moments")), 0, 1)
    outputs = np.array([[12.0, -470.0, 9.0], [8.0, -470.0, 9.0], [np.inf, -470.0, 9.0], [-1.797e308, 0.0, 0.0]])
    np.testing.assert_allclose(score(outputs), [1 / 2, -1 / 2, 0, 0], atol=0.1)
