"""The benchmark mechanisms lose what is said of them: every true loss worked out again, from the definitions alone."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from algorithms.benchmarks import benchmarks
from audit.claims import PureDP
from tests.helpers import refuses

KNOWN = benchmarks()
CONTINUOUS = ["Laplace", "NoisyHist1", "NoisyHist2", "ReportNoisyMax3", "LaplaceParallel", "PrefixSum"]


def integral(function, kinks, scale):
    """Integral over the real line of what decays with `scale` beyond the kinks, piece by piece."""
    points = sorted({min(kinks) - 50 * scale, *kinks, max(kinks) + 50 * scale})
    pieces = [np.linspace(low, high, 8) for low, high in itertools.pairwise(points)]
    ends = np.unique(np.concatenate(pieces))
    return math.fsum(integrate.quad(function, low, high, epsrel=1e-11)[0] for low, high in itertools.pairwise(ends))


def codes_probability(codes, answers, threshold, level_scale, scale):
    """Probability of codes of a sparse vector: the threshold's noise is z, and every reached answer on its side."""
    sides = np.array([1 if code else -1 for code in codes if code >= 0])
    gaps = np.array(answers[: sides.size]) - threshold

    def joint(z):
        return stats.laplace.pdf(z, scale=level_scale) * stats.laplace.cdf(sides * (gaps - z), scale=scale).prod()

    return integral(joint, [0.0, *gaps.tolist()], level_scale)


def loss_of_codes(codes, threshold, level_scale, scale):
    """The loss at these codes, of ten answers of 1 of which five rise and five fall."""
    pair = [codes_probability(codes, x, threshold, level_scale, scale) for x in ([1] * 10, [2] * 5 + [0] * 5)]
    return abs(math.log(pair[0] / pair[1]))


def loss_of_the_first():
    """The first of five answers is the largest: its noisy value is v, and the others are below v."""
    law = stats.laplace(scale=20.0)
    pair = [np.array(answers) for answers in ([1, 1, 1, 1, 1], [0, 2, 2, 2, 2])]
    first = [integral(lambda v, x=x: law.pdf(v - x[0]) * law.cdf(v - x[1:]).prod(), x.tolist(), 20.0) for x in pair]
    return math.log(first[0] / first[1])


STOPPED = (*[0] * 5, 1, *[-1] * 4)  # what rose is below, and what fell first is above
TWICE = (*[0] * 5, 1, 1, *[-1] * 3)
TRUE_LOSS = {  # what the literature's table has to as many digits, where it has the loss, and the loss by definition
    "Laplace": (0.1, lambda: 1 / 10),  # triangle inequality, attained outside the two answers
    "TruncatedGeometric": (0.1178, lambda: math.log1p(2**-3)),  # 3 is the natural logarithm of 20, rounded up
    "NoisyHist1": (0.1, lambda: 1 / 10),
    "NoisyHist2": (10, lambda: 1 / 0.1),
    "ReportNoisyMax1": (0.0946, loss_of_the_first),
    "ReportNoisyMax2": (0.1, lambda: 2 / 20),  # the others at least as high as the one that falls: attained
    # Every factor of the density of the largest changes by at most exp(1/20), and below all answers each of them does.
    "ReportNoisyMax3": (0.25, lambda: 5 / 20),
    "ReportNoisyMax4": (math.inf, lambda: math.inf),  # between 1 and 2 there are outputs on x only
    "SVT1": (0.0885, lambda: loss_of_codes(STOPPED, 0.5, 20.0, 40.0)),  # table: at most 0.1
    # The table has at most 0.1; one draw for the threshold, as the run then stops.
    "SVT2": (0.0882, lambda: loss_of_codes(STOPPED, 1.0, 20.0, 40.0)),
    # Ten factors that change by at most exp(1/20) each, and all do where the answer above is below everything else.
    "SVT3": (None, lambda: 10 / 20),
    "SVT4": (0.1725, lambda: loss_of_codes(STOPPED, 1.0, 40.0, 40 / 3)),  # at most 0.175
    "SVT5": (math.inf, lambda: math.inf),  # five above, five below needs two different answers
    "SVT6": (0.4200, lambda: loss_of_codes([0] * 5 + [1] * 5, 1.0, 20.0, 20.0)),  # at most 10 / 20; table: 1.05
    "RAPPOR": (0.300, lambda: 6 * math.log((0.375 + 0.25 * 0.55) / (0.375 + 0.25 * 0.45))),
    "OneTimeRAPPOR": (0.600, lambda: 6 * math.log(0.525 / 0.475)),
    "LaplaceParallel": (0.1, lambda: 20 * 0.005),
    # Losses of SVT3 and SVT4 add up. Of SVT3, two released answers and five below change the density by exp(1/40) each,
    # all in one direction where both answers are 1, which tells that the threshold's noise was at most 0.
    "SVT34Parallel": (None, lambda: 7 / 40 + loss_of_codes(TWICE, 1.0, 40.0, 40 / 3)),
    "PrefixSum": (1.0, lambda: 10 * 0.1),
    # A released answer is an independent Laplace release: it adds 1 / scale. The table has at most 0.1.
    "NumericalSVT": (0.0805, lambda: loss_of_codes(TWICE, 1.0, 30.0, 120.0) + 2 / 60),
}


