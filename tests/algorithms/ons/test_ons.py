"""The pilot's two methods: printed tables digit by digit, exact laws, totals kept, and what each part costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from algorithms.bugs.systems.ons import ClassicalGaussian
from algorithms.hierarchy import Hierarchy
from algorithms.ons import IndependentNoise, OnsTopDown, unchanged_probability
from algorithms.ons.laws import CountNoise, classical_scale
from algorithms.ons.tables import PILOT_LEVELS, PILOT_TABLES, Domain, Table
from algorithms.ons.top_down import FLOOR, adjusted, maximum_remainder
from algorithms.ons.utility import CLASSES, transition_matrix, utility
from algorithms.schema import Grouping, Schema
from audit.claims import ApproxDP, GaussianDP, PureDP
from audit.exact import loss_from_logs
from audit.neighbors import NeighborPair
from tests.helpers import refuses, same_losses

TREE = Hierarchy.from_codes(["n", "n", "n", "s"], ["1", "2", "3", "1"])
SCHEMA = Schema({"sex": ("f", "m"), "age": ("0-17", "18-64", "65+")})
HISTOGRAM = np.array([[9, 4, 0, 7, 1, 0], [0] * 6, [30, 3, 3, 3, 5, 8], [0, 0, 0, 5, 0, 2]])
TABLES = [Table(1, "sex"), Table(2, "age"), Table(0, "sex*age")]
LEVELS = [Table(0, "total"), Table(1, "total"), Table(1, "sex"), Table(2, "detailed")]
EQUAL = ("1/4",) * 4
GEOGRAPHY_FIRST = [*LEVELS[:2], Table(2, "total"), LEVELS[3]]  # the order that the pilot names and did not try


def independent(**options):
    return IndependentNoise(TREE, SCHEMA, options.pop("epsilon", 1.5), options.pop("tables", TABLES), **options)


def top_down(**options):
    return OnsTopDown(**{"tree": TREE, "schema": SCHEMA, "epsilon": 2.0} | options)


# Tables 1 to 3 of the pilot, as printed

PRINTED = {
    "laplace": (0.0488, 0.3935, 0.6321, 0.9179, 0.9933),
    "gaussian": (0.0157, 0.1562, 0.3065, 0.6755, 0.9512),
    "geometric": (0.05, 0.4621, 0.7616, 0.9866, 0.9999),
}
EPSILONS = (0.1, 1.0, 2.0, 5.0, 10.0)


def test_unchanged_counts_are_those_of_tables_1_to_3(record_property):
    """The calibration of the Gaussian row is the textbook's at delta 5%: no other delta of two digits prints it."""

    def row(law, **options):
        return tuple(round(unchanged_probability(law, epsilon, **options), 4) for epsilon in EPSILONS)

    record_property("tried", sum(map(len, PRINTED.values())))
    assert {law: row(law) for law in PRINTED} == PRINTED
    printing = [delta for delta in range(1, 100) if row("gaussian", delta=delta / 100) == PRINTED["gaussian"]]
    assert printing == [5]


# Noise and its laws


@pytest.mark.parametrize("law", PRINTED)
@pytest.mark.parametrize("epsilon", [0.2, 3.0])
def test_noise_is_rounded_and_so_is_its_law(law, epsilon):
    noise = CountNoise(law, epsilon, 0.01 if law == "gaussian" else 0.0)
    drawn, exact = (one.sample((200,), np.random.default_rng(5)) for one in (noise, noise.noise))
    np.testing.assert_array_equal(drawn, np.rint(exact))
    k = np.arange(-400.0, 401.0)
    mass = np.exp(noise.log_law(k))
    assert mass.sum() == pytest.approx(1, abs=1e-12)
    assert np.exp(noise.log_below(k)) == pytest.approx(np.cumsum(mass), abs=1e-12)
    assert noise.log_law(np.array([0.5]))[0] == -np.inf
    if law != "geometric":
        near = slice(380, 421)
        by_cells = noise.noise.cdf(k[near] + 0.5) - noise.noise.cdf(k[near] - 0.5)
        np.testing.assert_allclose(mass[near], by_cells, rtol=1e-9, atol=1e-15)
    if law != "gaussian":
        assert mass[400] == pytest.approx(unchanged_probability(law, epsilon))


