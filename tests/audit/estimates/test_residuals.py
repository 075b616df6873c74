import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp
from scipy.stats import gaussian_kde, norm
from scipy.stats import t as student

from audit.estimates.residuals import residual_loss
from audit.results import LossEstimate
from tests.helpers import averaged, geometric, halving, refused_like

RISING = np.repeat(np.arange(-5, 6), [40, 20, 10, 5, 50, 60, 50, 5, 10, 20, 40])  # more of them further out


@pytest.mark.parametrize("lag", [1, 2, 5])
def test_the_lag_tail_of_a_geometric_law_is_exact_at_every_start_and_lag(lag):
    estimate = residual_loss(halving(), lag=lag, at=range(8), rng=1)
    assert estimate.loss == pytest.approx(np.full(8, math.log(2)), abs=1e-14)
    assert estimate.value == pytest.approx(math.log(2), abs=1e-14)


@pytest.mark.parametrize("shape", [(9261,), (3, 500)])
@pytest.mark.parametrize("make", [geometric, averaged, lambda epsilon, shape, rng: rng.standard_t(4, shape) / epsilon])
def test_the_density_is_that_of_scipy(make, shape):
    residuals = make(0.1, shape, np.random.default_rng(3))
    estimate = residual_loss(residuals, method="kde", resamples=20, rng=1)
    density = gaussian_kde(residuals.ravel(), bw_method=0.15)
    p5, p95 = np.percentile(residuals, [5, 95])
    half = 2 * max(abs(p5), abs(p95))
    edges = np.arange(-half, half, 1.0)
    assert estimate.settings["window"] == half
    assert estimate.at == pytest.approx((edges[:-1] + 0.5)[: len(estimate.at)], abs=1e-12)
    assert half - 2.5 < estimate.at[-1] <= half - 1.5
    expected = density.logpdf(estimate.at) - density.logpdf(estimate.at + 1)
    assert estimate.loss == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("epsilon", [0.05, 0.1])
def test_a_robust_kernel_is_not_blind_to_heavy_tails(epsilon):
    """Geometric errors of a loss of epsilon, one in a hundred of them in the thousands, as raking makes them."""
    rng = np.random.default_rng(4)
    errors = np.subtract(*rng.geometric(-np.expm1(-epsilon), (2, 20_000))).astype(float)
    errors[::100] += rng.choice([-1, 1], 200) * rng.uniform(2000, 20_000, 200)
    plain, robust = (residual_loss(errors, method="kde", rng=1, **more) for more in ({}, {"bandwidth": "robust"}))
    assert robust.value == pytest.approx(epsilon, rel=0.15)
    assert plain.value < epsilon / 3
    assert (len(plain.notes), robust.notes) == (1, ())
    assert plain.notes[0].startswith("the errors have heavy tails, and the kernel, a share of their standard deviation")
    spread = 1.4826 * np.median(np.abs(errors - np.median(errors)))
    assert robust.settings["kernel_sd"] == pytest.approx(spread * (4 / (5 * errors.size)) ** (1 / 7))
    assert LossEstimate.from_dict(plain.to_dict()).notes == plain.notes
    clean = residual_loss(np.delete(errors, np.s_[::100]), method="kde", rng=1)  # negative control
    assert clean.notes == ()
    assert clean.value == pytest.approx(epsilon, rel=0.15)


def test_a_density_that_underflows_stays_finite():
    residuals = np.repeat([-400.0, 0.0, 1.0, 400.0], 5)
    estimate = residual_loss(residuals, method="kde", bandwidth=0.5, bandwidth_unit="people", rng=1)
    x = np.append(estimate.at, estimate.at[-1] + 1)
    exact = -np.diff(logsumexp(-(((x - residuals[:, None]) / 0.5) ** 2) / 2, axis=0))
    assert np.abs(exact).max() > 745  # past what a plain density could hold
    assert estimate.loss == pytest.approx(exact, rel=1e-10, abs=1e-9)
    assert np.isfinite(estimate.low).all()


integers = arrays(np.int64, st.integers(10, 60), elements=st.integers(-9, 9))
halves = arrays(np.float64, st.integers(10, 60), elements=st.integers(-18, 18).map(lambda number: number / 2))
floats = arrays(np.float64, st.integers(10, 60), elements=st.floats(-9, 9, width=16))
any_residuals = st.one_of(integers, halves, floats).filter(lambda residuals: np.ptp(residuals) > 0)


