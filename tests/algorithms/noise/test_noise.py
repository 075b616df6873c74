"""The four noise laws: exact formulas, samplers against them, and the secure mode.

Samplers are held to a two-sided standard: a chi-square test must accept the true law (p > 1e-6, the false alarm of each
such check) and reject that of another parameter, either way (p < 1e-12): 10% off by 10^6 draws, 2% by 10^7, 30% by few.
All seeds are fixed.
"""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from algorithms.noise import DiscreteGaussian, Gaussian, Laplace, TwoTailedGeometric, secure
from algorithms.noise.drawing import CHUNK
from tests.helpers import chi_square, in_full, refuses

ACCEPT, REJECT = 1e-6, 1e-12
SIZE = 1_000_000
SIGMA_242 = math.sqrt(242)

SAMPLED = [
    *(TwoTailedGeometric(epsilon) for epsilon in (2e-12, 0.1, 2.5)),
    *(DiscreteGaussian(scale) for scale in (0.4, SIGMA_242, 1000, 1001, 5e11)),
    *(Laplace(scale) for scale in (2e-150, 40)),
    *(Gaussian(scale) for scale in (2e-150, 40)),
]
MORE = [  # between those
    *(TwoTailedGeometric(epsilon) for epsilon in (1e-5, 0.025, 0.5, 1, 6)),
    *(DiscreteGaussian(scale) for scale in (0.8, 1, 3, 1e6)),
    *(Laplace(0.2), Gaussian(0.2)),
]
LAWS = st.one_of(
    st.builds(TwoTailedGeometric, st.floats(1e-6, 60)),
    st.builds(DiscreteGaussian, st.floats(0.02, 200) | st.floats(1001, 1e9)),
    st.builds(Laplace, st.floats(1e-6, 1e6)),
    st.builds(Gaussian, st.floats(1e-6, 1e6)),
)


def rng(seed=20240229):
    return np.random.default_rng(seed)


def is_discrete(law):
    return hasattr(law, "logpmf")


def times(law, factor):
    """The same law with its one parameter multiplied by `factor`."""
    (parameter,) = vars(law).values()
    return type(law)(parameter * factor)


def fit(draws, law):
    """P-value of the chi-square test of `draws` against `law`."""
    edges = math.sqrt(law.variance) * np.linspace(-9, 9, 361)
    if is_discrete(law):
        edges = np.unique(np.floor(edges))
    observed = np.bincount(np.searchsorted(edges, draws.ravel()), minlength=edges.size + 1)
    expected = draws.size * np.diff(law.cdf(edges), prepend=0, append=1)
    return chi_square(observed, expected, least=50)


def assert_two_sided(draws, law, off=0.3):
    assert fit(draws, law) > ACCEPT
    assert fit(draws, times(law, 1 - off)) < REJECT
    assert fit(draws, times(law, 1 + off)) < REJECT


# The laws


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 30])
def test_two_tailed_geometric_is_scipys_dlaplace(epsilon):
    law, k = TwoTailedGeometric(epsilon), np.arange(-24, 25)
    np.testing.assert_allclose(law.logpmf(k), stats.dlaplace.logpmf(k, epsilon), rtol=1e-12)
    np.testing.assert_allclose(law.cdf(k), stats.dlaplace.cdf(k, epsilon), rtol=1e-12)
    np.testing.assert_allclose(law.variance, stats.dlaplace.var(epsilon), rtol=1e-6)


@pytest.mark.parametrize(("law", "oracle"), [(Laplace, stats.laplace), (Gaussian, stats.norm)])
@pytest.mark.parametrize("scale", [1e-3, 250])
def test_continuous_laws_are_scipys(law, oracle, scale):
    x = scale * np.array([-700, -37, -4, -0.3, 0, 1e-9, 0.7, 5, 37, 700])
    ours, theirs = law(scale), oracle(scale=scale)
    np.testing.assert_allclose(ours.logpdf(x), theirs.logpdf(x), rtol=1e-13)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.sf(x), theirs.sf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.variance, theirs.var(), rtol=1e-15)