def test_gaussian_scale_is_the_least_that_keeps_the_promise():
    for epsilon, delta in ((0.1, 0.05), (1.0, 1e-6), (10.0, 0.05), (0.01, 0.3)):
        scale = CountNoise("gaussian", epsilon, delta).scale
        assert GaussianDP(1 / scale).delta_at(epsilon) <= delta * (1 + 1e-9)
        assert GaussianDP(1.001 / scale).delta_at(epsilon) > delta


@pytest.mark.parametrize(("law", "shift"), [("laplace", 1), ("laplace", 5), ("geometric", 5), ("gaussian", 2)])
def test_exact_loss_is_that_of_the_tabulated_laws(law, shift):
    gaussian = law == "gaussian"
    noise, reach = CountNoise(law, 0.7, 0.01 * gaussian), 200 if gaussian else 900
    k = np.arange(-reach, reach + 1.0)
    ends = {"supremum": math.inf, "infimum": -math.inf} if gaussian else {}
    same_losses(noise.exact_loss([shift]), loss_from_logs(noise.log_law(k), noise.log_law(k - shift), **ends))
    assert noise.exact_loss([shift]).maximum == pytest.approx(math.inf if gaussian else 0.7 * shift)


def test_classical_scale_keeps_its_promise_at_small_epsilons_only_with_and_without_rounding():
    def bug(epsilon, **options):
        return ClassicalGaussian(TREE, SCHEMA, epsilon, [Table(1, "sex")], law="gaussian", delta=0.05, **options)

    for epsilon in EPSILONS:
        assert (GaussianDP(1 / classical_scale(epsilon, 0.05)).delta_at(epsilon) <= 0.05) == (epsilon < 10)
    pair = NeighborPair.add_people(HISTOGRAM, (0, 0))
    assert GaussianDP(1 / classical_scale(10.0, 0.05)).delta_at(10.0) == pytest.approx(0.213, abs=5e-4)
    assert bug(10.0).exact_loss(pair).delta_at(10.0) < 0.05 < bug(7.0).exact_loss(pair).delta_at(7.0)
    assert bug(10.0, rounded=False).exact_loss(pair) is None
    assert bug(2.0).only([0]).noises[0].scale == pytest.approx(classical_scale(2.0, 0.05))


# Tables and domains


def test_tables_add_up_people_in_any_order_of_leaves():
    tree = Hierarchy.from_parents([-1, 0, 0, 2, 1, 2])  # leaves 3, 4, 5 lie in areas 2, 1, 2
    domain = Domain(tree, SCHEMA)
    people = np.arange(18).reshape(3, 6)
    by_area, by_leaf, total = domain.tabulate(people, [Table(1, "sex"), Table(2, "detailed"), Table(0, "total")])
    cube = people.reshape(3, 2, 3)
    assert by_area.tolist() == [cube[1].sum(axis=1).tolist(), cube[[0, 2]].sum(axis=(0, 2)).tolist()]
    assert domain.by_leaf(by_leaf).tolist() == people.tolist()
    assert total.item() == people.sum()


def test_fourteen_tables_of_the_pilot():
    sizes = {"sex": 2, "age": 10, "marital": 6, "month": 12, "cause": 15}
    tree = Hierarchy.from_codes([str(i % 13) for i in range(251)], [str(i) for i in range(251)])
    domain = Domain(tree, Schema({name: range(size) for name, size in sizes.items()}))
    cells = [math.prod(domain.shape(table)) for table in PILOT_TABLES]
    assert cells == [251 * n for n in (300, 360, 180, 120, 72, 15, 10, 2, 12, 6)] + [13 * n for n in (150, 180, 30, 24)]


