import math

import numpy as np
import pytest

from audit.attacks.likelihood_ratio import likelihood_ratio
from audit.events import LARGEST
from audit.neighbors import NeighborPair


def test_the_likelihood_ratio_is_the_difference_of_two_log_likelihoods():
    pair = NeighborPair.add_people([3, 5], cell=1)
    databases = []

    def log_likelihood(outputs, data):
        databases.append(data)
        return -np.abs(outputs - data).sum(axis=1)

    statistic = likelihood_ratio(log_likelihood, pair)
    assert statistic.name == "log-likelihood ratio of y over x"
    assert statistic.log_ratio
    outputs = np.array([[3, 5], [3, 6], [0, 5.25], [9, 5.5]])
    assert statistic(outputs).tolist() == [-1, 1, -0.5, 0]
    assert databases[0] is pair.x
    assert databases[1] is pair.y


def test_the_likelihood_ratio_is_infinite_where_one_database_only_can_give_an_output():
    pair = NeighborPair.declared("x", "y", "add_remove")
    log_p = {"x": [-math.inf, -2, -math.inf, 0], "y": [-1, -math.inf, -math.inf, -3]}
    statistic = likelihood_ratio(lambda outputs, data: np.array(log_p[data])[outputs], pair)
    assert statistic(np.arange(4)).tolist() == [LARGEST, -LARGEST, 0, -3]


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_entries_that_are_the_same_on_both_databases_cancel_where_each_depends_on_its_own(shape):
    pair = NeighborPair.move_people(np.arange(10, 16).reshape(shape), (0, 1)[-len(shape) :], (1, 2)[-len(shape) :])
    sizes = []

    def log_likelihood(outputs, data):
        sizes.append(outputs[0].size)
        return -np.abs(outputs - data).reshape(len(outputs), -1).sum(axis=1)

    outputs = np.random.default_rng(23).normal(12, 3, (40, *shape))
    whole, apart = (likelihood_ratio(log_likelihood, pair, entrywise=entrywise) for entrywise in (False, True))
    np.testing.assert_allclose(apart(outputs), whole(outputs), atol=1e-8)
    assert sizes == [2, 2, 6, 6]
    assert np.ptp(whole(outputs)) > 1


@pytest.mark.parametrize(
    ("log_likelihood", "words"),
    [
        (lambda outputs, data: outputs * math.nan, "must not be NaN, got 5 of 5 scores"),
        (lambda outputs, data: outputs * 0 + math.inf, "must not be NaN, got 5 of 5 scores"),
        (lambda outputs, data: 1.0, r"must give one score a run, got shape \(\) for 5 runs"),
    ],
)
def test_a_likelihood_that_is_none_is_refused(log_likelihood, words):
    statistic = likelihood_ratio(log_likelihood, NeighborPair.declared("x", "y", "add_remove"))
    with pytest.raises(ValueError, match=f"^log-likelihood ratio of y over x {words}"):
        statistic(np.ones(5))
