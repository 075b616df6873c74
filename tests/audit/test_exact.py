"""Exact privacy loss: published figures, brute force over every output, and an independent library."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from algorithms.flaxman import ADPC, GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.noise import TwoTailedGeometric
from audit.exact import LossDistribution, compose_losses, loss_distribution, loss_from_logs
from audit.exact.arithmetic import convolve
from audit.neighbors import NeighborPair
from tests.helpers import refused_like

ONE_MORE = NeighborPair.add_people([50, 3], 0)


def literal_delta(p, q, epsilon):
    """The largest p(E) - exp(epsilon) q(E) over every event E, one by one."""
    events = itertools.product([False, True], repeat=len(p))
    return max(sum(a for a, i in zip(p, e, strict=True) if i) - math.exp(epsilon) * q[list(e)].sum() for e in events)


@st.composite
def two_laws(draw, most=7):
    size = draw(st.integers(1, most))
    weights = st.lists(st.integers(0, 12), min_size=size, max_size=size)
    p, q = np.array(draw(weights), float), np.array(draw(weights), float)
    assume(p.sum() > 0 and q.sum() > 0)
    return p / p.sum(), q / q.sum()


# Known truth: the figures of the reference


@pytest.mark.parametrize(
    ("mechanism", "pair", "at", "delta", "within"),
    [
        (GDPC(1.0), ONE_MORE, 0.5, 0.287649137, 1e-9),
        (GDPC(1.0), ONE_MORE, 0.0, 0.462117157, 1e-9),
        (ADPC(0.1), ONE_MORE, 0.05, 8.27965e-4, 1e-8),
        (ADPC(0.1), ONE_MORE, 0.0, 0.015624186, 1e-8),
        (ADPC(0.1), ONE_MORE, 0.09, 8.2e-14, 1e-15),
        (ADPC(1.0), ONE_MORE, 0.5, 0.010376744, 1e-8),
    ],
)
def test_hockey_stick_divergences_are_those_of_the_reference(mechanism, pair, at, delta, within):
    law = mechanism.exact_loss(pair)
    assert law.delta_at(at) == pytest.approx(delta, abs=within)
    assert law.reverse().delta_at(at) == pytest.approx(delta, abs=within)
    assert law.epsilon_at(delta) == pytest.approx(at, abs=1e-5)


# Known truth: brute force


def geometric_pmf(epsilon, shift, outputs):
    return np.exp(TwoTailedGeometric(epsilon).logpmf(outputs - shift))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("left", "right"), [(1, 1), (3, 2), (0, 4)])
def test_gdpc_is_brute_force_over_a_lattice_of_outputs(epsilon, left, right):
    reach = math.ceil(40 / epsilon)
    outputs = np.arange(-reach, reach + 6)
    p = np.multiply.outer(geometric_pmf(epsilon, 0, outputs), geometric_pmf(epsilon, 0, outputs)).ravel()
    q = np.multiply.outer(geometric_pmf(epsilon, left, outputs), geometric_pmf(epsilon, right, outputs)).ravel()
    brute = loss_distribution(p, q)
    law = GDPC(epsilon).exact_loss(NeighborPair.declared([7, 9], [7 - left, 9 + right], "add_remove"))
    assert law.loss == pytest.approx(brute.loss, abs=1e-11)
    assert law.probability == pytest.approx(brute.probability, rel=1e-9)
    assert law.maximum == pytest.approx((left + right) * epsilon, abs=1e-12)
    assert law.reverse().probability == pytest.approx(brute.reverse().probability, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "parts"), [(1.0, 4), (2.0, 3), (6.0, 2), (0.7, 1), (5.0, 7)])
def test_the_law_of_adpc_is_the_direct_convolution(epsilon, parts):
    step = epsilon / parts
    reach = math.ceil(60 / step)
    one = geometric_pmf(step, 0, np.arange(-reach, reach + 1))
    total = one
    for _ in range(parts - 1):
        total = np.convolve(total, one)
    middle = total.size // 2
    s = np.arange(-math.ceil(20 / step), math.ceil(20 / step) + 1)
    np.testing.assert_allclose(np.exp(ADPC(epsilon, parts).logpmf_sum(s)), total[middle + s], rtol=1e-11)

    padding = np.zeros(2 * parts)
    brute = loss_distribution(np.append(total, padding), np.append(padding, total))
    law = ADPC(epsilon, parts).exact_loss(NeighborPair.add_people([5], 0, 2))
    for at in 2 * epsilon * np.array([0, 0.1, 0.3, 0.5, 0.7]):
        assert law.delta_at(at) == pytest.approx(brute.delta_at(at), rel=1e-9, abs=1e-14)


def test_the_law_of_adpc_keeps_its_digits_where_noise_is_wide():
    """A shift by 4 of a smooth law: the loss is smooth in s, and never above epsilon, at every tail."""
    law, step = ADPC(1e-5), 1e-5 / 4
    x = np.linspace(0.5, 600, 200)
    s = np.rint(x / step)
    loss = (law.logpmf_sum(s - 4) - law.logpmf_sum(s)) / 1e-5
    limit = 1 - (15 + 12 * x + 3 * x**2) / (15 + 15 * x + 6 * x**2 + x**3)
    assert np.max(np.abs(loss - limit)) < 1e-5  # log-gamma differences would be wrong by 0.1


@pytest.mark.parametrize("sigma", [1.0, 5.0])
def test_the_discrete_gaussian_agrees_with_dp_accounting(sigma):
    theirs = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=1e-3, use_connect_dots=True)
    law = GaussianCounts(0.5 / sigma**2).exact_loss(ONE_MORE)
    for times in (1, 4):
        total = law.self_compose(times, grid=1 / sigma**2)  # the step between its losses: nothing is rounded
        for at in np.array([0.0, 0.5, 1.0, 2.0]) / sigma:
            other = theirs.self_compose(times).get_delta_for_epsilon(at)
            assert total.delta_at(at) == pytest.approx(other, rel=1e-4, abs=1e-12)


# Known truth: orders and quantiles


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("alpha", [0, 0.5, 1 - 1e-7, 1, 1 + 1e-7, 2, 40, 1e308])
def test_renyi_of_randomized_response_is_its_closed_form(epsilon, alpha):
    law = GDPC(epsilon).exact_loss(ONE_MORE)  # the geometric law tells as much as randomized response
    with localcontext(prec=60):
        p, order = 1 / (1 + (-Decimal(epsilon)).exp()), Decimal(alpha)
        true = (2 * p - 1) * Decimal(epsilon)
        if alpha > 1e300:
            true = Decimal(epsilon)
        elif alpha != 1:
            both = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
            true = both.ln() / (order - 1)
    assert law.renyi(alpha) == pytest.approx(float(true), rel=1e-9, abs=1e-16 * (1 + 100 * epsilon))
    assert law.renyi(math.inf) == law.maximum


def test_a_delta_of_nearly_one_is_kept_at_any_epsilon():
    """Also where the probabilities add up to less, by rounding."""
    nearly, sizes = math.nextafter(1.0, 0.0), np.arange(2, 40)
    laws = [loss_distribution(np.full(n, 1 / n), np.arange(n, 0, -1) / (n * (n + 1) / 2)) for n in sizes]
    short = [law for law in laws if np.cumsum(np.exp(law.log_p[::-1]))[-1] <= nearly]
    assert short
    assert [law.epsilon_at(nearly) for law in short] == [0.0] * len(short)


def test_renyi_where_one_database_cannot_produce_all():
    law = loss_distribution([0.5, 0.25, 0.25, 0], [0.125, 0.125, 0, 0.75])
    assert law.renyi(0) == pytest.approx(-math.log(0.25))
    assert law.renyi(0.5) == pytest.approx(-2 * math.log(math.sqrt(0.5 * 0.125) + math.sqrt(0.25 * 0.125)))
    assert [law.renyi(alpha) for alpha in (1, 1.5, math.inf)] == [math.inf] * 3
    apart = loss_distribution([1, 0], [0, 1])
    assert [apart.renyi(alpha) for alpha in (0, 0.5, 1, 2)] == [math.inf] * 4
    nearly = LossDistribution(np.zeros(1), np.log1p([-1e-20]), 1e-20, 1e-20)
    assert nearly.renyi(0.5) == pytest.approx(2e-20)


# Known truth: the grid


def test_the_grid_keeps_digits_far_out_in_the_tail():
    """Deltas of 1e-60, which sums of both signs of order 1 could not hold."""
    law = GaussianCounts(0.005).exact_loss(ONE_MORE)
    listed = law.compose(law)
    spread = law.compose(law, grid=0.01)
    for at in (1.0, 1.5, 2.2):
        assert spread.delta_at(at) == pytest.approx(listed.delta_at(at), rel=1e-9, abs=0)
    assert 0 < listed.delta_at(2.2) < 1e-55
    rough = np.convolve(law.probability, law.probability)
    fft = np.fft.irfft(np.fft.rfft(law.probability, 2048) ** 2, 2048)[: rough.size]
    rare = (rough > 1e-60) & (rough < 1e-30)
    assert np.max(np.abs(fft[rare] / rough[rare] - 1)) > 1  # negative control


def test_many_laws_together():
    law = GDPC(0.25).exact_loss(ONE_MORE)
    assert compose_losses([]).loss.tolist() == [0]
    assert compose_losses([law, loss_distribution([1, 0], [0, 1]), law]).infinite_mass == 1
    steps = np.log(np.arange(1.0, 1201) / 600.5)  # no two sums are equal
    many = LossDistribution(steps, np.full(1200, -math.log(1200)) + np.where(steps > 0, 0, steps))
    many = LossDistribution(steps, many.log_p - np.log(many.probability.sum()))
    listed, spread = many.compose(many), compose_losses([many, many])
    assert listed.loss.size > 2**18 > 2**16 > spread.loss.size
    assert spread.maximum == pytest.approx(listed.maximum, abs=1e-12)
    for at in (0.0, 0.3, 1.0):
        assert 0 <= spread.delta_at(at) / listed.delta_at(at) - 1 + 1e-12 < 1e-5


def test_a_grid_is_as_fine_as_it_must_be():
    """Two losses that are close to each other do not make it finer than thousands of steps."""
    steps = np.log(np.arange(1.0, 1201) / 600.5)
    law = LossDistribution(np.append(steps, steps[-1] + 1e-9), np.full(1201, -math.log(1201)))
    assert compose_losses([law, law]).loss.size < 2**17


def test_a_product_has_a_term_less_than_both_factors():
    assert convolve(np.ones(3), np.array([1.0, 2.0])).tolist() == [1, 3, 3, 2]


# Properties


@given(two_laws(), st.floats(0, 5))
@settings(max_examples=60)
def test_delta_at_is_the_best_event(laws, at):
    p, q = laws
    law = loss_distribution(p, q)
    assert law.delta_at(at) == pytest.approx(literal_delta(p, q, at), abs=1e-12)
    assert law.reverse().delta_at(at) == pytest.approx(literal_delta(q, p, at), abs=1e-12)
    assert law.infinite_mass == pytest.approx(p[q == 0].sum(), abs=1e-15)
    assert law.missing_mass == pytest.approx(q[p == 0].sum(), abs=1e-15)
    ratios = [math.inf if b == 0 else math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0]
    assert law.maximum == pytest.approx(max(ratios), abs=1e-12)


@given(two_laws(), st.floats(0, 1, exclude_max=True))
def test_epsilon_at_is_the_smallest_that_delta_at_allows(laws, delta):
    law = loss_distribution(*laws)
    found = law.epsilon_at(delta)
    if found == math.inf:
        assert delta < law.infinite_mass
        assert law.delta_at(1e6) > delta
        return
    assert law.delta_at(found) <= delta + 1e-12
    if found > 1e-6:
        assert law.delta_at(found - 1e-6) > delta - 1e-12
        assert law.delta_at(0) > delta - 1e-12


@given(two_laws(), two_laws())
def test_composition_is_the_loss_of_both_outputs(first, second):
    p = np.multiply.outer(first[0], second[0]).ravel()
    q = np.multiply.outer(first[1], second[1]).ravel()
    brute, law = loss_distribution(p, q), loss_distribution(*first).compose(loss_distribution(*second))
    assert law.loss == pytest.approx(brute.loss, abs=1e-9)
    assert law.log_p == pytest.approx(brute.log_p, abs=1e-9)
    assert law.infinite_mass == pytest.approx(brute.infinite_mass, abs=1e-14)
    assert law.missing_mass == pytest.approx(brute.missing_mass, abs=1e-14)
    for at in (0.0, 0.5, 2.0):
        assert law.delta_at(at) == pytest.approx(brute.delta_at(at), abs=1e-12)


@given(two_laws(), st.floats(0, 20))
def test_renyi_is_the_sum_of_its_definition(laws, alpha):
    p, q = laws
    law = loss_distribution(p, q)
    assume(abs(alpha - 1) > 1e-3)
    both = (p > 0) & (q > 0)
    if alpha > 1 and p[q == 0].sum() > 0:
        assert law.renyi(alpha) == math.inf
        return
    total = (p[both] ** alpha * q[both] ** (1 - alpha)).sum()
    assert law.renyi(alpha) == pytest.approx(math.log(total) / (alpha - 1) if total else math.inf, abs=1e-9)
    assert law.renyi(alpha) <= law.renyi(alpha + 1) + 1e-12
    assert law.renyi(alpha) <= max(law.maximum, -math.log(law.probability.sum() or 1)) + 1e-12
    if 0.01 < alpha < 0.99:
        assert (1 - alpha) * law.renyi(alpha) == pytest.approx(alpha * law.reverse().renyi(1 - alpha), abs=1e-9)


@given(two_laws(), st.floats(0, 1, exclude_max=True))
def test_a_quantile_is_not_exceeded_with_its_probability(laws, q):
    law = loss_distribution(*laws)
    found = law.quantile(q)
    assert law.probability[law.loss <= found].sum() + law.infinite_mass * (found == math.inf) >= q - 1e-9
    assert law.probability[law.loss < found].sum() <= q + 1e-9
    assert found in {*law.loss.tolist(), math.inf}


@given(two_laws(), st.integers(1, 9))
@settings(max_examples=30)
def test_repeated_squaring_is_one_after_the_other(laws, times):
    law = loss_distribution(*laws)
    slow, fast = compose_losses([law] * times), law.self_compose(times)
    assert fast.infinite_mass == pytest.approx(slow.infinite_mass, abs=1e-12)
    assert fast.missing_mass == pytest.approx(slow.missing_mass, abs=1e-12)
    for at in (0.0, 0.3, 2.0):
        assert fast.delta_at(at) == pytest.approx(slow.delta_at(at), abs=1e-10)


@given(two_laws(), two_laws(), st.floats(0.01, 3), st.floats(0, 3), st.floats(0, 20))
@settings(max_examples=60)
def test_the_grid_bounds_from_above_in_both_orders(first, second, grid, at, alpha):
    one, two = loss_distribution(*first), loss_distribution(*second)
    exact, bound = one.compose(two), one.compose(two, grid=grid)
    assert bound.maximum == pytest.approx(exact.maximum)
    for law, upper in ((exact, bound), (exact.reverse(), bound.reverse())):
        assert upper.probability.sum() + upper.infinite_mass == pytest.approx(1)
        assert (upper.infinite_mass, upper.missing_mass) == (law.infinite_mass, law.missing_mass)
        assert law.delta_at(at) - 1e-12 <= upper.delta_at(at)
        assert upper.delta_at(at + 2 * grid) <= law.delta_at(at) + 1e-12
        assert upper.renyi(alpha) >= law.renyi(alpha) - 1e-9
    third = bound.compose(one, grid=grid)  # and once more
    assert third.delta_at(at) >= exact.compose(one).delta_at(at) - 1e-12


# Edges


def test_laws_that_share_no_output_tell_everything_and_equal_ones_nothing():
    law, same = loss_distribution([1, 0], [0, 1]), [0.2, 0.3, 0.5]
    assert (law.loss.size, law.infinite_mass, law.missing_mass) == (0, 1, 1)
    assert (law.delta_at(100), law.epsilon_at(0.999)) == (1, math.inf)
    twice = law.compose(loss_distribution([0.5, 0.5], [0.5, 0.5]))
    assert (twice.loss.size, twice.infinite_mass, twice.maximum) == (0, 1, math.inf)
    law = loss_distribution(same, same)
    assert (law.loss.tolist(), law.maximum, law.delta_at(0), law.epsilon_at(0)) == ([0.0], 0, 0, 0)
    assert repr(law) == "LossDistribution(1 losses, maximum 0)"
    with np.errstate(divide="ignore"):  # impossible on both is no loss
        padded = loss_from_logs(np.log([0.5, 0.5, 0]), np.log([0.5, 0.5, 0]))
    assert (padded.loss.tolist(), padded.infinite_mass, padded.missing_mass) == ([0.0], 0, 0)


def test_infinite_mass_survives_however_small():
    rare = LossDistribution(np.zeros(1), np.log1p([-1e-20]), 1e-20, 3e-30)
    both = rare.compose(rare)
    assert both.infinite_mass == pytest.approx(2e-20)
    assert both.missing_mass == pytest.approx(6e-30)
    assert both.maximum == math.inf
    assert both.epsilon_at(0) == math.inf
    assert both.epsilon_at(1e-19) == pytest.approx(0, abs=1e-15)


def test_the_supremum_is_the_theory_s_in_either_order():
    law = ADPC(0.1).exact_loss(ONE_MORE)
    assert law.loss[-1] < 0.0997
    assert law.maximum == 0.1
    assert law.epsilon_at(0) == 0.1
    assert law.reverse().maximum == 0.1
    assert law.reverse().reverse().maximum == 0.1
    both = law.compose(GDPC(0.2).exact_loss(ONE_MORE))
    assert both.maximum == pytest.approx(0.3, abs=1e-15)
    assert both.reverse().maximum == pytest.approx(0.3, abs=1e-15)


def test_losses_beyond_the_range_of_floats_are_solved_for_and_keep_both_masses_on_a_grid():
    law = GDPC(1000.0).exact_loss(ONE_MORE)
    assert law.maximum == 1000
    assert law.epsilon_at(0.1) == pytest.approx(1000 + math.log(0.9), abs=1e-9)
    assert GDPC(1e300).exact_loss(ONE_MORE).maximum == 1e300  # too large to be rounded
    law = GDPC(900.0).exact_loss(ONE_MORE)
    for both in (law.compose(law, grid=900.0), law.compose(law, grid=900.0).reverse()):
        assert (both.probability.sum(), both.delta_at(1700), both.maximum) == pytest.approx((1, 1, 1800))


# Refusals


LAW = loss_distribution([0.75, 0.25], [0.25, 0.75])


def loss_of(laws):
    return loss_distribution(*laws)


MANY = LossDistribution(np.arange(4000.0), np.full(4000, -math.log(4000)))


@pytest.mark.parametrize(
    ("ask", "values", "error", "message"),
    [
        (LAW.delta_at, [-0.1, math.nan], ValueError, "epsilon must be 0 or more, got"),
        (LAW.epsilon_at, [-0.1, 1, math.nan], ValueError, r"delta must be in \[0, 1\), got"),
        (LAW.renyi, [-0.1, math.nan], ValueError, "alpha must be 0 or more, got"),
        (LAW.quantile, [-0.1, 1.1, math.nan], ValueError, r"q must be in \[0, 1\], got"),
        (LAW.self_compose, [0, -3], ValueError, "times must be at least 1, got"),
        (LAW.self_compose, [2.0, True, "2"], TypeError, "times must be an integer, got"),
        (lambda grid: LAW.compose(LAW, grid=grid), [0.0, math.inf, math.nan], ValueError, "grid must be positive and"),
        (lambda grid: LAW.compose(LAW, grid=grid), [1e-5, 1e-9, 1e-320], ValueError, r"a grid of \S+ is too fine for"),
        (MANY.compose, [MANY], ValueError, "composing 4000 by 4000 losses exceeds 10 million"),
        (loss_of, [([0.5, 0.5], [1.0])], ValueError, r"two lists over the same outputs, got shapes \(2,\) and \(1,\)"),
        (loss_of, [([[1.0]], [[1.0]]), ([], [])], ValueError, "p and q must be two lists"),
        (loss_of, [([1.5, -0.5], [1.0, 0.0])], ValueError, "p must hold probabilities of 0 or more, got -0.5"),
        (loss_of, [([1.0, 0.0], [math.nan, 1.0])], ValueError, "q must hold probabilities of 0 or more, got nan"),
        (loss_of, [([0.5, 0.4], [0.5, 0.5])], ValueError, "p must add up to 1, got 0.9"),
    ],
)
def test_a_law_refuses_numbers_out_of_range(ask, values, error, message):
    for value in values:
        with refused_like(error, message):
            ask(value)


def test_an_output_too_rare_for_a_float_is_no_proof():
    """Both tails of the geometric law are possible on both databases, but its probabilities underflow."""
    k, law = np.arange(-800, 801), TwoTailedGeometric(1.0)
    p, q = np.exp(law.logpmf(k)), np.exp(law.logpmf(k - 1))
    assert np.any((p > 0) != (q > 0))
    found = loss_distribution(p, q)
    assert (found.infinite_mass, found.missing_mass) == (0, 0)
    assert found.maximum == pytest.approx(1)
    assert loss_distribution([1 - 1e-200, 1e-200], [1, 0]).infinite_mass == pytest.approx(1e-200)
