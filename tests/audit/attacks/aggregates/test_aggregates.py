"""Outputs as a whole: who is among rows in random order is found, and nothing where laws are equal."""

import numpy as np
import pytest
from scipy import optimize, stats

from audit.attacks.aggregates import SHARED, _shared, candidates
from audit.claims import ApproxDP
from audit.measure.loss import measure_loss_from_outputs
from audit.values import NAN
from tests.audit.attacks.cases import exploration

RUNS = 2000


def found(x, y):
    """Names of what the attack finds in outputs, all of which it may look at."""
    return [one.name for one in candidates(exploration(x, y, "whole"))]


def codes(rng, runs=RUNS):
    return rng.integers(0, 1000, (runs, 20))


def shuffled(rng, ages):
    """Twenty people in random order, one of whom is known."""
    outputs = codes(rng, len(ages))
    outputs[:, 0] = ages
    return rng.permuted(outputs, axis=1)


def test_a_value_at_any_place_is_found():
    rng = np.random.default_rng(1)
    x, y = shuffled(rng, np.full(RUNS, 499)), shuffled(rng, np.full(RUNS, 501))
    assert sorted(found(x, y)) == ["entries that are 499", "entries that are 501"]
    assert found(x, shuffled(rng, np.full(RUNS, 499))) == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda outputs: outputs.__setitem__((slice(None), 3), 2000), "largest of all entries"),
        (lambda outputs: outputs.__setitem__((slice(None), 3), -1), "smallest of all entries"),
        (lambda outputs: outputs.__setitem__((slice(None), 3), outputs[:, 7]), "different values"),
        (lambda outputs: outputs.__setitem__((slice(None), 0), -outputs[:, 1:].sum(axis=1)), "sum of all entries"),
    ],
)
def test_what_only_all_entries_tell_is_found(change, name):
    rng = np.random.default_rng(2)
    x, y = codes(rng), codes(rng)
    change(y)
    assert name in found(x, rng.permuted(y, axis=1))


def test_equal_laws_give_nothing():
    """False alarm: 4 statistics, 40 times, 7e-6 each."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        assert found(codes(rng, 200), codes(rng, 200)) == []
        assert found(rng.laplace(size=(200, 5)), rng.laplace(size=(200, 5))) == []


def test_a_value_that_one_entry_shows_is_left_to_it():
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 9, (2, RUNS, 4))
    y[:, 2] = 5
    assert not any(name.startswith("entries that are") for name in found(x, y))


def test_what_is_no_number_has_no_part():
    rng = np.random.default_rng(5)
    x, y = rng.laplace(size=(2, RUNS, 5))
    x[:, 3], y[:, 3] = np.inf, NAN
    assert found(x, y) == []


# Changes of scale that no entry shows by itself: sums over all entries find them, and nothing where laws are equal


SCALE = 8 / 9  # as of a mean over nine where the neighbor's is over eight
CLAIM = ApproxDP(1.0, 1e-5)


def sums_found(x, y):
    """Sums over all entries that the attack finds in outputs, all of which it may look at."""
    return [one for one in candidates(exploration(x, y, "whole")) if one.name.startswith("weighted")]


def exact_epsilon(entries, delta):
    """Loss of normal laws of standard deviations 1 and SCALE in that many entries: their ratio is of the squares."""
    x, y = stats.chi2(entries), stats.chi2(entries, scale=SCALE**2)

    def excess(epsilon):  # of the more likely of either direction, beyond the squares where the ratio is e^epsilon
        low = (-epsilon - entries * np.log(SCALE)) * 2 / (1 / SCALE**2 - 1)
        high = (epsilon - entries * np.log(SCALE)) * 2 / (1 / SCALE**2 - 1)
        toward_y, toward_x = y.cdf(low) - np.exp(epsilon) * x.cdf(low), x.sf(high) - np.exp(epsilon) * y.sf(high)
        return np.log(max(toward_y, toward_x, 1e-300) / delta)

    return optimize.brentq(excess, 0, 300)


@pytest.mark.parametrize(("entries", "runs", "least"), [(2000, 300, 3.5), (200, 2000, 3.0), (50, 5000, 1.8)])
def test_a_scale_of_all_entries_is_found_and_proves_no_more_than_its_exact_loss(entries, runs, least):
    """The exact losses are 66.5, 15.2 and 7.4; as many runs as these can prove 4.55, 6.68 and 7.64 at most."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, runs, entries))
    result = measure_loss_from_outputs(x, y * SCALE, CLAIM, relation="add_remove", confidence=0.95, rng=2)
    assert (result.verdict, result.attack) == ("violated", "whole")
    assert least <= result.measured.epsilon <= exact_epsilon(entries, CLAIM.delta)


