"""GDPC and ADPC by hand, RDPC by the tree's own totals and raking, and the exact laws of what they release."""

import math

import numpy as np
import pytest

from algorithms.bugs.budget import ForgottenLevelRDPC
from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.hierarchy import Hierarchy
from algorithms.noise import TwoTailedGeometric
from algorithms.population import load, uniform_population
from audit.neighbors import NeighborPair
from tests.helpers import chi_square, refuses

ACCEPT, REJECT = 1e-6, 1e-12  # false alarm of a fit, and what a wrong law must fall below
TREE = Hierarchy.regular(2, 2)
EVERY = [GDPC(0.5), RDPC(0.5, TREE), RDPC(0.5, TREE, output="all"), ADPC(0.5), ADPC(0.5, 7), GaussianCounts(0.5)]


def fit(values, log_pmf):
    """P-value of the chi-square test of whole numbers against a law."""
    values = values.astype(np.int64)
    support = np.arange(values.min(), values.max() + 1)
    expected = values.size * np.exp(log_pmf(support))
    observed = np.bincount(values - support[0])
    return chi_square(np.append(observed, 0), np.append(expected, values.size - expected.sum()))


@pytest.mark.parametrize("mechanism", EVERY)
def test_what_every_mechanism_gives(mechanism):
    counts = np.array([10, 0, 3, 8])
    areas = 7 if getattr(mechanism, "output", "leaves") == "all" else 4
    for size in (0, 1, 3):
        released = mechanism(counts, size, np.random.default_rng(1))
        assert released.shape == (size, areas)
        assert released.dtype == (np.float64 if isinstance(mechanism, ADPC | RDPC) else np.int64)
        assert released.flags.writeable
    assert counts.tolist() == [10, 0, 3, 8]
    assert np.isfinite(mechanism([0, 0, 0, 0], 500, np.random.default_rng(2))).all()  # no people are counts too


# The paper's text, slowly


def test_gdpc_adds_noise_to_every_leaf_and_adpc_the_mean_of_its_parts(scripted, monkeypatch):
    released = GDPC(0.25)([10, 0, 3], 5, np.random.default_rng(3))
    epsilon, noise = scripted.pop()
    assert epsilon == 0.25
    np.testing.assert_array_equal(released, noise + np.array([10, 0, 3]))
    monkeypatch.setattr("algorithms.noise.counts.CHUNK", 7)  # pieces of two runs, and one left over
    released = ADPC(1.0, 5)([10, 0, 3], 5, np.random.default_rng(3))
    assert {epsilon for epsilon, _ in scripted} == {0.2}
    pieces = [np.mean([noise for _, noise in scripted[i : i + 5]], axis=0) for i in range(0, len(scripted), 5)]
    assert [len(piece) for piece in pieces] == [2, 2, 1]
    np.testing.assert_allclose(released, np.concatenate(pieces) + np.array([10, 0, 3]), rtol=1e-14)


@pytest.mark.parametrize("parents", [Hierarchy.regular(3, 2).parent, Hierarchy.regular(1, 2).parent, [-1, 0, 0, 1, 1]])
def test_rdpc_measures_every_area_and_rakes_each_level_to_the_one_above(parents, scripted, monkeypatch):
    """Section 2.2; `Hierarchy.totals` and `Hierarchy.rake` are compared with recursions in a test of their own."""
    tree = Hierarchy.from_parents(parents)
    monkeypatch.setattr("algorithms.noise.counts.CHUNK", 3 * tree.n_nodes)  # pieces of three runs
    counts = np.random.default_rng(4).integers(0, 4, tree.n_leaves)
    everything = RDPC(1.0, tree, output="all")(counts, 40, np.random.default_rng(5))
    assert {epsilon for epsilon, _ in scripted} == {1.0 / (tree.depth + 1)}
    assert len(scripted) == 14
    noise = np.concatenate([part for _, part in scripted])
    np.testing.assert_array_equal(everything, tree.rake(tree.totals(counts) + noise))
    only_leaves = RDPC(1.0, tree)(counts, 40, np.random.default_rng(5))
    np.testing.assert_array_equal(only_leaves, everything[:, tree.leaves])