def test_histograms_are_of_people_and_have_the_shape_of_tree_and_schema():
    for mechanism in (independent(), top_down()):
        rule = "histogram must have the shape (leaves, cells) = (4, 6), got (4, 5)"
        refuses(ValueError, rule, mechanism, HISTOGRAM[:, :5], 1, np.random.default_rng(0))
        refuses(ValueError, "counts must not be negative, got -30", mechanism, -HISTOGRAM, 1, np.random.default_rng(0))


EVENLY = "each level must divide the one above it evenly, got level"
MINOR = Schema(SCHEMA.attributes, {"minor": Grouping("age", {"yes": ["0-17"], "no": ["18-64", "65+"]})})
LAST = Table(2, "detailed")
VALUES = {
    "law must be one of laplace, geometric, gaussian, got 'normal'": lambda: independent(law="normal"),
    "delta must be 0 for laplace noise, got 0.1": lambda: independent(delta=0.1),
    "tables must name one table at least, got none": lambda: independent(tables=[]),
    "tables must name each table once, got level 1: sex*age twice": lambda: independent(
        tables=[Table(1, "sex*age"), Table(1, "age*sex")]
    ),
    "shares must be one for each of 3 tables, got 2": lambda: independent(shares=("1/2", "1/2")),
    "shares of tables must add up to 1, got 7/6: 1/6 too much": lambda: independent(shares=("1/2", "1/3", "1/3")),
    "tables must be some of 0 to 2, got [3]": lambda: independent().only([3]),
    "delta must be in (0, 1), got 0.0": lambda: top_down(law="gaussian"),
    "the first level must be the total of level 0, got none": lambda: top_down(levels=[]),
    "the last level must be the detailed query of level 2, got level 1: sex": lambda: top_down(
        levels=LEVELS[:3], shares=("1/3",) * 3
    ),
    f"{EVENLY} 1: detailed below level 2: total": lambda: top_down(
        levels=[LEVELS[0], Table(2, "total"), Table(1, "detailed"), LAST]
    ),
    f"{EVENLY} 2: detailed below level 1: minor": lambda: top_down(
        schema=MINOR, levels=[LEVELS[0], Table(1, "minor"), LAST], shares=("1/3",) * 3
    ),
    "only must be of the measurements, got it of 'rounded'": lambda: top_down().stage("rounded", only=[1]),
    "stage must be one of measurements, adjusted, rounded, tables, got 'none'": lambda: top_down().stage("none"),
    "areas must end at one level, and '2' ends above it": lambda: top_down(tree=Hierarchy.from_parents([-1, 0, 0, 1])),
    "delta must be in (0, 1), got 1.0": lambda: unchanged_probability("gaussian", 1.0, delta=1.0),
    "actual and released must have one shape, got (1,) and (2,)": lambda: utility([1], [1, 2]),
    "actual counts must not be negative, got -1": lambda: utility([-1], [1]),
    "tables must have one cell at least, got none": lambda: utility([], []),
}
TYPES = {
    "tables must be named by whole numbers, got 0.0": lambda: independent().only([0.0]),
    "tree and schema must be a Hierarchy and a Schema, got Schema and Hierarchy": lambda: OnsTopDown(SCHEMA, TREE, 1),
}


@pytest.mark.parametrize("message", [*VALUES, *TYPES])
def test_bad_settings_are_one_line(message):
    refuses(ValueError if message in VALUES else TypeError, message, (VALUES | TYPES)[message])


# Method 1


def test_shares_of_tables_are_what_they_cost():
    release, pair = independent(shares=("1/2", "1/3", "1/6")), NeighborPair.add_people(HISTOGRAM, (1, 2))
    parts = [release.only([place]) for place in range(3)]
    assert [part.claim for part in parts] == [PureDP(0.75), PureDP(0.5), PureDP(0.25)]
    for part in (release, *parts):
        assert part.exact_loss(pair).maximum == pytest.approx(part.claim.epsilon)
    assert release.only([2, 0]).shares == (Fraction(1, 4), Fraction(3, 4))
    assert release.only([np.int64(1)]).tables == (TABLES[1],)
    assert release.claim == PureDP(1.5)
    gaussian = independent(law="gaussian", delta=0.06)
    assert gaussian.claim == ApproxDP(1.5, 0.06)
    assert gaussian.only([0]).claim.epsilon == pytest.approx(0.5)
    assert gaussian.only([0]).claim.delta == pytest.approx(0.02)
    assert gaussian.exact_loss(pair).delta_at(1.5) <= 0.06