# True losses


def test_every_benchmark_has_a_loss_worked_out_here():
    assert list(KNOWN) == list(TRUE_LOSS)
    assert len(KNOWN) == 20
    assert all(name == known.name == type(known.mechanism).__name__ for name, known in KNOWN.items())


@pytest.mark.parametrize("name", TRUE_LOSS)
def test_true_losses_are_those_of_the_definitions_and_of_the_table(name):
    printed, defined = TRUE_LOSS[name]
    assert KNOWN[name].loss == pytest.approx(defined(), rel=1e-8)
    assert printed is None or KNOWN[name].loss == pytest.approx(printed, rel=1e-3)


# The losses are suprema: no output shows more, and the law comes as close as one likes


@pytest.mark.parametrize("known", [one for one in KNOWN.values() if math.isfinite(one.loss)], ids=lambda one: one.name)
def test_no_output_shows_more(known):
    rng = np.random.default_rng(11)
    outputs = np.concatenate([known.mechanism(data, 8_000, rng) for data in (known.x, known.y)])
    if known.name in CONTINUOUS:
        outputs = np.concatenate([outputs, outputs * 30])
    on_x, on_y = (known.mechanism.log_likelihood(outputs, data) for data in (known.x, known.y))
    assert np.isfinite(on_x).all()
    assert np.isfinite(on_y).all()
    assert np.abs(on_x - on_y).max() <= known.loss * (1 + 1e-9)
    assert np.abs(on_x - on_y).max() > 0.3 * known.loss


def test_unbounded_losses_have_a_witness():
    known = KNOWN["SVT5"]
    on_x, on_y = known.mechanism.support_masses(known)
    assert (on_x, on_y) == (0, pytest.approx(1 - math.exp(-1 / 20), rel=1e-12))  # noise from -1 to 1
    outputs = known.mechanism(known.y, 20_000, _rng())
    impossible = np.isneginf(known.mechanism.log_likelihood(outputs, known.x))
    # Binomial with the mass above: false alarm 1e-6 on either side.
    assert stats.binomtest(int(impossible.sum()), 20_000, on_y).pvalue > 2e-6


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_every_benchmark_keeps_what_all_promise(known, monkeypatch):
    """Claim, pair, shape of a batch, seed, generator; and no two blocks of a long batch share their randomness."""
    claim = known.mechanism.claim
    assert (type(claim), claim.relation) == (PureDP, "add_remove")
    assert known.sound == (known.loss <= claim.epsilon * (1 + 1e-12))
    if "RAPPOR" not in known.name:
        assert claim.epsilon == (0.2 if known.name == "SVT34Parallel" else 0.1)
        assert known.mechanism.epsilon == 0.1
        for epsilon in (0.0, math.nan):
            refuses(ValueError, f"epsilon must be positive and finite, got {epsilon}", type(known.mechanism), epsilon)
    assert known.note
    assert set(known.x.tolist()) == {1}  # a base of ones, and answers that rise or fall by 1: inputs of the literature
    assert np.abs(known.y - known.x).max() == 1
    assert not known.x.flags.writeable
    assert not known.y.flags.writeable
    for size in (0, 1, 3):
        assert len(known.mechanism(known.x, size, _rng())) == size
    first, second, other = (known.mechanism(known.x, 400, np.random.default_rng(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    assert first.dtype.kind in "if"
    assert np.isfinite(first).all()
    assert len(np.unique(first, axis=0)) > 1
    with pytest.raises((TypeError, ValueError), match=r"^rng[ =][^\n]*$"):
        known.mechanism(known.x, 3, "secure")
    fifties = lambda size, cells: (slice(i, i + 50) for i in range(0, size, 50))  # noqa: E731
    monkeypatch.setattr("algorithms.benchmarks.benchmark.chunks", fifties)
    released = known.mechanism(known.x, 200, _rng())
    assert len({released[i : i + 50].tobytes() for i in range(0, 200, 50)}) == 4


def _rng():
    return np.random.default_rng(3)