# The laws of what is released


@pytest.mark.parametrize(("epsilon", "parts"), [(0.3, 4), (2.0, 2), (1.0, 1), (3.0, 9)])
def test_errors_of_adpc_follow_their_exact_law(epsilon, parts):
    mechanism = ADPC(epsilon, parts)
    released = mechanism([10, 0, 3, 77], 100_000, np.random.default_rng(9))
    sums = np.rint((released - [10, 0, 3, 77]) * parts)
    np.testing.assert_allclose(sums / parts, released - [10, 0, 3, 77], atol=1e-9)
    assert fit(sums.ravel(), mechanism.logpmf_sum) > ACCEPT
    assert fit(sums.ravel(), ADPC(1.1 * epsilon, parts).logpmf_sum) < REJECT
    if parts > 1:
        assert fit(sums.ravel(), ADPC(epsilon * (parts + 1) / parts, parts + 1).logpmf_sum) < REJECT


def test_residuals_spread_as_in_the_paper():
    tree, counts = uniform_population(1_000_000, 3, 100, rng=11)
    for mechanism in (GDPC(0.025), RDPC(0.1, tree), ADPC(0.05)):
        deviation = (mechanism(counts, 40, np.random.default_rng(12)) - counts).std()
        assert 56.0 <= deviation <= 57.0  # 370,440 residuals of sd 56.5: 0.5 is more than 4 standard errors


# Exact losses


def test_adpc_loses_nothing_where_nothing_changes():
    for epsilon in (1.0, 1e-9):
        same = ADPC(epsilon).exact_loss(NeighborPair.declared([5], [5], "add_remove"))
        assert (same.maximum, same.delta_at(0)) == (0, 0)


@pytest.mark.parametrize(("epsilon", "parts", "people"), [(1.0, 4, 1), (3.0, 3, 2), (2.0, 1, 1), (4.0, 8, 2)])
def test_adpc_of_two_counts_is_brute_force_over_both(epsilon, parts, people):
    mechanism = ADPC(epsilon, parts)
    reach = math.ceil(50 / mechanism.noise.epsilon)
    s = np.arange(-reach, reach + people * parts + 1)
    p, q = (np.exp(mechanism.logpmf_sum(s - shift)) for shift in (0, people * parts))
    p, q = np.multiply.outer(p, p), np.multiply.outer(q, q)
    law = mechanism.exact_loss(NeighborPair.move_people([5, 5], 0, 1, people))
    assert law.maximum == pytest.approx(2 * people * epsilon)
    assert law.reverse().maximum == law.maximum
    for at in 2 * people * epsilon * np.array([0, 0.25, 0.5, 0.7]):
        brute = np.maximum(p - math.exp(at) * q, 0).sum()
        assert law.delta_at(at) == pytest.approx(brute, rel=1e-5, abs=1e-18)
        assert law.delta_at(at) >= brute * (1 - 1e-9)
        assert law.reverse().delta_at(at) == pytest.approx(brute, rel=1e-5, abs=1e-18)


def test_a_law_too_large_for_a_table_is_not_tabulated():
    none, person = np.zeros(1001, int), np.ones(1001, int)
    assert ADPC(0.02).exact_loss(NeighborPair.declared(none, person, "add_remove")) is None
    assert ADPC(1e-4).exact_loss(NeighborPair.add_people([5, 5], 0)) is None
    rdpc, counts = RDPC(1.0, Hierarchy.regular(100, 1)), np.full(100, 1000)
    for people, largest in ((0, 0), (10, 1000), (900, None)):
        law = rdpc.exact_loss(NeighborPair.declared(counts, counts - people, "add_remove"))
        assert (law and law.maximum) == largest