def test_raised_counts_are_those_below_0():
    plain, raised = (independent(nonnegative=clip)(HISTOGRAM, 200, np.random.default_rng(1)) for clip in (False, True))
    assert plain.min() < 0
    assert np.array_equal(np.maximum(plain, 0), raised)


def averages_one(release, x, y, size):
    """E_x[q / p] = 1, and every output is of the right width; false alarm 2e-9."""
    drawn = release(x, size, np.random.default_rng(2))
    on_x = release.log_likelihood(drawn, x)
    ratio = np.exp(release.log_likelihood(drawn, y) - on_x)
    assert ratio.mean() == pytest.approx(1, abs=6 * ratio.std() / math.sqrt(size))
    assert not np.isinf(on_x).any()
    with pytest.raises(ValueError, match=f"one column for each of {drawn.shape[1]} counts, got shape"):
        release.log_likelihood(drawn[:, 1:], x)


@pytest.mark.parametrize("law", PRINTED)
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("rounded", [True, False])
def test_log_likelihood_is_the_law_of_the_release(law, nonnegative, rounded):
    options = {"law": law, "delta": 0.05 * (law == "gaussian"), "rounded": rounded, "nonnegative": nonnegative}
    x, y = np.zeros_like(HISTOGRAM), np.zeros_like(HISTOGRAM)
    x[0, 0], y[0, 0] = 1, 2
    averages_one(IndependentNoise(TREE, SCHEMA, 1.0, [Table(0, "sex")], **options), x, y, 20_000)


# Method 2


def test_rounding_keeps_every_parent_in_random_cases():
    rng = np.random.default_rng(12)
    for _ in range(1000):
        families, parts = rng.integers(1, 6), rng.integers(1, 8)
        parents = rng.integers(0, 10 ** rng.integers(1, 7), families)
        noisy = np.maximum(rng.laplace(scale=10.0 ** rng.integers(-3, 5), size=(families, parts)), FLOOR)
        real = adjusted(parents, noisy)
        whole = maximum_remainder(parents, real, rng)
        assert whole.sum(axis=1).tolist() == parents.tolist()
        assert whole.min() >= 0
        assert np.abs(whole - real).max() < 1 + 1e-6


def test_largest_remainders_go_up_and_equal_ones_at_random():
    assert maximum_remainder([3], [[1.2, 0.9, 0.9]]).tolist() == [[1, 1, 1]]
    assert maximum_remainder([3, 0], [[0.6, 1.6, 0.8], [0, 0, 0]]).tolist() == [[1, 1, 1], [0, 0, 0]]
    assert maximum_remainder([1], [[0.25, 0.25, 0.25, 0.25]]).tolist() == [[1, 0, 0, 0]]
    drawn = maximum_remainder(np.ones(8000), np.full((8000, 4), 0.25), np.random.default_rng(3)).sum(axis=0)
    assert stats.chisquare(drawn).pvalue > 1e-6  # false alarm 1e-6


@pytest.mark.parametrize("law", ["laplace", "geometric", "gaussian"])
@pytest.mark.parametrize("levels", [None, LEVELS, GEOGRAPHY_FIRST])
def test_people_are_whole_and_none_where_zeros_get_no_noise(law, levels):
    options = {} if levels is None else {"levels": levels, "shares": EQUAL}
    options |= {"law": law, "delta": 0.05 * (law == "gaussian")}
    released = top_down(**options)(HISTOGRAM, 50, np.random.default_rng(4))
    assert (released.shape, released.dtype) == ((50, 4, 6), np.int64)
    assert released.min() >= 0
    mechanism = top_down(perturb_zeros=False, **options)
    assert not mechanism(HISTOGRAM, 50, np.random.default_rng(4))[:, HISTOGRAM == 0].any()
    assert mechanism.claim.epsilon == math.inf