@pytest.mark.parametrize("scale", [0.05, 0.999, 1.001, SIGMA_242, 999, 1001])
def test_discrete_gaussian_by_plain_summation(scale):
    law = DiscreteGaussian(scale)
    k = np.arange(math.ceil(39 * scale) + 2)
    mass = np.exp(-0.5 * (k / scale) ** 2)
    total = 2 * math.fsum(mass) - 1
    probes = np.unique(np.rint(scale * np.array([0, 0.1, 1, 3, 8, 20, 37])).astype(int))
    tails = [math.fsum(mass[m + 1 :]) / total for m in probes]
    np.testing.assert_allclose(
        law.logpmf(probes), -0.5 * (probes / scale) ** 2 - math.log(total), rtol=1e-12, atol=1e-16
    )
    far = math.ceil(1e6 * scale)
    np.testing.assert_allclose(law.logpmf(far), -0.5 * (far / scale) ** 2 - math.log(total), rtol=1e-12)
    np.testing.assert_allclose(law.sf(probes), tails, rtol=1e-12)
    np.testing.assert_allclose(law.cdf(-probes - 1), tails, rtol=1e-12)
    np.testing.assert_allclose(law.variance, 2 * math.fsum(k**2 * mass) / total, rtol=1e-12)


def test_variances_and_tails_at_the_extremes():
    assert TwoTailedGeometric(1e-12).variance == pytest.approx(2e24)
    assert TwoTailedGeometric(40).variance == pytest.approx(2 * math.exp(-40))
    assert TwoTailedGeometric(1e300).variance == 0
    assert DiscreteGaussian(0.05).variance == pytest.approx(2 * math.exp(-200), rel=1e-12)
    assert DiscreteGaussian(1e12).variance == 1e24
    assert DiscreteGaussian(1e-12).variance == 0
    assert TwoTailedGeometric(0.5).sf(1399) == pytest.approx(math.exp(-700) / (1 + math.exp(-0.5)))


@settings(max_examples=200)  # half of the laws are discrete
@given(law=LAWS, deviations=st.floats(-30, 30), place=st.floats(-1e4, 1e4))
def test_distribution_functions_mirror_each_other_and_rise_and_integer_laws_live_on_integers(law, deviations, place):
    x = deviations * max(math.sqrt(law.variance), 1e-3)
    if is_discrete(law):
        x = math.floor(x)
        assert (law.cdf(place), law.sf(place)) == (law.cdf(math.floor(place)), law.sf(math.floor(place)))
        assert np.isfinite(law.logpmf(math.floor(place))) or abs(place) > 1
        assert place == math.floor(place) or law.logpmf(place) == -math.inf
    assert law.cdf(x) + law.sf(x) == pytest.approx(1, abs=1e-15)
    assert law.cdf(-x - is_discrete(law)) == law.sf(x)  # P(K <= -x - 1) = P(K > x) on the integers
    grid = max(math.sqrt(law.variance), 0.1) * np.linspace(-45, 45, 300)
    assert (np.diff(law.cdf(grid)) >= 0).all()
    assert (np.diff(law.sf(grid)) <= 0).all()
    assert law.cdf(grid[0]) >= 0
    assert law.sf(grid[-1]) >= 0


@pytest.mark.parametrize("law", [TwoTailedGeometric(1e308), DiscreteGaussian(5000), Laplace(1e-150), Gaussian(1e-150)])
def test_far_arguments_give_limits_without_warnings(law):
    log_mass = law.logpmf if is_discrete(law) else law.logpdf
    for x in (2, 1e300, math.inf):
        far = 1e9 * x
        assert law.cdf(-far) == law.sf(far) == 0
        assert law.cdf(far) == law.sf(-far) == 1
        assert log_mass(far) < -1e10
    for function in (law.cdf, law.sf, log_mass):  # an unknown value is not an impossible one
        assert np.isnan(function(math.nan))
        assert np.isnan(function([math.nan, 0.0])).tolist() == [True, False]


@pytest.mark.parametrize("law", [TwoTailedGeometric(0.5), DiscreteGaussian(3), Laplace(2), Gaussian(2)], ids=str)
def test_functions_take_scalars_and_any_shape(law):
    x = np.arange(-3, 3).reshape(2, 3)
    for function in (law.cdf, law.sf, law.logpmf if is_discrete(law) else law.logpdf):
        assert function(x).shape == (2, 3)
        assert isinstance(function(2), float)
        assert function(x)[1, 2] == function(2) == function([2])[0]
    assert isinstance(law.variance, float)


# The samplers


@pytest.mark.reliability(row=5)
@pytest.mark.parametrize(("size", "off"), in_full((SIZE, 0.1), (10 * SIZE, 0.02)))
@pytest.mark.parametrize("law", SAMPLED + [pytest.param(law, marks=pytest.mark.slow) for law in MORE], ids=str)
def test_draws_follow_the_law_and_no_other(law, size, off, record_property):
    draws = law.sample(size, rng())
    record_property("tried", size)
    assert draws.dtype == (np.int64 if is_discrete(law) else np.float64)
    assert_two_sided(draws, law, off)


