"""The bottom-up mechanism against known truth: its samplers bit by bit, its losses, weights, invariants, accuracy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.bottom_up import BottomUp, PublishedTotals, WeightedBottomUp
from algorithms.bottom_up import inverse_cdf as inverse_module
from algorithms.bottom_up.accuracy import accuracy, expected_error
from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.bottom_up.weighted import UNITS, round_units, units_of
from algorithms.bugs.census import ABSENT
from algorithms.bugs.systems.bottom_up import FractionalCounts, UndeclaredTotals
from algorithms.flaxman import ADPC, GDPC
from algorithms.hierarchy import Hierarchy
from algorithms.noise import TwoTailedGeometric
from algorithms.schema import Schema
from audit.claims import PureDP
from audit.neighbors import NeighborPair
from experiments.bottom_up_curve import curve, smallest_epsilon
from tests.helpers import refuses

TREE = Hierarchy.from_codes(["a", "b", "a", "b", "c"], ["1", "1", "2", "2", "1"])
COUNTS = np.array([[5, 3], [2, 0], [7, 7], [1, 1], [9, 0]])  # areas a 22, b 4, c 9
SCHEMA = Schema({"sex": ("female", "male"), "age": ("0-17", "18-64", "65+")})


# The sampler by inversion


@pytest.mark.parametrize("bits", [2, 7, 14])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_the_law_of_inversion_is_that_of_all_uniforms(bits, epsilon):
    noise = InverseCdf(epsilon, bits=bits)
    values = noise.invert(np.arange(2**bits))
    assert (np.diff(values) >= 0).all()
    k = np.arange(-noise.reach, noise.reach + 1)
    found = np.array([(values == one).sum() for one in k])
    assert found[0] > 0
    assert np.array_equal(found, np.rint(np.exp(noise.logpmf(k)) * 2**bits))
    assert np.array_equal(noise.counts * 2, np.bincount(np.abs(values), minlength=noise.reach + 1))
    x, y = (dict(zip(k + shift, found, strict=True)) for shift in (0, 1))
    law = noise.exact_loss(1)
    assert law.infinite_mass == pytest.approx(sum(n for one, n in x.items() if not y.get(one)) / 2**bits, rel=1e-12)
    assert law.missing_mass == pytest.approx(law.infinite_mass, rel=1e-12)
    finite = [math.log(n / y[one]) for one, n in x.items() if n and y.get(one)]
    assert law.loss.size == 0 or law.loss.max() == pytest.approx(max(finite))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_inversion_at_53_bits_is_the_geometric_law_but_for_its_tails(epsilon):
    noise, ideal = InverseCdf(epsilon), TwoTailedGeometric(epsilon)
    assert noise.counts.sum() == noise.half == 2**52
    zero = (1 - math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    assert math.exp(noise.logpmf(0)) == pytest.approx(zero, rel=1e-12)
    k = np.arange(-noise.reach, noise.reach + 1)
    assert np.abs(np.exp(noise.logpmf(k)) - np.exp(ideal.logpmf(k))).max() < 4 / 2**53 * max(1, 1 / epsilon)
    assert noise.reach == math.floor((54 * math.log(2) - math.log1p(math.exp(-epsilon))) / epsilon)
    for uniform in (noise.half - 1, noise.half):  # next to the middle, where logarithms nearly cancel
        assert noise.invert(np.array([uniform]))[0] == 0
    assert noise.logpmf([noise.reach + 1, 0.5]).tolist() == [-np.inf, -np.inf]
    assert np.isnan(noise.logpmf(np.nan))


def test_the_tails_of_inversion_have_holes_before_they_end():
    wide = InverseCdf(0.01)
    assert (wide.counts == 0).any()
    assert wide.exact_loss(1).infinite_mass > 100 / 2**53  # not one uniform in 2**53
    assert wide.exact_loss(1).loss.max() > 10 * 0.01  # steps above epsilon before the support ends


def test_inversion_draws_its_law_from_either_source():
    noise = InverseCdf(0.7)
    edges = np.arange(-6, 8) - 0.5
    for rng in (np.random.default_rng(5), "secure"):
        drawn = noise.sample((4, 10_000), rng)
        assert drawn.shape == (4, 10_000)
        found = np.histogram(drawn, edges)[0]
        p = np.exp(noise.logpmf(edges[:-1] + 0.5))
        deviations = (found - drawn.size * p) / np.sqrt(drawn.size * p * (1 - p))
        assert np.abs(deviations).max() < 7  # 13 normal scores: false alarm below 4e-11, for the secure draws too


# Counts


def test_noise_is_that_of_gdpc_and_tables_add_up():
    mechanism = BottomUp(0.8, TREE)
    noisy = mechanism(COUNTS, 4, np.random.default_rng(3))
    assert np.array_equal(noisy.reshape(4, -1), GDPC(0.8)(COUNTS.reshape(-1), 4, np.random.default_rng(3)))
    tables = mechanism.tables(noisy)
    assert np.array_equal(tables[:, 0], noisy.sum(axis=1))
    assert np.array_equal(tables[:, 1], noisy[:, 0] + noisy[:, 2])
    assert np.array_equal(BottomUp(0.8).tables(noisy)[:, 1:], noisy)


def test_margins_add_up_every_combination():
    noisy = np.arange(2 * 5 * 6).reshape(2, 5, 6)
    margins = BottomUp(1.0, TREE, SCHEMA).margins(noisy)
    assert list(margins) == ["total", "sex", "age", "detailed"]
    for name, table in margins.items():
        groups = SCHEMA.query(name).groups
        leaves = table[:, TREE.leaves]
        assert np.array_equal(leaves, np.stack([noisy[..., groups == g].sum(-1) for g in range(groups.max() + 1)], -1))
        assert np.array_equal(table[:, 0].sum(-1), noisy.sum(axis=(1, 2)))
    three = Schema({"a": ("0", "1"), "b": ("0", "1"), "c": ("0", "1", "2")})
    assert [*BottomUp(1.0, schema=three).margins(np.zeros((1, 12)))][4:] == ["a*b", "a*c", "b*c", "detailed"]


def test_exact_loss_is_epsilon():
    for epsilon in (0.2, 3.0):
        mechanism = BottomUp(epsilon, TREE)
        law = mechanism.exact_loss(NeighborPair.add_people(COUNTS, (4, 1)))
        assert law.maximum == pytest.approx(epsilon)
        assert law.delta_at(0) == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)
        moved = NeighborPair.move_people(COUNTS, (0, 0), (1, 1))
        assert mechanism.exact_loss(moved).maximum == pytest.approx(2 * epsilon)
        assert (mechanism.claim, mechanism.sensitivity) == (PureDP(epsilon), 1)


def test_likelihoods_and_losses_add_up_cells():
    for noise in ("exact", "inverse_cdf"):
        mechanism = BottomUp(1.0, noise=noise)
        outputs = mechanism(COUNTS, 3, np.random.default_rng(0))
        assert mechanism.entrywise
        expected = mechanism.law.logpmf(outputs - COUNTS).sum(axis=(1, 2))
        assert np.allclose(mechanism.log_likelihood(outputs, COUNTS), expected)
    assert mechanism.log_likelihood(COUNTS[np.newaxis] + 38, COUNTS)[0] == -np.inf  # beyond the reach of 37
    law = replace(mechanism, epsilon=2.0).exact_loss(NeighborPair.move_people([5, 5], 0, 1))
    assert law.infinite_mass == pytest.approx(4 / 2**53)
    assert law.quantile(0.9999) == pytest.approx(4.0, rel=1e-9)
    wide = replace(mechanism, epsilon=1e-6)  # too wide to tabulate
    assert wide.exact_loss(NeighborPair.add_people([5, 5], 0)) is wide.log_likelihood is None


# Weighted samples


def records(*rows):
    return np.array(rows, float).reshape(-1, 2)


@settings(max_examples=50)
@given(st.lists(st.floats(2**-20, 7.3), max_size=12), st.floats(2**-20, 7.3), st.integers(0, 12))
def test_a_record_changes_one_rounded_count_by_its_weight_rounded_up_or_down(weights, added, place):
    sample = WeightedBottomUp(1.0, 7.3, (2,))
    before = [[1, weight] for weight in weights]
    x = sample.counts(records(*before))
    y = sample.counts(records(*before[:place], [1, added], *before[place:]))
    grid = math.floor(added * UNITS + 0.5) / UNITS
    assert y[0] == x[0] == 0
    assert y[1] - x[1] in (math.floor(grid), math.ceil(grid))
    assert y[1] - x[1] <= sample.sensitivity == 8


def test_the_order_of_records_does_not_matter_where_floating_point_sums_break_the_sensitivity():
    sample, floats, counts = WeightedBottomUp(1.0, 1.0, (1,)), set(), set()
    for seed in range(200):
        weights = np.random.default_rng(seed).permutation([0.1] * 25 + [1.0] * 7)
        floats.add(math.floor(sum(weights) + 0.5))
        counts.add(int(sample.counts([[0, weight] for weight in weights])[0]))
    assert len(floats) > 1  # one database, two rounded counts: adding a record of weight 1 may change one by 2
    assert len(counts) == 1


def test_halves_go_up_and_cells_are_counted_row_by_row():
    given_records = records([0, 0.5], [1, 1.25], [1, 1.25], [3, 0.4999])
    assert WeightedBottomUp(1.0, 2, (2, 2)).counts(given_records).tolist() == [[1, 3], [0, 0]]
    assert UNITS == 2**20
    assert np.array_equal(units_of(given_records, (2, 2), 2)[0] / UNITS, [0.5, 2.5])
    assert round_units(np.array([UNITS // 2 - 1, UNITS // 2])).tolist() == [0, 1]


@pytest.mark.parametrize(("weight", "changed"), [(4.5, 5), (4.0, 4), (0.3, 0), (1.5, 2)])
def test_the_loss_of_a_record_is_its_share_of_the_largest_weight(weight, changed):
    sample = WeightedBottomUp(1.0, 4.5, (2,))
    pair = NeighborPair.add_record(records([0, 2.0], [1, 1.0]), [1, weight])
    assert sample.exact_loss(pair).maximum == pytest.approx(changed / 5)
    assert sample.claim == PureDP(1.0)
    outputs = sample(pair.x, 3, np.random.default_rng(0))
    expected = sample.of_counts.law.logpmf(outputs - [2, 1]).sum(axis=1)
    assert np.allclose(sample.log_likelihood(outputs, pair.x), expected)


def test_fractional_counts_hide_whole_weights_only():
    bug = FractionalCounts(1.0, 4.0, (1,))
    pair = NeighborPair.add_record(records([0, 2.25]), [0, 3.0])
    assert bug.counts(pair.y).tolist() == [5.25]
    assert bug.exact_loss(pair).maximum == pytest.approx(0.75)
    outputs = bug(pair.x, 5, np.random.default_rng(0))
    assert np.isfinite(bug.log_likelihood(outputs, pair.x)).all()
    assert np.isneginf(bug.log_likelihood(outputs, records([0, 2.5]))).all()


# Invariants


def published(*totals, level=1, tolerance=0):
    return PublishedTotals(level, np.array(totals, float), tolerance)


def test_consistent_areas_are_raked_inconsistent_ones_blank_others_left_alone():
    mechanism = BottomUp(1.0, TREE, published=published(22, 5, np.nan))
    stages = mechanism, mechanism.stage("measurements")
    released, noisy = (stage(COUNTS, 50, np.random.default_rng(1)) for stage in stages)
    a, b, c = [0, 2], [1, 3], [4]
    assert np.isnan(released[:, b]).all()
    assert np.array_equal(released[:, c], noisy[:, c])
    sums = noisy[:, a].sum(axis=(1, 2))
    assert (sums > 0).all()
    assert np.allclose(released[:, a], noisy[:, a] * (22 / sums)[:, np.newaxis, np.newaxis])
    assert not mechanism.entrywise
    assert mechanism.log_likelihood is None
    assert mechanism.stage("measurements").log_likelihood is not None
    assert np.isnan(mechanism.tables(released)[:, [0, 2]]).all()  # the nation holds an area that is not reported


def test_cells_that_add_up_to_nothing_share_the_total_equally():
    mechanism = BottomUp(0.1, TREE, published=published(22, 4, 9))
    stages = mechanism, mechanism.stage("measurements")
    released, noisy = (stage(COUNTS, 200, np.random.default_rng(2)) for stage in stages)
    lost = noisy[:, 4].sum(axis=1) <= 0
    assert 0 < lost.sum() < 200
    assert (released[lost, 4] == 4.5).all()
    assert np.allclose(mechanism.tables(released)[:, 1:4].sum(axis=2), [22, 4, 9])


def test_calibration_with_a_tolerance_of_plain_counts_of_ragged_trees_and_of_weighted_samples():
    tree, rng = Hierarchy.regular(3, 1), np.random.default_rng(0)
    close, far = (BottomUp(1.0, tree, published=published(one, level=0, tolerance=1)) for one in (21, 22))
    released = close([10, 5, 5], 9, rng)
    assert released.shape == (9, 3)
    assert np.allclose(released.sum(axis=1), 21)
    assert np.isnan(far([10, 5, 5], 2, rng)).all()
    ragged = Hierarchy.from_parents([-1, 0, 0, 1, 1])  # leaf 2 lies at level 1, leaves 3 and 4 at level 2
    released = BottomUp(1.0, ragged, published=published(4, np.nan, level=2))([7, 4, 5], 3, rng)
    assert (released[:, 1] == 4).all()
    assert not published(4, 5, level=2).everywhere(ragged)  # of leaf 2 nothing was published
    assert np.array_equal(released[:, [0, 2]], np.rint(released[:, [0, 2]]))
    sample = WeightedBottomUp(1.0, 3.0, (2,), Hierarchy.regular(2, 1), published=published(5, np.nan, tolerance=1))
    assert (sample(records([0, 2.2], [0, 2.2], [1, 3]), 4, rng)[:, 0] == 5).all()
    assert sample.log_likelihood is None
    assert sample.stage("measurements").published is None


def test_a_pair_that_changes_a_published_total_is_not_covered():
    mechanism = BottomUp(1.0, TREE, published=published(22, 5, np.nan))
    for cell, total in (((0, 1), "that of a is 22 and 23"), ((1, 1), "that of b is 4 and 5")):
        with pytest.raises(ValueError, match=f"{total}: a pair is not covered by the promise"):
            mechanism.exact_loss(NeighborPair.add_people(COUNTS, cell))
    assert mechanism.exact_loss(NeighborPair.add_people(COUNTS, (4, 1))).maximum == pytest.approx(1.0)
    assert not mechanism.published.everywhere(TREE)
    assert published(22, 5, 9).everywhere(TREE)
    within = NeighborPair.move_people(COUNTS, (0, 0), (2, 1))
    assert mechanism.exact_loss(within).maximum == pytest.approx(2.0)
    hidden = NeighborPair.move_people(COUNTS, (1, 0), (3, 0))  # of an area that is not reported
    assert mechanism.exact_loss(hidden).maximum == 0.0


def test_undeclared_totals_show_in_a_pair_that_changes_one():
    silent = UndeclaredTotals(1.0, TREE, published=published(22, 4, np.nan))
    pair, same = (NeighborPair.add_people(COUNTS, cell) for cell in ((1, 1), (4, 0)))
    assert silent.exact_loss(pair).infinite_mass == 1
    assert (silent(pair.y, 4, np.random.default_rng(0))[:, [1, 3]] == ABSENT).all()
    for mechanism in (silent, UndeclaredTotals(1.0)):
        assert mechanism.exact_loss(same).maximum == pytest.approx(1.0)


# Accuracy


@pytest.mark.parametrize(("epsilon", "cells"), [(0.05, 1), (1.0, 1), (8.0, 1), (0.3, 7), (1.0, 40)])
def test_the_expected_error_of_a_sum_is_that_of_its_law(epsilon, cells):
    s = np.arange(1, int(60 * math.sqrt(cells) / epsilon) + 50)
    direct = 2 * (s * np.exp(ADPC(epsilon * cells, cells).logpmf_sum(s))).sum()
    assert expected_error(epsilon, cells) == pytest.approx(direct, rel=1e-9)
    if cells == 1:
        assert expected_error(epsilon, cells) == pytest.approx(1 / math.sinh(epsilon), rel=1e-12)


@pytest.mark.parametrize("level", [None, 0, 1, 2])
def test_norms_are_averages_with_the_expectation_that_theory_has(level):
    mechanism = BottomUp(0.4, TREE)
    found = accuracy(mechanism, COUNTS, np.random.default_rng(7), replicates=2000, level=level)
    truth = COUNTS if level is None else mechanism.tables(COUNTS)[TREE.level(level)]
    assert found.cells == truth.size
    for norm, scale in ((found.l1, truth.mean()), (found.l2, (truth**2.0).mean())):
        assert norm.scale == pytest.approx(scale)
        error = norm.errors.std() / math.sqrt(2000)
        assert abs(norm.error - norm.expected) < 5 * error  # 8 normal scores: false alarm 5e-6
        assert norm.accuracy == pytest.approx(1 - norm.error / norm.scale)
        low, high = norm.interval
        assert low < norm.expected_accuracy < high


def test_norms_by_hand_and_of_reported_areas_alone():
    class Still(BottomUp):
        def __call__(self, data, size, rng):
            return np.asarray(data) + np.arange(1, size + 1)[:, np.newaxis, np.newaxis] * [[1, -1]]

    found = accuracy(Still(1.0), [[10, 20], [30, 40]], np.random.default_rng(0), replicates=3)
    assert found.l1.errors.tolist() == [1, 2, 3]
    assert found.l2.errors.tolist() == [1, 4, 9]
    assert found.l1.accuracy == 1 - 2 / 25
    assert found.l2.accuracy == pytest.approx(1 - (14 / 3) / 750)
    mechanism = BottomUp(2.0, TREE, published=published(22, 5, np.nan))
    found = accuracy(mechanism, COUNTS, np.random.default_rng(0), replicates=5, level=2)
    assert found.cells == 6
    assert found.l1.scale == pytest.approx(COUNTS[[0, 2, 4]].mean())
    assert found.l1.expected is found.l1.expected_accuracy is None


def test_a_curve_tells_the_smallest_epsilon_from_which_on_a_target_is_reached():
    counts = np.array([[40_000, 900], [700, 12_000]])
    found = curve(BottomUp(1.0), counts, np.random.default_rng(0), epsilons=[0.1, 0.001, 0.01], replicates=50)
    assert [one.epsilon for one in found] == [0.001, 0.01, 0.1]
    reached = [(0.99, "l1", 0.1), (0.99, "l2", 0.01), (-100, "l1", 0.001)]
    assert all(smallest_epsilon(found, norm, target) == least for target, norm, least in reached)
    assert smallest_epsilon(found[:1], "l1", 0.9999) is None
    best, *_, worst = (replace(one, epsilon=at) for one, at in zip(found[::-1], (0.2, 0.3, 0.4), strict=True))
    assert worst.l1.interval[0] < 0.99 < best.l1.interval[0]
    assert smallest_epsilon([best, worst, replace(best, epsilon=0.5)], "l1", 0.99) == 0.5


SAMPLE = WeightedBottomUp(1.0, 4.5, (2,))
PUBLISHED, MARGINS = "published totals must be", BottomUp(1.0, schema=SCHEMA).margins
SHAPE = "counts must have shape (leaves,) or (leaves, cells), got"
WEIGHT = "weights must be above 0 and at most the largest weight 4.5, got"


def measured(mechanism=None, counts=(3,), **options):
    return accuracy(mechanism or BottomUp(1.0), counts, np.random.default_rng(0), **options)


VALUES = {
    "noise must be one of exact, inverse_cdf, got 'laplace'": lambda: BottomUp(1.0, noise="laplace"),
    "bits must be at most 53, got 54": lambda: InverseCdf(1.0, bits=54),
    "the law must have at most 1,048,576 magnitudes, got 36,736,802": lambda: InverseCdf(1e-6).counts,
    "stage must be measurements, got 'rounded'": lambda: BottomUp(1.0).stage("rounded"),
    f"{SHAPE} (0,)": lambda: BottomUp(1.0).counts([]),
    "counts must have a row for each of 5 leaves, got 1": lambda: BottomUp(1.0, TREE).counts([3]),
    "counts must have 6 cells in each area, got shape (1, 2)": lambda: BottomUp(1.0, schema=SCHEMA).counts([[3, 2]]),
    "noisy must have shape (..., leaves, cells), got (1,)": lambda: BottomUp(1.0).tables([3]),
    "margins need a schema of 1 to 12 attributes, got none": lambda: BottomUp(1.0).margins([[3]]),
    "noisy must have 6 cells in each area, got 1": lambda: MARGINS([[3]]),
    "published totals need a tree of areas, got none": lambda: BottomUp(1.0, published=published(5)),
    f"{PUBLISHED} one for each of 3 areas of level 1, got 1": lambda: BottomUp(1.0, TREE, published=published(5)),
    f"{PUBLISHED} whole numbers of people, 0 or more, got -5": lambda: published(-5),
    f"{PUBLISHED} one for each area of a level, got shape (0,)": lambda: PublishedTotals(1, []),
    "level of published totals must be at least 0, got -1": lambda: published(5, level=-1),
    "largest weight must be above 0 and at most 2**31, got 0": lambda: WeightedBottomUp(1.0, 0, (2,)),
    "epsilon / ceil(largest weight) must be at least 1e-12, got 2e-12 / 5": lambda: WeightedBottomUp(2e-12, 4.5, (2,)),
    "shape must be (leaves,) or (leaves, cells), got (0,)": lambda: WeightedBottomUp(1.0, 3, (0,)),
    "counts must have a row for each of 5 leaves, got 2": lambda: WeightedBottomUp(1.0, 3, (2,), TREE),
    "records must have two columns, cell and weight, got shape (2,)": lambda: SAMPLE.counts([1, 2]),
    "cells must be whole numbers from 0 to 1, got 2": lambda: SAMPLE.counts([[2, 1]]),
    "cells must be whole numbers from 0 to 1, got 0.5": lambda: SAMPLE.counts([[0.5, 1]]),
    f"{WEIGHT} 5": lambda: SAMPLE.counts([[0, 5]]),
    f"{WEIGHT} 0": lambda: SAMPLE.counts([[0, 0]]),
    f"{WEIGHT} nan": lambda: SAMPLE.counts([[0, math.nan]]),
    "weights must add up to less than 2**33, got 8589934592": lambda: WeightedBottomUp(1.0, 2**31, (1,)).counts(
        [[0, 2**31]] * 4
    ),
    "replicates must be at least 2, got 1": lambda: measured(replicates=1),
    "level 0 needs a tree of areas, got none": lambda: measured(level=0),
    "accuracy needs a true count above 0, got zeros only": lambda: measured(counts=[0, 0]),
    "at least one area must be reported, got none that agrees with its published total": lambda: measured(
        BottomUp(1.0, TREE, published=published(1, 1, 1)), COUNTS
    ),
}
TYPES = {
    "tree must be a Hierarchy, got list": lambda: BottomUp(1.0, [0]),
    'rng must be a numpy Generator or "secure", got 7': lambda: InverseCdf(1.0).sample(3, 7),
    f"{PUBLISHED} numbers, got dtype <U1": lambda: PublishedTotals(1, ["5"]),
    "records must be numbers, got dtype <U1": lambda: SAMPLE.counts([["0", "1"]]),
}


@pytest.mark.parametrize("message", [*VALUES, *TYPES])
def test_bad_input_is_refused_in_one_line(message):
    refuses(ValueError if message in VALUES else TypeError, message, (VALUES | TYPES)[message])


def test_the_window_about_thresholds_repairs_a_logarithm_that_is_not_monotone(monkeypatch):
    """Two neighbors turned around at a threshold, as an unlucky rounding may: the table still counts every uniform."""
    noise = InverseCdf(0.3, bits=10)
    ordinary = InverseCdf.magnitude
    swap = int(np.cumsum(noise.counts[::-1])[-3])  # the first uniform of another magnitude

    def turned(self, uniform):
        other = np.where(uniform == swap, swap - 1, np.where(uniform == swap - 1, swap, uniform))
        return ordinary(self, other)

    monkeypatch.setattr(inverse_module.InverseCdf, "magnitude", turned)
    turned_noise = InverseCdf(0.3, bits=10)
    values = np.abs(turned_noise.invert(np.arange(512)))
    assert (np.diff(values) > 0).any()
    assert np.array_equal(turned_noise.counts, np.bincount(values, minlength=turned_noise.reach + 1))