def test_a_release_is_what_the_steps_give_by_hand():
    """The pilot's Figure 2: every count gets noise, its family is scaled to the count above and made whole."""
    tree, schema = Hierarchy.from_codes(["north", "south"]), Schema({"sex": ("female", "male")})
    levels, people = [Table(0, "total"), Table(0, "detailed"), Table(1, "detailed")], [[14, 9], [5, 0]]
    mechanism, rng = OnsTopDown(tree, schema, 2.0, levels, ("0.2", "0.3", "0.5")), np.random.default_rng(1)
    for place, exact in enumerate(mechanism.measurements.exact_tables(people)):
        noisy = mechanism.measurements.noisy(exact, place, 1, rng)[0]
        raised = np.where(noisy > 0, noisy, FLOOR).T
        if place == 0:
            above = np.rint(raised).astype(int)[0]
        else:  # a family: both sexes, then both areas of a sex
            above = maximum_remainder(above, adjusted(above, raised.reshape(-1, 2)), rng).reshape(-1)
    assert mechanism(people, 1, np.random.default_rng(1))[0].T.reshape(-1).tolist() == above.tolist()


def test_what_comes_last_pays_with_its_rare_groups():
    """Medians of 50 releases: a small region gains people in the pilot's order, and not with geography first."""
    tree = Hierarchy.from_codes(["n", *"s" * 20], [str(area) for area in range(21)])
    schema = Schema({"marital": ("married", "widowed"), "age": tuple("abcdefghij")})
    people = np.zeros((21, 20), int)
    people[0, :10], people[1:, :10] = 1, 100
    after = []
    for levels in (PILOT_LEVELS, GEOGRAPHY_FIRST):
        released = OnsTopDown(tree, schema, 0.5, levels)(people, 50, np.random.default_rng(1))
        parts = released[:, 0], released[:, :, :10], released[:, :, 10:]
        after.append([np.median(part.reshape(50, -1).sum(axis=1)) for part in parts])
    (north, married, widowed), (north_first, married_first, widowed_first) = after
    assert abs(north_first - 10) < (north - 10) / 10
    assert max(married, married_first) < people.sum() - 100
    assert widowed_first > widowed > 100  # there are none


@pytest.mark.parametrize("options", [{}, {"levels": LEVELS, "shares": EQUAL}])
def test_large_budgets_release_the_truth_whatever_the_order_of_leaves(options):
    people = np.arange(18).reshape(3, 6)
    mechanism = top_down(tree=Hierarchy.from_parents([-1, 0, 0, 2, 1, 2]), epsilon=1e6, **options)
    assert (mechanism(people, 2, np.random.default_rng(0)) == people).all()


def test_adjusted_stage_is_the_release_before_its_last_rounding():
    mechanism = top_down()
    real, whole = (
        mechanism.stage(name)(HISTOGRAM, 20, np.random.default_rng(9)).sum(axis=(1, 2))
        for name in ("adjusted", "rounded")
    )
    assert np.abs(real - np.rint(real)).max() < 1e-9
    assert whole.tolist() == mechanism(HISTOGRAM, 20, np.random.default_rng(9)).sum(axis=(1, 2)).tolist()
    one = OnsTopDown(Hierarchy.regular(4, 1), SCHEMA, 2.0, [*PILOT_LEVELS[:2], Table(1, "detailed")], ("1/3",) * 3)
    real, whole = (one.stage(name)(HISTOGRAM, 1, np.random.default_rng(3)) for name in ("adjusted", "rounded"))
    assert 0 < np.abs(real - whole).max() < 1  # one family in the last level: the same noise