@pytest.mark.parametrize("rho", [0.0005, 0.05, 0.5, 2.0])
@pytest.mark.parametrize("change", [1, 3])
def test_the_slope_of_gaussian_noise_is_rho(rho, change):
    # The law itself instead of draws from it, as quantiles; bins of a continuous law leave 1 in 1,000.
    scale = change / math.sqrt(2 * rho)
    quantiles = (np.arange(40_000) + 0.5) / 40_000
    k = np.arange(-math.ceil(6 * scale) - 2, math.ceil(6 * scale) + 3)
    law = np.exp(-0.5 * (k / scale) ** 2)
    whole = k[np.searchsorted(np.cumsum(law / law.sum()), quantiles)]
    for sample in (whole, whole + 7, scale * norm.ppf(quantiles), scale * norm.ppf(quantiles) - 0.3):
        estimate = residual_loss(sample, method="slope", change=change, resamples=20, rng=1)
        assert estimate.value == pytest.approx(rho, rel=0.003)
        assert estimate.at.mean() == pytest.approx(np.median(sample), abs=estimate.settings["bin"])
        middle = np.abs(estimate.at - np.median(sample)) < 2 * scale
        line = (estimate.at - sample.mean()) * change / scale**2  # log-ratio of one step of `change` people
        assert estimate.loss[middle] == pytest.approx(line[middle], rel=0.06, abs=0.02)


@given(any_residuals, st.sampled_from([1, 1.5, 4]), st.sampled_from([0, 0.25, 3]))
def test_the_lag_tail_is_its_definition(residuals, lag, start):
    def tail(k):
        return sum(1 for r in residuals if r >= k) + sum(1 for r in residuals if r <= -k)

    if tail(start + lag) == 0:
        with pytest.raises(ValueError, match="no event of the curve"):
            residual_loss(residuals, lag=lag, at=[start])
        return
    estimate = residual_loss(residuals, lag=lag, at=[start], resamples=20, rng=1)
    assert estimate.loss[0] == pytest.approx(math.log(tail(start) / tail(start + lag)) / lag, abs=1e-12)


@given(any_residuals)
def test_the_histogram_is_its_definition(residuals):
    """Halves go up, not to even numbers; where one of two neighbors has no residuals there is no loss."""
    window = 2 * np.abs(np.percentile(residuals, [5, 95])).max()
    assume(window >= 1)
    numbers = range(-math.floor(window), math.floor(window) + 2)
    counts = [sum(math.floor(residual + 0.5) == number for residual in residuals) for number in numbers]
    losses = [math.log(one / after) if one and after else math.nan for one, after in itertools.pairwise(counts)]
    if np.isnan(losses).all():
        with pytest.raises(ValueError, match="no event of the curve"):
            residual_loss(residuals, method="histogram")
        return
    estimate = residual_loss(residuals, method="histogram", resamples=20, rng=1)
    assert (estimate.settings["window"], estimate.at.tolist()) == (window, list(numbers)[:-1])
    assert estimate.loss == pytest.approx(losses, abs=1e-12, nan_ok=True)
    assert np.array_equal(np.isnan(estimate.loss), np.isnan(estimate.low))
    assert estimate.value == pytest.approx(np.nanmedian(np.abs(losses)), abs=1e-12)


def test_default_steps_are_rounded_up_where_residuals_are_whole():
    whole = np.arange(-6, 7).repeat(3)  # a median absolute deviation of 3
    estimate, shifted = residual_loss(whole, at=[0], rng=1), residual_loss(whole * 1.01, at=[0], rng=1)
    assert estimate.settings["lag"] == 5
    assert shifted.settings["lag"] == pytest.approx(3 * 1.01 * 1.4826)
    assert residual_loss(whole, lag=1, rng=1).at.tolist() == [0, 3, 5, 7, 9]
    assert residual_loss(whole * 1.01, lag=1, rng=1).at == pytest.approx(3 * 1.01 * 1.4826 * np.arange(5) / 2)


def test_the_interval_of_the_median_stops_at_zero():
    """An even law has a median |loss| near 0, and |loss| has no other side."""
    low, high = residual_loss(np.arange(-20, 21).repeat(4), method="histogram", multiplier=1, rng=1).interval
    assert low == 0 < high


def test_noise_of_less_than_a_person_still_shifts_by_a_person():
    estimate = residual_loss(np.repeat([-1.0, 0.0, 1.0], [2, 96, 2]), rng=1)
    assert (estimate.at.tolist(), estimate.settings["lag"]) == ([0, 1, 2], 1)
    assert estimate.loss == pytest.approx([math.log(196 / 4), math.nan, math.nan], nan_ok=True)
    assert estimate.value == pytest.approx(math.log(49))


def test_the_standard_error_is_that_of_the_delta_method():
    residuals = geometric(0.1, (10, 3000), np.random.default_rng(16))
    estimate = residual_loss(residuals, lag=11, at=[6], resamples=20_000, confidence=0.9, rng=1)
    upper, lower = (np.abs(residuals) >= 6).sum(axis=1), (np.abs(residuals) >= 17).sum(axis=1)
    share = upper / upper.sum() - lower / lower.sum()  # what each run adds to the logarithm
    error = math.sqrt(10 / 9 * (share**2).sum()) / 11
    half = (estimate.high[0] - estimate.low[0]) / 2
    # 20,000 resamples give it to 0.5% (false alarm 1e-4); without its correction for 10 runs it would be 10% less.
    assert half == pytest.approx(student.ppf(0.95, 9) * error, rel=0.02)


