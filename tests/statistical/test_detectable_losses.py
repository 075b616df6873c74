"""A minimum detectable loss is called a violation in four of five audits; `tests/audit/methods` has exact laws."""

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom, norm

from audit.bounds.gaussian import gaussian_lower
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.measure.loss import measure_loss
from audit.methods import Gaussian, Renyi
from tests.audit.audits import COIN, PAIR, as_planned
from tests.audit.methods.cases import BOTH, ONE, WEIGHTS, binned, named
from tests.helpers import in_full

AUDITS = 4000  # a share of 0.8 of them strays by 0.026 with probability below 1e-4 (binomial)


@pytest.mark.parametrize(
    ("mu", "rare", "runs_x", "runs_y", "distance"),
    [
        (1.0, 0.5, 10_000, 10_000, 1),
        (1.0, 0.3, 3000, 300, 1),
        (1.0, 0.3, 300, 3000, 1),
        (0.3, 0.5, 5000, 5000, 3),
        (1.0, 0.02, 10_000, 10_000, 1),
    ],
)
def test_by_a_region(mu, rare, runs_x, runs_y, distance):
    """The rates of either law are both random; 0.025 besides for the normal approximation to their quantiles."""
    rng, hits, how = np.random.default_rng(9), round(rare * runs_x), Gaussian(GaussianDP(mu), distance, 0.95)
    found = how.detectable(named((0, hits, runs_x - hits), (0, 0, runs_y)), how.basis(ONE))

    def share(shift):
        a = rng.binomial(runs_x, rare, AUDITS)
        b = rng.binomial(runs_y, norm.cdf(ndtri(rare) + distance * shift), AUDITS)
        return np.mean(gaussian_lower(b, runs_y, a, runs_x, confidence=0.95) / distance > mu)

    assert share(found) == pytest.approx(0.8, abs=0.05)
    assert share(mu) < 0.05
    assert share((found + mu) / 2) < 0.6  # negative control


def test_by_the_divergence_of_one_event():
    rng, rho, runs, distance = np.random.default_rng(10), 0.1, 4000, 2
    how = Renyi(ZCDP(rho), distance, 0.95)
    found = how.detectable(named((0, 1200, 2800), (0, 0, runs)), how.basis(ONE))
    likely = norm.cdf(ndtri(0.3) + distance * math.sqrt(2 * found))
    shown = [
        renyi_event_lower(b, runs, a, runs, confidence=0.95) / distance**2 > rho
        for a, b in zip(rng.binomial(runs, 0.3, 400), rng.binomial(runs, likely, 400), strict=True)
    ]
    # Of 400 audits, a share of 0.8 strays by 0.08 with probability below 1e-4.
    assert np.mean(shown) == pytest.approx(0.8, abs=0.08)
    # One event carries about two thirds of the divergence, so that it sees less than a likelihood ratio.
    assert found > 1.3 * rho
    assert found > how.detectable(binned((0, 0, 0, runs), (0, 0, 0, runs)), how.basis(WEIGHTS))
    assert found < how.detectable(named((0, 1200, 2800), (0, 0, runs)), how.basis(BOTH))  # two regions share the error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rho", "runs_x", "runs_y", "distance"),
    [(0.5, 20_000, 20_000, 1), (0.02, 9000, 6000, 3), (0.005, 50_000, 50_000, 10)],
)
def test_by_a_likelihood_ratio(rho, runs_x, runs_y, distance):
    """Two normal laws weighed by their own likelihood ratio in 64 bins, clipped where that shows most."""
    rng, how = np.random.default_rng(11), Renyi(ZCDP(rho), distance, 0.95)
    found = how.detectable(binned((0, 0, 0, runs_x), (0, 0, 0, runs_y)), how.basis(WEIGHTS))
    assert rho < found < (2 if runs_x != runs_y else 1.6) * rho
    shift, powers = distance * math.sqrt(2 * found), []
    for clip in (0.5, 2.0, 3.0, 4.0):
        edges = np.linspace(-clip, clip, 63)
        values = np.concatenate([[-clip], (edges[:-1] + edges[1:]) / 2, [clip]])
        laws = [np.diff(norm.cdf((edges - side * shift**2 / 2) / shift), prepend=0, append=1) for side in (1, -1)]
        on_y, on_x = (rng.multinomial(runs, law, 500) for runs, law in zip((runs_y, runs_x), laws, strict=True))
        shown = [
            renyi_variational_lower(values, b, a, order=1.0, confidence=0.95) / distance**2 > rho
            for b, a in zip(on_y, on_x, strict=True)
        ]
        powers.append(np.mean(shown))
    # False alarm below 1e-4, for the best of four that differ widely.
    assert max(powers) == pytest.approx(0.8, abs=0.07)
    assert min(powers) < 0.5  # negative control: a clip that does not suit


