"""NistDp3: what it counts, how noisily, what the cut leaves, and what rows are made of that."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from algorithms.nist import Groups, NistDp3
from algorithms.nist.records import LARGEST_GROUP, check_records
from algorithms.nist.synthesis import draw_bins
from algorithms.noise.laplace import laplace_loss
from algorithms.schema import Schema
from audit.claims import PureDP
from audit.neighbors import NeighborPair
from tests.helpers import pair_of, refuses

SCHEMA = Schema({"sex": ("male", "female"), "age": ("young", "middle", "old"), "county": ("a", "b", "c", "d")})
GROUPS = Groups([["sex", "county"], ["age"]])
RECORDS = np.array([[0, 1, 2]] * 40 + [[1, 2, 0]] * 30 + [[1, 0, 3]] * 5, np.uint8)
PAIR = NeighborPair.add_record(RECORDS, [0, 0, 1])
LAWS = ("laplace", "geometric")


def nist(epsilon=1.0, groups=GROUPS, schema=SCHEMA, **options):
    return NistDp3(schema, groups, epsilon, **{"rows": 20, **options})


def wide(fields):
    return Schema({f"field {place}": [str(level) for level in range(2 + place % 90)] for place in range(fields)})


SINGLE = nist(schema=wide(37), groups=Groups.single(wide(37)))


# What is counted


def test_histograms_count_every_record_once_in_each_group():
    found = nist()
    by_hand = np.zeros((2, 4), int)
    for sex, _, county in RECORDS:
        by_hand[sex, county] += 1
    for dtype in (np.uint8, np.int16, np.uint64):  # any whole numbers are codes
        assert found.histogram(RECORDS.astype(dtype), 0).tolist() == by_hand.ravel().tolist()
    assert found.histogram(RECORDS, 1).tolist() == [5, 40, 30]
    assert (found.bins, found.columns) == ((8, 3), ((0, 2), (1,)))


def test_wide_records_are_never_counted_over_all_fields_and_none_at_all_are_a_database_too():
    schema = wide(120)
    assert schema.cells > 10**150
    made = nist(schema=schema, groups=Groups.single(schema))(np.zeros((50, 120), int), 1, np.random.default_rng(0))
    assert (made.shape, made.dtype) == ((1, 20, 120), np.uint8)
    # The promise holds for the neighbors that have one record and none, so neither is refused.
    assert nist()(np.zeros((0, 3), np.uint8), 5, np.random.default_rng(0)).shape == (5, 20, 3)


# Noise, cut and rows


@pytest.mark.parametrize(("law", "parameter"), [("laplace", 4), ("geometric", 0.25)])
def test_noise_has_the_scale_of_groups_over_epsilon(law, parameter, scripted):
    found = nist(0.5, law=law)
    noisy = found.stage("measurements")(RECORDS, 9, np.random.default_rng(1))
    assert (found.scale, found.share) == (4, 0.25)
    assert [drawn for drawn, _ in scripted] == [parameter] * 2
    exact = np.concatenate([found.histogram(RECORDS, group) for group in (0, 1)])
    np.testing.assert_allclose(noisy - exact, np.hstack([noise for _, noise in scripted]), atol=1e-12)


def test_the_cut_is_the_factor_times_scale_times_log10_of_the_bins():
    assert nist(0.5, factor=3.0).thresholds == (3 * 4 * math.log10(8), 3 * 4 * math.log10(3))
    default = nist(0.5)
    assert default.thresholds == pytest.approx([4 * math.log(8), 4 * math.log(3)])
    low = default.thresholds[0]
    assert default.cut(np.array([-50.0, low - 1e-9, low, 9.4, 9.6, 100.5]), 0).tolist() == [0, 0, 8, 9, 10, 100]
    whole = nist(0.5, law="geometric").cut(np.array([-3, 0, 8, 9]), 0)
    assert whole.tolist() == [0, 0, 0, 9]
    assert nist(0.5, factor=0.0).cut(np.array([-0.4, 0.4, 0.6]), 0).tolist() == [0, 0, 1]


def spurious(bins, epsilon, **options):
    """NistDp3 on one field with so many levels, and a binomial test at 1e-6 of the bins that it keeps of nobody."""
    schema = Schema({"field": [str(level) for level in range(bins)]})
    found, runs = nist(epsilon, Groups.single(schema), schema, **options), 1_000_000 // bins
    kept = np.count_nonzero(found.stage("thresholded")(np.zeros((0, 1), int), runs, np.random.default_rng(2)) > 0)
    assert stats.binomtest(kept, runs * bins, found.spurious[0] / bins).pvalue > 1e-6
    return found


@pytest.mark.parametrize("bins", [2, 10, 1_000])
def test_the_default_factor_leaves_half_a_spurious_bin_whatever_the_size(bins):
    assert spurious(bins, 0.01).spurious == pytest.approx((0.5,))  # a scale that makes rounding small
    geometric = spurious(bins, 0.01, law="geometric")
    q = math.exp(-geometric.share)
    assert q / (1 + q) - 1e-9 <= geometric.spurious[0] <= 1 / (1 + q) + 1e-9


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("bins", "factor"), [(1, math.log(10)), (6, 0.0)])
def test_a_spurious_bin_has_more_than_0_even_without_a_cut(law, bins, factor):
    spurious(bins, 1.0, law=law, factor=factor)


def test_bins_are_drawn_in_proportion_to_their_counts():
    """Two chi-square tests at 1e-6; and counts as large as noise can make them do not overflow."""
    counts = np.array([[0, 5, 0, 1, 94], [3, 0, 0, 0, 1]])
    drawn = draw_bins(counts, 50_000, np.random.default_rng(3))
    for run, weights in zip(drawn, counts, strict=True):
        tally = np.bincount(run, minlength=5)
        assert not tally[weights == 0].any()
        expected = 50_000 * weights[weights > 0] / weights.sum()
        assert stats.chisquare(tally[weights > 0], expected).pvalue > 1e-6
    assert set(np.unique(draw_bins(np.full((2, 4), 2**59), 100, np.random.default_rng(3)))) == {0, 1, 2, 3}


@pytest.mark.parametrize("law", LAWS)
def test_rows_follow_the_histograms_within_a_group_and_no_other_group(law):
    """At epsilon 1,000 noise is nothing. Two chi-square tests at 1e-6."""
    found = nist(1_000.0, law=law)
    rows = found.fit(RECORDS, np.random.default_rng(4)).synthesize(60_000, np.random.default_rng(5))
    joint = np.zeros((2, 3, 4))
    np.add.at(joint, tuple(rows.T), 1)
    group = found.histogram(RECORDS, 0).reshape(2, 4)
    together = joint.sum(axis=1)
    assert not together[group == 0].any()
    assert stats.chisquare(together[group > 0], 60_000 * group[group > 0] / 75).pvalue > 1e-6
    assert stats.chi2_contingency(joint[[0, 1, 1], :, [2, 0, 3]]).pvalue > 1e-6
    truth = np.zeros((2, 3, 4))
    np.add.at(truth, tuple(RECORDS.T), 1)
    assert stats.chi2_contingency(truth[[0, 1, 1], :, [2, 0, 3]]).pvalue < 1e-20  # which the records are not


def test_groups_that_the_cut_leaves_nothing_of_are_uniform_and_named():
    """A chi-square test at 1e-6."""
    found = nist(0.001, factor=50.0)
    fitted = found.fit(RECORDS, np.random.default_rng(10))
    assert fitted.uniform == ("sex*county", "age")
    rows = fitted.synthesize(40_000, np.random.default_rng(11))
    tally = np.bincount(rows[:, 0] * 4 + rows[:, 2], minlength=8)
    assert stats.chisquare(tally).pvalue > 1e-6
    assert nist(1_000.0).fit(RECORDS, np.random.default_rng(10)).uniform == ()


# What is lost


@pytest.mark.parametrize("law", LAWS)
def test_each_group_loses_its_share_and_all_together_the_whole(law):
    found = nist(3.0, law=law)
    assert found.claim == PureDP(3.0)
    for only, spent in ((GROUPS.names[:1], 1.5), (GROUPS.names[1:], 1.5), (None, 3.0)):
        stage = found.stage("measurements", only=only)
        assert stage.claim == PureDP(spent)
        assert stage.exact_loss(PAIR).maximum == pytest.approx(spent, rel=1e-12)


@pytest.mark.parametrize("shift", [1, 3])
def test_the_table_of_laplace_losses_has_their_profile(shift):
    """Of Laplace noise ``delta = 1 - exp((epsilon - s) / 2)``; the table is above, and close; its maximum is exact."""
    law = laplace_loss(0.5, [shift])
    for epsilon in np.linspace(0, 0.5 * shift, 17):
        exact = -math.expm1((epsilon - 0.5 * shift) / 2)
        for order in (law, law.reverse()):
            assert exact - 1e-12 <= order.delta_at(epsilon) <= exact + 1e-5
    assert law.maximum == 0.5 * shift
    several = laplace_loss(0.7, [1, 1, 3])
    assert several.maximum == several.reverse().maximum == 0.7 * 5  # which a sum on the grid is not
    assert laplace_loss(1e-6, [2**13 + 1]) is None  # the table would be too large


def test_replaced_records_lose_twice_and_groups_of_records_as_many_times():
    replaced = NeighborPair(RECORDS, np.vstack([RECORDS[1:], [[1, 0, 1]]]), "replace_one", 1, "record")
    assert nist(law="geometric").stage("measurements").exact_loss(replaced).maximum == pytest.approx(2)
    several = NeighborPair(RECORDS, np.vstack([RECORDS, [[1, 0, 1]] * 7]), "add_remove", 7, "record")
    for law in LAWS:
        assert nist(law=law).stage("measurements").exact_loss(several).maximum == pytest.approx(7)
    assert nist().stage("measurements").exact_loss(pair_of(RECORDS, RECORDS)).maximum == 0


@pytest.mark.parametrize("law", LAWS)
def test_the_likelihood_is_that_of_the_noise(law):
    found = nist(law=law)
    stage = found.stage("measurements", only=["age"])
    outputs = stage(RECORDS, 4, np.random.default_rng(13))
    log_p = found.noise.logpdf if law == "laplace" else found.noise.logpmf
    assert stage.log_likelihood(outputs, RECORDS) == pytest.approx(log_p(outputs - [5, 40, 30]).sum(axis=1))
    ratio = stage.log_likelihood(outputs, PAIR.y) - stage.log_likelihood(outputs, PAIR.x)
    assert np.abs(ratio).max() <= found.share + 1e-9


def row_law(counts, epsilon, factor, rows):
    """Probability of every number of rows in the first of two bins, by adding up all noisy counts."""
    reach = 150
    k = np.arange(-reach, reach + 1)
    pmf = np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(k))
    kept = [np.where(count + k < factor / epsilon * math.log10(2), 0, count + k) for count in counts]
    first, second = kept[0][:, None], kept[1][None, :]
    total = first + second
    share = np.where(total > 0, first / np.where(total > 0, total, 1), 0.5)
    weight = pmf[:, None] * pmf[None, :]
    return [float((weight * stats.binom.pmf(n, rows, share)).sum()) for n in range(rows + 1)]


def test_synthetic_rows_lose_no_more_than_the_promise():
    """One field of two levels: the exact law of its rows, by enumeration, which simulation confirms at 1e-6."""
    schema, epsilon, rows = Schema({"field": "ab"}), 0.5, 3
    found = nist(epsilon, Groups.single(schema), schema, law="geometric", rows=rows, factor=1.0)
    on_x, on_y = (row_law(counts, epsilon, 1.0, rows) for counts in ((2, 1), (3, 1)))
    loss = max(abs(math.log(p / q)) for p, q in zip(on_x, on_y, strict=True))
    assert 0.05 < loss < epsilon
    made = found(np.array([[0], [0], [1]]), 40_000, np.random.default_rng(14))
    tally = np.bincount((made == 0).sum(axis=(1, 2)), minlength=rows + 1)
    assert stats.chisquare(tally, 40_000 * np.array(on_x) / sum(on_x)).pvalue > 1e-6


stage = nist().stage
VALUES = {
    "groups must have each field once, and 'age' is in none": lambda: nist(groups=Groups([["sex", "county"]])),
    "groups must be of the fields of the specification, got 'income'": lambda: nist(groups=Groups([["sex", "income"]])),
    "epsilon / groups must be at least 1e-12, got 1e-12 / 2": lambda: nist(1e-12),
    "factor must be 0 or more and finite, got -0.1": lambda: nist(factor=-0.1),
    "factor must be 0 or more and finite, got inf": lambda: nist(factor=math.inf),
    "rows must be at least 1, got 0": lambda: nist(rows=0),
    "rows must be at most 50,000,000, got 50,000,001": lambda: nist(rows=50_000_001),
    "rows x fields must be at most 1,000,000,000, got 50,000,000 x 37": lambda: replace(SINGLE, rows=50_000_000),
    'law must be "laplace" or "geometric", got \'normal\'': lambda: nist(law="normal"),
    f"a group must have at most {LARGEST_GROUP:,} bins, got 4,410,000 of a*b": lambda: nist(
        groups=Groups([["a", "b"]]), schema=Schema({name: map(str, range(2_100)) for name in "ab"})
    ),
    "records must have one column for each of 3 fields, got shape (1, 2)": lambda: check_records([[0, 1]], SCHEMA),
    "codes of age must be from 0 to 2, got 3": lambda: check_records([[0, 3, 0]], SCHEMA),
    "codes of sex must be from 0 to 1, got -1": lambda: check_records([[0, 0, 0], [-1, 0, 0]], SCHEMA),
    "stage must be one of measurements, thresholded, counted, got 'rows'": lambda: stage("rows"),
    "only must name groups, got 'sex'": lambda: stage("measurements", only=["sex"]),
    "only must name one group at least, got none": lambda: stage("measurements", only=[]),
}
TYPES = {
    "schema must be a Schema, got dict": lambda: nist(schema={"sex": "mf"}),
    "groups must be Groups, got list": lambda: nist(groups=[["sex"]]),
    "records must be codes, whole numbers from 0 on, got dtype float64": lambda: check_records([[0, 1, 0.5]], SCHEMA),
}


@pytest.mark.parametrize("message", [*VALUES, *TYPES])
def test_bad_input_is_refused_in_one_line(message):
    refuses(ValueError if message in VALUES else TypeError, message, (VALUES | TYPES)[message])


def test_groups_are_named_by_their_fields_and_noise_may_be_secure():
    assert stage("measurements", only=[("sex", "county")]).bins == 8
    pytest.importorskip("opendp")
    assert nist(law="geometric")(RECORDS, 2, "secure").shape == (2, 20, 3)
