import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.topdown.population import synthetic_1940
from algorithms.topdown.presets import PRESETS

SEEDS = range(5)


@pytest.fixture(scope="module")
def populations():
    return [synthetic_1940(seed) for seed in SEEDS]


def by_type(population):
    """People by type of housing, shape (districts, 8)."""
    return population.histogram.reshape(-1, 8, 24).sum(axis=2)


def assert_consistent(population):
    """People live where there is a place for them, and every group-quarters facility has somebody."""
    people, places = by_type(population), population.facilities
    assert population.histogram.min() >= 0
    assert (people <= np.array([99, *[99_999] * 7]) * places).all()
    assert (people[:, 1:] >= places[:, 1:]).all()
    assert (people.sum(axis=1) >= 1).all()


# What is known of 1940. Beside each limit stand the mean and standard deviation (sd) of the statistic over 60
# populations; limits are about four sd away or more. The seeds are fixed, so that these tests cannot fail by chance;
# with other seeds one of them would with a probability below 1e-2.


def test_the_schema_is_that_of_the_end_to_end_test_and_the_tree_has_its_levels(populations):
    assert {name: len(levels) for name, levels in PRESETS["e2e-1940"].schema.attributes.items()} == {
        "hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 6
    }  # fmt: skip
    tree = populations[0].tree
    assert np.diff(tree.offsets).tolist() == [1, 4, 60, 1200]
    assert (tree.label(0), tree.label(1199)) == ("0001 / 0001 / 0001", "0004 / 0015 / 0020")
    assert (populations[0].histogram.shape, populations[0].facilities.shape) == ((1200, 192), (1200, 8))


def test_sizes_and_mixture_of_districts_are_those_of_1940(populations):
    for population in populations:
        people = population.histogram.sum(axis=1)
        assert np.median(people) == pytest.approx(865, rel=0.05)  # mean 870, sd 9
        assert people.mean() == pytest.approx(982, rel=0.03)  # mean 982, sd 5.5
        counties = people.reshape(-1, 20).sum(axis=1)
        assert np.median(counties) == pytest.approx(18_679, rel=0.09)  # mean 18,710, sd 400
        table = population.histogram.reshape(-1, 8, 24).sum(axis=1)  # of districts, by age, ethnicity and race
        assert 3.99 < (table > 0).sum(axis=1).mean() < 4.9  # mean 4.35, sd 0.07; 982 / 246 = 3.99 in 1940
        assert table[table > 0].mean() == pytest.approx(246, rel=0.15)  # mean 226, sd 3.5
        assert 10 < np.median(table[table > 0]) < 110  # mean 52, sd 9; 88 in 1940
        index = (table == 0).sum(axis=1)
        assert index.max() == 23
        assert index.min() <= 7  # mean 1.5, sd 1.2
        assert 0.83 < ((index >= 18) & (index <= 22)).mean() < 0.92  # mean 0.871, sd 0.008
        assert 25 <= (index <= 12).sum() <= 85  # mean 55, sd 7
        assert (index >= 22).sum() >= 210  # mean 303, sd 23


def test_housing_is_that_of_1940(populations):
    for population in populations:
        units, facilities = population.facilities[:, 0], population.facilities[:, 1:]
        at_home = by_type(population)[:, 0]
        occupied = units.sum() * 14 / 15
        assert at_home.sum() / occupied == pytest.approx(3.7, abs=0.06)  # mean 3.69, sd 0.01
        assert 0.04 < (facilities > 0).any(axis=1).mean() < 0.12  # mean 0.083, sd 0.008
        assert (facilities.sum(axis=0) > 0).sum() >= 6  # of the seven types
        assert np.array_equal(at_home > 0, units > 0)
        assert_consistent(population)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), states=st.integers(1, 3), counties=st.integers(1, 4), districts=st.integers(1, 30))
def test_every_shape_is_consistent(seed, states, counties, districts):
    population = synthetic_1940(seed, states=states, counties=counties, districts=districts)
    assert np.diff(population.tree.offsets).tolist() == [1, states, states * counties, states * counties * districts]
    assert_consistent(population)


def test_a_seed_is_a_population(populations):
    again = synthetic_1940(np.random.default_rng(0))
    assert np.array_equal(again.histogram, populations[0].histogram)
    assert np.array_equal(again.facilities, populations[0].facilities)
    assert not np.array_equal(populations[1].histogram, populations[0].histogram)