def normal(rng, size):
    return rng.normal(size=size)


@pytest.mark.parametrize(
    ("law", "factor", "least"),
    [
        (normal, SCALE, 2.3),
        (normal, np.where(np.arange(300) % 2, SCALE, 1 / SCALE), 1.5),
        (lambda rng, size: np.geomspace(1e-3, 1e6, 300) * rng.normal(size=size), SCALE, 2.3),
        (lambda rng, size: rng.standard_cauchy(size=size), SCALE, 1.0),
        (lambda rng, size: rng.normal(size=size) + rng.normal(size=(size[0], 1)) * np.linspace(-2, 2, 300), SCALE, 2.0),
    ],
    ids=["down", "down and up", "sizes", "Cauchy", "shared, signs"],
)
def test_any_spread_out_change_of_scale_is_found(law, factor, least):
    rng = np.random.default_rng(3)

    def made(runs):
        return 40 + law(rng, (runs, 300)), 40 + law(rng, (runs, 300)) * factor

    several, fresh, apart = sums_found(*made(300)), made(1000), []  # in standard deviations of scores
    for on_x, on_y in ([statistic(side) for side in fresh] for statistic in several):
        apart.append((on_y.mean() - on_x.mean()) / np.sqrt((on_x.var() + on_y.var()) / 2))
    assert max(apart) > least


@pytest.mark.parametrize(("runs", "entries"), [(150, 40), (20, 200)])
def test_shared_directions_are_those_of_the_singular_value_decomposition(runs, entries):
    """Two clear directions among more entries than runs, and among fewer; their sign is of no account."""
    rng = np.random.default_rng(3)
    sides = [
        rng.normal(size=(runs, entries)) + rng.normal(size=(runs, 2)) @ rng.normal(size=(2, entries)) for _ in "xy"
    ]
    sides[1] = sides[0][::-1] + 0.1 * sides[1]
    directions = _shared(*sides)
    _, _, exact = np.linalg.svd(np.concatenate([side - side.mean(axis=0) for side in sides]), full_matrices=False)
    assert 2 <= len(directions) <= SHARED
    np.testing.assert_allclose(np.abs(np.sum(directions * exact[: len(directions)], axis=1)), 1, rtol=1e-12)
    np.testing.assert_allclose(directions @ directions.T, np.eye(len(directions)), atol=1e-12)


def test_equal_scales_give_nothing():
    """False alarm: 30 times, 1e-3 each; 3 of 3,500 such pairs did."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        assert sums_found(rng.normal(size=(40, 500)), rng.normal(size=(40, 500))) == []
        assert sums_found(rng.standard_cauchy(size=(40, 50)), rng.standard_cauchy(size=(40, 50))) == []
        assert sums_found(*(rng.normal(size=(2, 40, 50)) + rng.normal(size=(2, 40, 1)))) == []


def test_what_is_no_number_has_no_part_in_sums():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(2, 100, 400))
    x[:, 3], y[:, 3], x[5, 4], y[5, 5] = np.inf, NAN, -np.inf, 1e308
    squares = sums_found(x, y * SCALE)[-1]
    assert np.isfinite(squares(x)).all()
    more = x[:9].copy()
    more[:, 3] = -np.inf
    np.testing.assert_array_equal(squares(more), squares(x[:9]))
    assert sums_found(x, np.where(np.arange(400) == 3, np.inf, rng.normal(size=(100, 400)))) == []


def test_of_few_outputs_the_value_that_differs_most_is_tried():
    """As in an early audit of rows in any order: nothing is clear yet, and a value of one database stands anywhere."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 9, (2, 8, 30)).astype(float)
    y[np.arange(8), rng.integers(0, 30, 8)] = 77
    assert found(x, y)[-1] == "entries that are 77"