def laplace_counts(truth):
    """Counts with Laplace noise, rounded: unrounded, the last bits of floats tell more."""
    return lambda counts, size, rng: np.round(counts + rng.laplace(0, 1 / truth.budget, (size, counts.size)), 6)


def geometric_counts(truth):
    """Counts with two-sided geometric noise."""
    p = -math.expm1(-truth.budget)

    def mechanism(counts, size, rng):
        up, down = rng.geometric(p, (2, size, counts.size))
        return counts + up - down

    return mechanism


LAWS = {as_planned: COIN, laplace_counts: PAIR, geometric_counts: PAIR}


def audits(claim, loss, size, times, first=0, law=as_planned):
    """Audits of the mechanism that a plan is for, or another one, at a loss of its own."""
    mechanism, pair = law(claim.at(loss)), LAWS[law]
    return [measure_loss(mechanism, pair, claim, size=size, rng=first + k) for k in range(times)]


def announced(claim, size, law=as_planned):
    """The minimum detectable loss of audits of a mechanism that loses as much: the middle of a few."""
    loss = 1.5 * claim.budget
    for _ in range(2):
        loss = np.median([result.detectable for result in audits(claim, loss, size, 9, first=5000, law=law)])
    return float(loss)


def violations(claim, loss, size, times, law=as_planned):
    return sum(result.verdict == "violated" for result in audits(claim, loss, size, times, law=law))


FULL = [
    *(PureDP(epsilon) for epsilon in (0.1, 1, 3)),
    *(ApproxDP(*promise) for promise in ((0.1, 1e-3), (1, 1e-5), (1, 0.01))),
    *(GaussianDP(mu) for mu in (0.3, 1, 3)),
    *(ZCDP(rho) for rho in (0.05, 0.5, 3)),
]


@pytest.mark.slow
@pytest.mark.reliability(row=4)
@pytest.mark.parametrize(("size", "times"), [(6000, 400), (20_000, 400), (100_000, 200)])
@pytest.mark.parametrize("claim", FULL, ids=str)
def test_whole_audits_call_it_as_often_as_announced(claim, size, times, record_property):
    """Selection included, four in five: a power of 0.75 to 0.9, false alarm 2e-4 (binomial)."""
    loss = announced(claim, size)
    found = violations(claim, loss, size, times)
    for name, value in {"tried": times, "case": f"{claim}, {size:,} runs", "announced": 0.8, "found": found}.items():
        record_property(name, value)
    assert binom.ppf(1e-4, times, 0.75) <= found <= binom.isf(1e-4, times, 0.9)
    less = (loss + claim.budget) / 2  # negative control
    assert violations(claim, less, size, times) < binom.ppf(1e-4, times, 0.75)


@pytest.mark.slow
@pytest.mark.reliability(row=4)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1])
@pytest.mark.parametrize("size", [6000, 20_000])
@pytest.mark.parametrize("law", [laplace_counts, geometric_counts])
def test_counts_whose_event_must_be_found_are_called_as_often(law, size, epsilon, record_property):
    """Many events tell as much as selection runs can see: the same limits, false alarm 2e-4 (binomial)."""
    claim, times = PureDP(epsilon), 200
    loss = announced(claim, size, law)
    found = violations(claim, loss, size, times, law)
    case = f"{law.__name__.replace('_', ' ')}, {claim}, {size:,} runs, loss {loss:.3g}"
    for name, value in {"tried": times, "case": case, "announced": 0.8, "found": found}.items():
        record_property(name, value)
    assert binom.ppf(1e-4, times, 0.75) <= found <= binom.isf(1e-4, times, 0.9)
    less = (loss + claim.budget) / 2  # negative control
    assert violations(claim, less, size, times, law) < binom.ppf(1e-4, times, 0.75)


@pytest.mark.parametrize(("times", "more"), in_full((2, 1), (40, 5)))
def test_twice_the_promise_that_is_often_missed_is_no_pass(times, more):  # 36,000 runs for rho
    """A power of 0.37 for 3,000 runs: what is missed is called `no power`. A pass of ten times as many is one."""
    claim, size = ZCDP(0.05), 3000
    assert {result.verdict for result in audits(claim, 0.1, size, times, first=2)} == {"violated", "no power"}
    assert {result.verdict for result in audits(claim, 0.05, 10 * size, more)} == {"not refuted"}