def test_resampling_follows_the_dependence():
    rng = np.random.default_rng(10)
    common = {"lag": 11, "at": [0, 6, 11], "rng": 1, "resamples": 1000}

    def width(residuals, **more):
        estimate = residual_loss(residuals, **common, **more)
        return estimate.high - estimate.low

    base = geometric(0.1, (200, 50), rng)
    repeated = np.repeat(base, 9, axis=1)
    # Nine copies of everything tell no more than one: intervals over single areas are three times too narrow. Widths
    # from 200 runs scatter by 5%, from 1,000 resamples by 2%: every gate here has a false alarm below 1e-3.
    assert width(repeated) / width(repeated.ravel()) == pytest.approx(3 * np.ones(3), rel=0.3)
    blocks = np.repeat(np.arange(10_000), 9)
    assert width(repeated.ravel(), blocks=blocks) == pytest.approx(width(base.ravel()), rel=0.12)
    # Runs that hold the same residuals in another order vary less than single areas would: not at all.
    fixed = np.array([rng.permutation(base[0]) for _ in range(20)])
    assert width(fixed) == pytest.approx(np.zeros(3), abs=1e-12)
    assert (width(fixed.ravel()) > 0.01).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"residuals": np.zeros(50)}, "residuals must vary .*, got only 0.0"),
        ({"residuals": np.arange(9)}, "residuals must be at least 10, got 9"),
        ({"residuals": []}, r"filled array of 1 or 2 dimensions, got shape \(0,\)"),
        ({"method": "median"}, "method must be one of 'lag_tail', 'histogram', 'kde', 'slope', got 'median'"),
        ({"method": "slope", "change": 1e308}, r"change must be less than 2\*\*53 people, got 1e\+308"),
        ({"method": "slope", "residuals": np.repeat([0, 1], [9, 3])}, "must fill at least three bins next to each oth"),
        ({"method": "slope", "residuals": RISING}, "must thin out away from 0"),
        ({"lag": 0.5}, "lag must be at least one person, got 0.5"),
        ({"lag": 10_000}, "no event of the curve has residuals on both sides"),
        ({"at": [-1.0]}, "at must be 0 or more, got -1.0"),
        ({"method": "kde", "bandwidth": 1e-9}, "bandwidth must give a kernel of 0.01 people at least, and at most as"),
        ({"method": "kde", "bandwidth": "robust", "bandwidth_unit": "sd"}, "a robust bandwidth has no unit, got 'sd'"),
        ({"method": "kde", "bandwidth_unit": "mm"}, 'bandwidth_unit must be "sd" or "people", got \'mm\''),
        ({"method": "kde", "percentile": 50}, "percentile must be above 50 and at most 100, got 50"),
        ({"method": "kde", "multiplier": 0.001}, "the window of errors must reach 1 to 50000 people, got 0.0"),
        ({"blocks": [1, 2]}, r"blocks must have one label for each of 200 areas, got shape \(2,\)"),
        ({"blocks": np.ones(200)}, "blocks must have at least 2 different labels, got 1"),
        ({"resamples": 19}, "resamples must be at least 20, got 19"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1"),
    ],
)
def test_residuals_that_say_nothing_and_settings_out_of_range_are_refused(options, words):
    with refused_like(ValueError, words):
        residual_loss(**{"residuals": geometric(0.1, 200, np.random.default_rng(14))} | options)


def test_every_setting_changes_what_it_names():
    residuals = geometric(0.1, 2000, np.random.default_rng(7))
    plain = residual_loss(residuals, method="kde", rng=1)
    absolute = {"bandwidth": plain.settings["kernel_sd"], "bandwidth_unit": "people"}
    same = residual_loss(residuals, method="kde", **absolute, rng=1)
    assert same.loss == pytest.approx(plain.loss, abs=1e-12)
    assert plain.settings["kernel_sd"] == pytest.approx(0.15 * residuals.std(ddof=1))
    for setting in ({"bandwidth": 0.3}, {"percentile": 90}, {"multiplier": 1}):
        changed = residual_loss(residuals, method="kde", **setting, rng=1)
        assert changed.loss.tolist() != plain.loss.tolist()
        follow = {"kernel_sd": 0, "window": 0}
        assert changed.settings | follow == plain.settings | setting | follow
    wide, narrow = (residual_loss(residuals, method="histogram", multiplier=m, rng=1) for m in (2, 1))
    assert wide.settings["window"] == 2 * narrow.settings["window"]
    half = residual_loss(residuals, confidence=0.5, rng=1)
    assert (half.high - half.low < residual_loss(residuals, rng=1).high - half.low).all()
