"""Post-processing: posterior laws against brute force, other integrals and samples; coverage; what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from algorithms.noise import DiscreteGaussian
from algorithms.phsafe.postprocessing.postprocess import MEASURED, interval_coverage, postprocess, totals_outside
from algorithms.phsafe.tables import PUBLISHED
from algorithms.release.frames import Frame

TAIL = 0.05
Z = 1.6448536269514722  # the 95% quantile of a standard normal law
ITERATED = [name for name in PUBLISHED if name not in ("PH2", "PH6")]


def table(name, counts, variance=1708.774, noise="Discrete Gaussian"):
    """Noisy counts of shape (groups, cells) in the layout of a release; groups are numbered regions."""
    counts = np.atleast_2d(counts)
    regions = np.repeat([str(1 + group) for group in range(len(counts))], counts.shape[1])
    columns = {"REGION_ID": regions, "REGION_TYPE": ["STATE"] * counts.size}
    if name in ITERATED:
        columns["ITERATION_CODE"] = ["*"] * counts.size
    columns[f"{name}_DATA_CELL"] = [cell for _ in counts for cell in MEASURED[name]]
    columns["COUNT"], columns["NOISE_DISTRIBUTION"] = counts.ravel(), [noise] * counts.size
    columns["VARIANCE"] = np.broadcast_to(variance, counts.shape).ravel().astype(float)
    return Frame(columns)


def published(name, **tables):
    """Estimates and ends of one table: shape (groups, cells, 3)."""
    options = {key: tables.pop(key) for key in ("level", "cap") if key in tables}
    frame = postprocess(tables, **options)[name]
    cells = len(set(frame[f"{name}_DATA_CELL"]))
    return np.stack([frame[column] for column in ("ESTIMATE", "LOWER", "UPPER")], axis=1).reshape(-1, cells, 3)


def changed(frame, **columns):
    return Frame(frame.to_dict() | columns)


def whole_law(y, variance, top):
    """The posterior on 0..top by its definition."""
    k = np.arange(top + 1)
    logs = -((k - y) ** 2) / (2 * variance)
    return np.exp(logs - logsumexp(logs))


def ends_of(pmf, tail=TAIL):
    cdf = np.cumsum(pmf)
    return int(np.argmax(cdf >= tail)), int(np.argmax(cdf >= 1 - tail))


@pytest.mark.parametrize(("variance", "sigmas"), [(0.3, -50), (0.3, 0.5), (14782.24, -1), (14782.24, 40)])
def test_counts_and_their_sums_have_the_exact_posterior(variance, sigmas):
    sigma = math.sqrt(variance)
    noisy = np.round([sigmas * sigma, 0.7 * sigma + 3]).astype(int)
    for level in (0.9, 0.5):
        result, tail = published("PH4", PH4=table("PH4", noisy, variance), level=level)[0], (1 - level) / 2
        laws = [whole_law(y, variance, int(max(y, 0) + 12 * sigma + 3)) for y in noisy]
        for cell, law in zip(result[1:], laws, strict=True):
            assert cell.tolist() == [round(law @ np.arange(law.size)), *ends_of(law, tail)]
        assert result[0].tolist() == [result[1, 0] + result[2, 0], *ends_of(np.convolve(*laws), tail)]


@pytest.mark.parametrize(("truth", "variance"), [(0, 0.3), (0, 30), (2, 30), (25, 30), (1, 1)])
def test_the_coverage_of_an_interval_is_that_of_all_noise_one_by_one(truth, variance):
    noise = np.arange(-60, 61)
    ends = np.array([ends_of(whole_law(truth + k, variance, 200)) for k in noise])
    held = noise[(ends[:, 0] <= truth) & (truth <= ends[:, 1])]
    exact = np.exp(DiscreteGaussian(math.sqrt(variance)).logpmf(held)).sum()
    assert interval_coverage(truth, variance) == pytest.approx(exact, abs=1e-9)


def test_totals_outside_of_their_noisy_sums_are_counted():
    noisy = {"PH7": table("PH7", [[-200, -200, -200], [9000, 9000, 9000]]), "PH4": table("PH4", [[5000, 5000]])}
    assert totals_outside(noisy, postprocess(noisy)) == (1, 3)


@pytest.mark.parametrize(
    ("name", "sums"),
    [
        ("PH2", {"1": "3 4 6 7 9 10 12 13", "2": "3 4", "5": "6 7", "8": "9 10", "11": "12 13"}),
        ("PH6", {"1": " ".join(MEASURED["PH6"]), "2": "3 4 5 6", "7": "8 9 10 11", "12": "13 14 15 16"}),
        ("PH3", {"1": " ".join(MEASURED["PH3"]), "3": "4 5 6 7", "8": "9 10"}),
        ("PH4", {"1": "2 3"}),
        ("PH7", {"1": "2 3 4"}),
    ],
)
def test_without_noise_tables_are_the_counts(name, sums):
    counts = 10 ** np.arange(len(MEASURED[name])) % 999_983
    for variance in (0, 1e-9):
        frame = postprocess({name: table(name, counts, variance)})[name]
        rows = {row[-4]: row[-3:] for row in frame.rows()}
        exact = dict(zip(MEASURED[name], counts.tolist(), strict=True))
        exact |= {total: sum(exact[cell] for cell in cells.split()) for total, cells in sums.items()}
        assert all(rows[cell] == (count,) * 3 for cell, count in exact.items())


@pytest.mark.parametrize("sigmas", [-4, 1])
def test_wide_laws_are_thinned_out_to_the_continuous_one(sigmas):
    sigma = 3e8
    result = published("PH4", PH4=table("PH4", [sigmas * sigma, 0], sigma**2))[0, 1] / sigma
    law = stats.truncnorm(-sigmas, np.inf, loc=sigmas)
    assert result == pytest.approx([law.mean(), *law.ppf([TAIL, 1 - TAIL])], abs=5e-4)


def test_impossibly_negative_counts_are_zero():
    assert not published("PH4", PH4=table("PH4", [-(10**15), -(10**6)]))[0].any()


def test_averages_of_each_table_have_their_own_numerators_and_denominators():
    exact = {"PH1_num": [600, 1900], "PH1_denom": [1000], "PH5_num": [700, 2100], "PH5_denom": [800]}
    exact |= {"PH8_num": [1500, 900], "PH8_denom": [500, 450]}
    result = postprocess({name: table(name, counts, 1e-9) for name, counts in exact.items()})
    assert {name: frame.columns for name, frame in result.items()} == {
        name: ("REGION_ID", "REGION_TYPE", "ITERATION_CODE", f"{name}_DATA_CELL", "ESTIMATE", "LOWER", "UPPER")
        for name in ("PH1", "PH5", "PH8")
    }
    for name, averages in {"PH1": [2.5, 0.6, 1.9], "PH5": [3.5, 0.875, 2.625], "PH8": [2400 / 950, 3, 2]}.items():
        assert result[name][f"{name}_DATA_CELL"].tolist() == ["1", "2", "3"]
        for column in ("ESTIMATE", "LOWER", "UPPER"):
            assert result[name][column] == pytest.approx(averages, abs=1e-6)


def test_families_have_two_persons_and_averages_a_cap():
    for name, fewest in (("PH1", 1), ("PH5", 2)):
        few = {
            f"{name}_num": table(f"{name}_num", [0, 1000], 1e-9),
            f"{name}_denom": table(f"{name}_denom", [1000], 1e-9),
        }
        assert published(name, **few)[0, 0] == pytest.approx(fewest, abs=1e-6)
    many = {"PH8_num": table("PH8_num", [10**5, 10**5]), "PH8_denom": table("PH8_denom", [100, 100])}
    assert np.all(published("PH8", cap=4, **many)[:, :, 1:] <= 4)
    assert np.all(published("PH8", cap=4, **many) > 3.9)


REACH = st.floats(-50, 50)


@pytest.mark.slow
@settings(max_examples=15)
@given(
    st.lists(st.tuples(REACH, REACH, REACH), min_size=1, max_size=10),
    st.sampled_from([12.2, 41.3, 304.0]),
    st.sampled_from([("PH1", 1), ("PH5", 2), ("PH8", 1)]),
)
def test_averages_are_possible_add_up_and_nest(places, sigma, average):
    name, least = average
    noisy = np.round(np.array(places) * sigma).astype(int)
    denominators = noisy[:, : len(MEASURED[f"{name}_denom"])]
    tables = {f"{name}_num": table(f"{name}_num", noisy[:, 1:], sigma**2)}
    tables[f"{name}_denom"] = table(f"{name}_denom", denominators, sigma**2)
    result, median = published(name, **tables), published(name, level=1e-9, **tables)
    assert np.all((least <= result[:, 0]) & (result[:, 0] <= 10))
    assert np.all((result >= 0) & (result <= 10))
    assert np.all((result[:, :, 1] <= median[:, :, 1]) & (median[:, :, 2] <= result[:, :, 2]))
    assert np.all((result[:, :, 1] <= result[:, :, 0]) & (result[:, :, 0] <= result[:, :, 2]))
    if name != "PH8":
        assert result[:, 0, 0] == pytest.approx(result[:, 1:, 0].sum(axis=1), abs=5e-4)


def test_what_other_rows_there_are_does_not_matter(monkeypatch):
    monkeypatch.setattr("algorithms.phsafe.postprocessing.ratios.BLOCK", 32)
    counts = np.random.default_rng(3).integers(-100, 1000, (40, 2))
    bottoms = np.random.default_rng(4).integers(-100, 400, (40, 1))
    both = published("PH1", PH1_num=table("PH1_num", counts), PH1_denom=table("PH1_denom", bottoms))
    one = published("PH1", PH1_num=table("PH1_num", counts[-1]), PH1_denom=table("PH1_denom", bottoms[-1]))
    assert one[0] == pytest.approx(both[-1], abs=1e-9)


PH4 = table("PH4", [500, 900])


def test_tables_that_are_absent_and_groups_that_are_missing_are_left_out():
    assert postprocess({}) == {}
    assert [*postprocess({"PH1_num": PH4, "PH4": PH4} | {"PH1_num": table("PH1_num", [5, 6])})] == ["PH4"]
    given = {"PH8_num": table("PH8_num", [[900, 800], [700, 600]]), "PH8_denom": table("PH8_denom", [300, 200])}
    assert postprocess(given)["PH8"]["REGION_ID"].tolist() == ["1"] * 3
    given["PH8_denom"] = changed(given["PH8_denom"], REGION_ID=["9", "9"])
    assert len(postprocess(given)["PH8"]) == 0
    assert len(postprocess({"PH4": PH4.where(np.zeros(2, bool))})["PH4"]) == 0


def test_cells_may_be_numbers_and_in_any_order():
    turned = Frame({name: PH4[name][::-1] for name in PH4.columns})
    as_numbers = changed(turned, PH4_DATA_CELL=np.array([3, 2]))
    assert list(postprocess({"PH4": as_numbers})["PH4"].rows()) == list(postprocess({"PH4": PH4})["PH4"].rows())


@pytest.mark.parametrize(
    ("frame", "rule"),
    [
        (table("PH7", [1, 2, 3]), "PH4 must have the columns of a release, got none called PH4_DATA_CELL"),
        (changed(PH4, COUNT=["x", "1"]), "COUNT and VARIANCE of PH4 must be numbers, got a value that is none: .*'x'"),
        (changed(PH4, COUNT=[0.5, 1]), r"COUNT of PH4 must be whole and below 2\*\*53, got 0.5"),
        (changed(PH4, COUNT=[2**53, 1]), r"COUNT of PH4 must be whole and below 2\*\*53, got 9"),
        (table("PH4", [1, 2], -1.0), "VARIANCE of PH4 must be finite and not negative, got -1.0"),
        (table("PH4", [1, 2], np.inf), "VARIANCE of PH4 must be finite and not negative, got inf"),
        (table("PH4", [1, 2], noise="Two-Sided Geometric"), "PH4 must be Discrete Gaussian to be post-processed, got "),
        (changed(PH4, PH4_DATA_CELL=["2", "1"]), r"cells 2, 3 once, got 2, 1 for 1 STATE \*"),
        (changed(PH4, PH4_DATA_CELL=["2", "2"]), r"cells 2, 3 once, got 2, 2 for 1 STATE \*"),
        (PH4.where(np.array([True, False])), r"PH4 must have each of the cells 2, 3 once, got 2 for 1 STATE"),
    ],
)
def test_what_no_release_holds_is_refused(frame, rule):
    with pytest.raises(ValueError, match=rule):
        postprocess({"PH4": frame})


def test_bad_options_are_refused():
    for tables, options, rule in (
        ({}, {"level": 1}, "level must be between 0 and 1, got 1"),
        ({}, {"cap": 2}, "cap of PH5 must be above 2 and finite, got 2"),
        ({}, {"cap": {"PH1": 10, "PH8": 10}}, "cap of PH5 must be above 2 and finite, got None"),
        ({"PH9": PH4}, {}, r"tables must be among PH1_num, .*, got PH9$"),
    ):
        with pytest.raises(ValueError, match=rule):
            postprocess(tables, **options)
