"""Laws of averages against other integrals over the same region, and against rejection sampling."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp

from algorithms.phsafe.postprocessing import ratios
from algorithms.phsafe.postprocessing.ratios import ratio_law, shared_ratio_laws

TAIL = 0.05
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(240)


def columns(*values):
    return tuple(np.array([value], float) for value in values)


def nodes(low, high, power=1):
    """Points and weights of Gauss and Legendre, denser at `low` when `power` is above 1."""
    share = (1 + POINTS) / 2
    return low + (high - low) * share**power, (high - low) * power * share ** (power - 1) * WEIGHTS / 2


def log_between(low, high):
    """Log probability that a standard normal variable is between two values; 0 where they are the same to rounding."""
    flip = low > 0  # to the tail that keeps its precision
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(divide="ignore"):
        return log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))


def by_denominator(d, vd, y, v, bounds, reach, ratios):
    """Probabilities that N / D is at most each of `ratios`: for fixed D, a difference of normal probabilities."""
    bottom, weights = nodes(1, reach, 2)

    def log_mass(ratio):
        logs = log_between((bounds[0] * bottom - y) / math.sqrt(v), (ratio * bottom - y) / math.sqrt(v))
        return logsumexp(logs - (bottom - d) ** 2 / (2 * vd), b=weights)

    return np.exp([log_mass(ratio) - log_mass(bounds[1]) for ratio in ratios])


# noisy denominator and numerator, where the posterior of the denominator ends
PLACES = [
    (1000, 2500, 2500),
    (100, 250, 1200),
    (-100, 300, 1500),
    (50, -30, 800),
    (5, 2000, 1300),
    (-6000, -5000, 60),  # 50 and 40 standard deviations outside
    (8000, -5000, 3500),
]


@pytest.mark.parametrize(
    ("d", "y", "reach", "bounds"),
    [(*place, (1, 10)) for place in PLACES] + [(*PLACES[2], (2, 10)), (*PLACES[4], (1, 6))],
)
def test_one_average_agrees_with_the_integral_over_the_denominator(d, y, reach, bounds):
    mean, *ends = ratio_law(columns(d, 14814.81), columns(y, 14782.24), bounds, TAIL)[:, 0]
    ratios, weights = nodes(*bounds, 3)
    probabilities = by_denominator(d, 14814.81, y, 14782.24, bounds, reach, [*ends, *ratios])
    assert probabilities[:2] == pytest.approx([TAIL, 1 - TAIL], abs=1e-6)
    assert mean == pytest.approx(bounds[1] - probabilities[2:] @ weights, abs=1e-5)


def shared_by_grid(d, y, z, variance, least, reach, ratios):
    """Probabilities that the first part's average is at most each of `ratios`, by an integral over D and the part."""
    bottom, weights = (column[:, None] for column in nodes(1, reach, 2))
    sigma = math.sqrt(variance)

    def log_mass(ratio):
        logs = []
        for low, high in itertools.pairwise(sorted({0, min(ratio, least), ratio})):  # there is a kink at `least`
            averages, more = nodes(low, high, 2)
            part = bottom * averages
            rest = log_between((np.maximum(least * bottom - part, 0) - z) / sigma, (10 * bottom - part - z) / sigma)
            rest -= ((part - y) ** 2 + (bottom - d) ** 2) / (2 * variance)
            logs.append(logsumexp(rest, b=weights * more * bottom))
        return logsumexp(logs)

    return np.exp([log_mass(ratio) - log_mass(10) for ratio in ratios])


@pytest.mark.parametrize(
    ("d", "y", "z", "reach", "least"),
    [(1000, 600, 1900, 1500, 2), (20, 15, 60, 250, 2), (-2000, 100, -900, 40, 1), (30, 1500, -200, 500, 2)],
)
def test_shared_averages_agree_with_the_integral_over_the_denominator_and_a_part(d, y, z, reach, least):
    laws = shared_ratio_laws(columns(d, 1709), (columns(y, 1709), columns(z, 1709)), (least, 10), TAIL)[:, :, 0]
    for law, first, second in ((laws[1], y, z), (laws[2], z, y)):
        result = shared_by_grid(d, first, second, 1709, least, reach, law[1:])
        assert result == pytest.approx([TAIL, 1 - TAIL], abs=1e-5)
    assert laws[0, 0] == pytest.approx(laws[1, 0] + laws[2, 0], abs=1e-5)


def test_more_panels_are_taken_where_they_are_needed(monkeypatch):
    """Numerators 45 and 2 standard deviations below 0: the density falls on scales from 1/2000 to 1."""
    noisy = columns(1582, 14400), (columns(-1817, 1600), columns(-85, 1600)), (1, 10), TAIL
    laws = shared_ratio_laws(*noisy)[:, :, 0]
    assert laws[0, 0] == pytest.approx(laws[1, 0] + laws[2, 0], abs=5e-4)
    monkeypatch.setattr(ratios, "PANELS", 96)
    monkeypatch.setattr(ratios, "INNER_PANELS", 36)
    assert laws == pytest.approx(shared_ratio_laws(*noisy)[:, :, 0], abs=1e-3)
    monkeypatch.setattr(ratios, "PANELS", 8)
    monkeypatch.setattr(ratios, "INNER_PANELS", 3)
    monkeypatch.setattr(ratios, "TOLERANCE", 1)
    assert abs(laws - shared_ratio_laws(*noisy)[:, :, 0]).max() > 1e-3  # without them


def test_variances_that_no_release_has_are_refused():
    with pytest.raises(
        ValueError, match=r"^variances must be nearer each other for averages to 0.0005, got 1e\+06, 1e\+08, 0.01$"
    ):
        shared_ratio_laws(columns(1000, 1e6), (columns(-1e5, 1e8), columns(5, 0.01)), (1, 10), TAIL)