@pytest.mark.parametrize(("law", "people"), [("laplace", 1), ("laplace", 4), ("geometric", 4)])
def test_levels_cost_their_shares_for_every_person(law, people):
    mechanism, pair = top_down(epsilon=3.0, law=law), NeighborPair.add_people(HISTOGRAM, (0, 0), people)
    for places, share in (([0], 0.01), ([1], 0.05), ([2], 0.165), ([3], 0.775), (None, 1)):
        stage = mechanism.stage("measurements", only=places)
        assert stage.claim.epsilon == pytest.approx(3 * share)
        assert stage.exact_loss(pair).maximum == pytest.approx(3 * share * people)


def test_gaussian_levels_keep_their_shares_of_epsilon_and_delta():
    mechanism, shares = top_down(epsilon=3.0, law="gaussian", delta=0.04), (0.01, 0.05, 0.165, 0.775)
    assert mechanism.claim == ApproxDP(3.0, 0.04)
    for place, share in enumerate(shares):
        claim = mechanism.stage("measurements", only=[place]).claim
        assert (claim.epsilon, claim.delta) == (pytest.approx(3 * share), pytest.approx(0.04 * share))
        law = GaussianDP(1 / mechanism.noises[place].scale)  # exact: one count of the level changes by 1
        assert law.delta_at(claim.epsilon) == pytest.approx(claim.delta, rel=1e-6)
        assert law.delta_at(claim.epsilon) <= claim.delta
    assert mechanism.stage("measurements").exact_loss(NeighborPair.add_people(HISTOGRAM, (0, 0))) is None


@pytest.mark.parametrize("law", ["laplace", "geometric", "gaussian"])
def test_zeros_that_get_no_noise_are_a_witness(law):
    options = {"law": law, "delta": 0.05 * (law == "gaussian")}
    stage = top_down(epsilon=3.0, perturb_zeros=False, **options).stage("measurements", only=[3])
    step = 3 * 0.775
    for people in (2, 1):
        pair = NeighborPair.add_people(HISTOGRAM, (0, 2), people)
        loss = stage.exact_loss(pair)
        missing = 1.0 if law != "geometric" else 1 - math.tanh(step / 2) * math.exp(-people * step)
        assert (loss.missing_mass, loss.reverse().infinite_mass) == pytest.approx((missing, missing))
    drawn = stage(pair.y, 500, np.random.default_rng(1))
    assert np.isneginf(stage.log_likelihood(drawn, pair.x)).mean() > 0.5
    assert np.isfinite(stage.log_likelihood(drawn, pair.y)).all()
    empties = stage(pair.x, 500, np.random.default_rng(2))
    assert np.isneginf(stage.log_likelihood(empties, pair.y)).all() == (law != "geometric")
    assert np.isfinite(stage.log_likelihood(empties, pair.x)).all()
    filled = stage.exact_loss(NeighborPair.add_people(HISTOGRAM, (0, 0)))
    assert law == "gaussian" or (filled.maximum, filled.infinite_mass) == (pytest.approx(step), 0)


@pytest.mark.parametrize("law", ["laplace", "geometric", "gaussian"])
def test_log_likelihood_of_levels(law):
    pair, delta = NeighborPair.add_people(HISTOGRAM, (0, 0)), 0.05 * (law == "gaussian")
    averages_one(top_down(epsilon=3.0, law=law, delta=delta).stage("measurements", only=[0, 2]), pair.x, pair.y, 5000)


def test_transition_matrix_and_its_classes():
    counts = np.array([0, 1, 2, 3, 4, 5, 10, 11, 25, 26, 50, 51, 100, 101, 1000, 1001, 10**6])
    assert transition_matrix(counts, counts).sum(axis=1).tolist() == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert utility(counts, counts)["on_diagonal"] == 1
    assert transition_matrix([5], [-1])[5, len(CLASSES)] == 1
    assert math.isnan(utility([5, 2], [-1, 2])["hellinger"])
    assert utility([4, 0], [4, 2])["hellinger"] == pytest.approx(1.0)