ZERO = [*map(TwoTailedGeometric, (50, 1e308)), *map(DiscreteGaussian, (1e-12, 0.05))]


@pytest.mark.parametrize("law", ZERO, ids=str)
def test_noise_that_is_practically_always_zero(law):  # false alarm below 1e-15
    assert not law.sample(100_000, rng()).any()
    assert law.cdf(0) - law.cdf(-1) == 1


@pytest.mark.parametrize("law", [DiscreteGaussian(2.5), DiscreteGaussian(1001), TwoTailedGeometric(0.5)], ids=str)
def test_small_samples_and_the_ends_of_chunks_follow_the_law(law):
    generator = rng()
    assert_two_sided(np.concatenate([law.sample(n % 9, generator) for n in range(6000)]), law)
    ends = law.sample((25, CHUNK), generator)[:, -1000:]  # where a rejection sampler tops up
    assert_two_sided(ends, law)


LAGS = [*range(1, 33), 64, *(lags * CHUNK + step for lags in (1, 2) for step in (-1, 0, 1))]


def largest_correlation(draws):
    """Largest serial correlation over LAGS of the draws, their signs and magnitudes, in standard errors."""
    largest = 0.0
    for series in (draws, np.sign(draws), np.abs(draws)):
        centered = series - series.mean()
        for lag in LAGS:
            correlation = centered[:-lag] @ centered[lag:] / (math.sqrt(draws.size - lag) * centered.var())
            largest = max(largest, abs(float(correlation)))
    return largest


@pytest.mark.parametrize("law", [TwoTailedGeometric(0.7), DiscreteGaussian(2), Laplace(2), Gaussian(2)], ids=str)
@pytest.mark.parametrize("chunks", in_full(3, 8))
def test_no_serial_correlation_within_or_across_chunks(law, chunks):  # false alarm 117 * 2e-9 < 3e-7 for each law
    draws = law.sample(chunks * CHUNK + 1000, rng())
    assert largest_correlation(draws) < 6
    assert largest_correlation(np.resize(draws[:CHUNK], draws.size)) > 100


EACH = [TwoTailedGeometric(0.1), DiscreteGaussian(SIGMA_242), Laplace(2), Gaussian(2)]


@pytest.mark.parametrize("law", EACH, ids=str)
def test_the_stream_depends_on_the_seed_and_the_number_of_draws_only(law):
    flat = law.sample(140_000, rng(1))
    assert np.array_equal(flat, law.sample(140_000, rng(1)))
    assert np.array_equal(flat.reshape(14, 100, 100), law.sample((14, 100, 100), rng(1)))
    assert np.array_equal(flat, law.sample(np.int64(140_000), rng(1)))
    assert not np.array_equal(flat, law.sample(140_000, rng(2)))


@pytest.mark.parametrize("law", EACH, ids=str)
@pytest.mark.parametrize("size", [0, (3, 0), (), 1, (2, 3, 5), CHUNK + 1])
def test_sample_has_the_shape_asked_for(law, size):
    assert law.sample(size, rng()).shape == (size if isinstance(size, tuple) else (size,))


def test_no_draw_comes_near_the_end_of_int64():
    for law in (TwoTailedGeometric(1e-12), DiscreteGaussian(1e12)):
        assert np.abs(law.sample(SIZE, rng())).max() < 2**46


@pytest.mark.parametrize("law", [TwoTailedGeometric, Laplace, Gaussian, DiscreteGaussian])
def test_parameters_are_checked(law):
    name = "epsilon" if law is TwoTailedGeometric else "scale"
    for value in (0, -1.0, math.inf, -math.inf, math.nan):
        with pytest.raises(ValueError, match=f"^{name} must be positive and finite, got "):
            law(value)
    with pytest.raises(ValueError, match=f"^{name} must be from 1e-1.* to .*, got 1e-200$"):
        law(1e-200)
    for value in (True, np.True_, "1", None, 1j):
        with pytest.raises(TypeError, match=f"^{name} must be a number, got "):
            law(value)
    assert law(1) == law(1.0) == law(np.float32(1)) == law(Fraction(1))
    with pytest.raises(AttributeError):
        setattr(law(1), name, 2.0)