def test_the_joint_law_of_rdpc_is_the_reference_s():
    tree, counts = Hierarchy.regular(10, 3), np.full(1000, 100)
    one_more = NeighborPair.add_people(counts, 7)
    for output in ("leaves", "all"):
        law = RDPC(1.0, tree, output).exact_loss(one_more)
        assert law.maximum == pytest.approx(1, abs=1e-12)
        assert law.probability[-1] == pytest.approx(0.099883, abs=1e-6)
        assert law.delta_at(0.5) == pytest.approx(0.0393008, abs=1e-6)
        assert law.delta_at(0.25) == pytest.approx(0.121529, abs=1e-6)
    for change, mechanism, largest in (
        (NeighborPair.move_people(counts, 0, 999), RDPC, 1.5),  # 2 J / (J + 1)
        (NeighborPair.move_people(counts, 0, 1), RDPC, 0.5),  # siblings: only the leaves change
        (one_more, ForgottenLevelRDPC, 4 / 3),
    ):
        assert mechanism(1.0, tree).exact_loss(change).maximum == pytest.approx(largest, abs=1e-12)


def test_rdpc_of_a_group_is_brute_force_over_all_its_measurements():
    x, y = [4, 0, 3, 8], [6, 1, 3, 8]  # areas 0, 1, 3 and 4 change by 3, 3, 2 and 1
    law = RDPC(1.5, TREE).exact_loss(NeighborPair.declared(x, y, "add_remove"))
    noise, k = TwoTailedGeometric(0.5), np.arange(-14, 18)
    p, q = np.ones(1), np.ones(1)
    for shift in (3, 3, 2, 1):
        both = [np.exp(noise.logpmf(k - at)) for at in (0, shift)]
        p, q = np.multiply.outer(p, both[0]).ravel(), np.multiply.outer(q, both[1]).ravel()
    assert law.maximum == pytest.approx(4.5)
    assert law.loss.size == 10
    for at in (0.0, 1.0, 2.5, 4.0):
        brute = np.maximum(p - math.exp(at) * q, 0).sum()
        assert law.delta_at(at) == pytest.approx(brute, abs=4e-3)  # the lattice leaves out a mass of 3e-3
        assert law.delta_at(at) >= brute


def test_the_areas_of_rdpc_are_those_of_its_outputs():
    tree, counts = load("morocco", cells=("area",))
    for output in ("leaves", "all"):
        mechanism = RDPC(1e6, tree, output)  # noise so small that outputs are the exact totals
        parent, released, leaves = mechanism.areas
        np.testing.assert_array_equal(parent, tree.parent)
        np.testing.assert_array_equal(leaves, tree.leaves)
        out = mechanism(counts, 1, np.random.default_rng(1))[0]
        np.testing.assert_allclose(out, tree.totals(counts)[released])


# Likelihoods


@pytest.mark.parametrize("mechanism", [GDPC(0.5), ADPC(0.5), ADPC(2.0, 3)])
def test_likelihoods_are_the_product_over_the_cells(mechanism, monkeypatch):
    monkeypatch.setattr("algorithms.noise.counts.CHUNK", 7)  # pieces of two runs, and one left over
    counts = np.array([10, 0, 3])
    outputs = mechanism(counts, 9, np.random.default_rng(4))
    parts, law = getattr(mechanism, "parts", 1), getattr(mechanism, "logpmf_sum", mechanism.noise.logpmf)
    for data in (counts, np.array([11, 0, 3])):
        wanted = law(np.rint((outputs - data) * parts)).sum(axis=1)
        np.testing.assert_allclose(mechanism.log_likelihood(outputs, data), wanted, rtol=1e-9)