@pytest.mark.parametrize(("law", "limit"), [(Laplace, 1e150), (Gaussian, 1e150), (DiscreteGaussian, 1e12)])
def test_parameters_have_limits(law, limit):
    assert np.isfinite(law(limit).sample(1000, rng())).all()
    assert np.isfinite(law(limit).variance)
    with pytest.raises(ValueError, match=r"^scale must be from .* to .*, got "):
        law(1.001 * limit)
    refuses(ValueError, "epsilon must be from 1e-12 to inf, got 9e-13", TwoTailedGeometric, 9e-13)


@pytest.mark.parametrize("size", [True, 2.0, None, [2, 3], (2, 3.0)])
def test_size_is_made_of_integers_of_zero_or_more(size):
    message = f"size must be an integer or a tuple of integers, got {size!r}"
    refuses(TypeError, message, Gaussian(1).sample, size, rng())
    for negative in (-1, (2, -3)):
        refuses(ValueError, f"size must not be negative, got {negative}", TwoTailedGeometric(1).sample, negative, rng())


@pytest.mark.parametrize("source", [None, np.array(["secure"] * 2)])
@pytest.mark.parametrize("law", [DiscreteGaussian(1), Laplace(1)], ids=str)
def test_rng_is_a_generator_or_secure(law, source):
    with pytest.raises(TypeError, match=r'^rng must be a numpy Generator or "secure", got '):
        law.sample(3, source)


# The secure mode


SECURE = [TwoTailedGeometric(0.5), DiscreteGaussian(2.5)]
SECURE_TOO = [
    *(TwoTailedGeometric(epsilon) for epsilon in (2e-12, 1e-5, 0.1, 1, 2.5, 6)),
    *(DiscreteGaussian(scale) for scale in (0.4, 1, SIGMA_242, 1000, 1e6, 5e11)),
]


@pytest.mark.reliability(row=5)
@pytest.mark.parametrize(
    ("law", "size", "off"),
    [
        pytest.param(SECURE[0], 25_000, 0.1, marks=pytest.mark.quick),
        pytest.param(SECURE[1], 15_000, 0.1, marks=pytest.mark.quick),
        *(pytest.param(law, 100_000, 0.1, marks=pytest.mark.slow) for law in SECURE_TOO),
        *(pytest.param(law, 10 * SIZE, 0.02, marks=pytest.mark.slow) for law in SECURE),
    ],
    ids=str,
)
def test_secure_draws_follow_the_law_and_no_other(law, size, off, record_property):
    # Not seeded, by its nature: the false alarm of 1e-6 is per run of the test. 100,000 take a second.
    draws = law.sample((size, 1), "secure")
    record_property("tried", size)
    assert draws.dtype == np.int64
    assert draws.shape == (size, 1)
    assert_two_sided(draws, law, off)


@pytest.mark.parametrize("law", [TwoTailedGeometric(1e-12), TwoTailedGeometric(1e308)], ids=str)
def test_secure_noise_reaches_the_limits_of_the_parameters(law):
    # The median magnitude is log(2) / epsilon; 100 draws all on one side of a 45th of it or 45 times it: below 1e-30.
    assert law.sample(0, "secure").size == 0
    median = float(np.median(np.abs(law.sample(100, "secure"))))
    assert median == 0 if law.epsilon > 1 else 0.02 / law.epsilon < median < 31 / law.epsilon


def test_secure_geometric_noise_is_never_less_than_asked_for(monkeypatch):
    given = []
    fake = SimpleNamespace(
        vector_domain=lambda *_: None,
        atom_domain=lambda **_: None,
        l1_distance=lambda **_: None,
        make_laplace=lambda *_, scale: given.append(scale),
    )
    monkeypatch.setattr(secure, "_opendp", lambda: [fake] * 3)  # domains, metrics and measurements
    eps = [*np.exp(rng().uniform(np.log(1e-12), np.log(1e6), 5000)).tolist(), 1e-12, 1.0, 3.0, 49.0, 1e308]
    for epsilon in eps:
        secure.two_tailed_geometric(epsilon)
    losses = [1 / Fraction(scale) for scale in given]
    assert all(loss <= Fraction(epsilon) for loss, epsilon in zip(losses, eps, strict=True))
    assert all(loss > Fraction(epsilon) * (1 - Fraction(1, 2**50)) for loss, epsilon in zip(losses, eps, strict=True))
    assert any(Fraction(epsilon) < 1 / Fraction(1 / epsilon) for epsilon in eps)  # what rounding to nearest would do


@pytest.mark.parametrize("law", [Laplace(1), Gaussian(1)], ids=str)
def test_continuous_laws_have_no_secure_mode(law):
    with pytest.raises(ValueError, match=r"no exact sampler exists for a continuous one in floating point$"):
        law.sample(3, "secure")