def test_what_cannot_come_out_has_no_likelihood():
    counts = [5, 7]
    outputs = np.array([[5.0, 7], [5.5, 7], [5.25, 7], [5.1, 7], [math.inf, 7], [1e308, 7], [math.nan, 7]])
    quarter = np.isfinite(ADPC(1.0).log_likelihood(outputs, counts))
    assert quarter.tolist() == [True, True, True, False, False, False, False]
    assert np.isfinite(GDPC(1.0).log_likelihood(outputs[:5], counts)).tolist() == [True, False, False, False, False]
    for mechanism in (GDPC(1.0), ADPC(1.0)):
        found = mechanism.log_likelihood(outputs, counts)
        assert found[3] == found[4] == -math.inf
        assert math.isnan(found[-1])  # minus infinity would read as evidence
    assert ADPC(1e-9).log_likelihood([[1e9]], [5]) < -1  # errors too many to be listed
    third = ADPC(1.0, 3)([5, 7], 2000, np.random.default_rng(2))
    assert np.isfinite(ADPC(1.0, 3).log_likelihood(third, counts)).all()
    assert GDPC(1.0).log_likelihood(np.empty((0, 2)), counts).shape == (0,)


@pytest.mark.parametrize("mechanism", [GDPC(1.0), ADPC(1.0), GaussianCounts(1.0)])
def test_likelihoods_are_of_outputs_and_databases_have_the_same_leaves(mechanism):
    columns = "outputs must have one column for each of 2 leaves, got shape (1, 3)"
    refuses(ValueError, columns, mechanism.log_likelihood, [[1, 2, 3]], [1, 2])
    refuses(TypeError, "outputs must be numbers, got dtype <U1", mechanism.log_likelihood, [["a", "b"]], [1, 2])
    unlike = NeighborPair.declared([1, 2], [1, 2, 3], "add_remove")
    refuses(ValueError, "the two databases must have the same leaves, got 2 and 3", mechanism.exact_loss, unlike)


@pytest.mark.parametrize("mechanism", EVERY)
def test_counts_are_of_people_one_for_each_leaf(mechanism):
    for counts, message in (
        ([1, -1, 0, 0], "counts must not be negative, got -1"),
        ([[1, 2, 3, 4], [1, 2, 3, 4]], "counts must be one entry for each leaf, got shape (2, 4)"),
        ([], "counts must be one entry for each leaf, got shape (0,)"),
    ):
        refuses(ValueError, message, mechanism, counts, 2, np.random.default_rng(0))


def test_a_tree_is_a_tree_that_counts_fit_an_output_one_of_two_and_parts_are_counted():
    refuses(TypeError, "tree must be a Hierarchy, got list", RDPC, 1.0, [-1, 0])
    refuses(ValueError, 'output must be "leaves" or "all", got \'root\'', RDPC, 1.0, TREE, output="root")
    rule = "counts must have one entry for each of 4 leaves, got shape (3,)"
    refuses(ValueError, rule, RDPC(1.0, TREE), [1, 2, 3], 2, np.random.default_rng(0))
    refuses(ValueError, "parts must be at least 1, got 0", ADPC, 1.0, 0)
    refuses(TypeError, "parts must be an integer, got True", ADPC, 1.0, True)
    with pytest.raises(ValueError, match="counts must be at most 2251799813685248 for 1024 parts, got"):
        ADPC(1.0, 1024)([2**53 - 1], 1, np.random.default_rng(1))


@pytest.mark.parametrize("parts", [1, 3, 4, 5, 7, 10])
def test_the_outputs_of_adpc_are_possible_under_every_truth(parts):
    """Each is a function of one whole number: parts times the count, plus noise."""
    grid = {k / parts for k in range(-4000, 4000)}
    for count in (10, 11, 123):
        assert set(ADPC(1.0, parts)([count], 2000, np.random.default_rng(count)).ravel()) <= grid
    # Negative control: the exact count added to a mean of noise leaves the grid where 1 / parts is no binary fraction.
    mean_of_noise = ADPC(1.0, parts)([0], 2000, np.random.default_rng(1)).ravel()
    assert (set(mean_of_noise + 11) <= grid) == (parts in (1, 4))
