"""Plans: the power of games to the last digit, that of two normal laws by simulation, and both ways back."""

import inspect
import itertools
import math
from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

from audit.attacks.selection import weights as likelihood_ratios
from audit.attacks.selection.weights import CLIPS, ORDERS
from audit.bounds.game import approx_game_lower, guessing_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.renyi import renyi_variational_lower, usual_lower
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.methods import OneRun, TwoSamples, gaussian, renyi
from audit.planning import OutOfReachError, plan_early, plan_power, plan_size, plan_table, plan_violation
from audit.planning.plan import MOST, MOST_CANARIES, Plan
from audit.sampling.probes import LEAST, probe_runs
from tests.audit.audits import COIN, as_planned, leaky
from tests.audit.methods.cases import named
from tests.helpers import in_full, refused_like

SELECTION = 0.3


@pytest.mark.parametrize("plan", [plan_power, plan_table, plan_violation], ids=lambda plan: plan.__name__)
def test_plans_are_of_the_same_audit_if_nothing_is_said(plan):
    """Their signatures repeat those of `plan_size`, so that each can be read by itself."""
    command, known = (inspect.signature(one).parameters for one in (plan, plan_size))
    shared = command.keys() & known.keys()
    assert {"confidence", "distance", "selection", "share", "design"} <= shared
    assert {name: command[name].default for name in shared} == {name: known[name].default for name in shared}


def majority(runs, right):
    """Of more than half of the runs that choose, or of half of them by luck."""
    at = np.arange(runs + 1)
    return float(binom.pmf(at, runs, right) @ np.where(2 * at > runs, 1.0, np.where(2 * at == runs, 0.5, 0.0)))


def right_of(claim, violation, distance):
    """How often randomized response is right, which is surely so with the delta of the pair."""
    pair = claim.at(violation * claim.budget).group(distance)
    delta = getattr(pair, "delta", 0.0)
    return delta + (1 - delta) * expit(pair.budget)


def literal_power(claim, size, violation, confidence=0.95, distance=1):
    """Every number of right guesses, each put through the bound."""
    choosing = max(round(size * SELECTION), int(probe_runs(size)))
    runs = size - choosing
    right = right_of(claim, violation, distance)
    shown = 0.0
    for correct in range(runs + 1):
        if isinstance(claim, PureDP):
            lower = float(guessing_game_lower(correct, runs, confidence=confidence)) / distance
        else:
            lower = approx_game_lower(correct, runs, runs, delta=claim.delta, confidence=confidence, distance=distance)
        shown += binom.pmf(correct, runs, right) * (lower > claim.budget)
    return shown * majority(choosing, right)


# Known truth


@pytest.mark.parametrize(
    ("claim", "violation", "distance"),
    [(PureDP(1.0), 2.0, 1), (PureDP(0.2), 3.0, 4), (ApproxDP(0.8, 0.02), 2.5, 1), (ApproxDP(0.3, 0.005), 2.5, 3)],
)
def test_power_of_a_game_is_that_of_all_its_counts(claim, violation, distance):
    for size in (26, 40, 63):
        found = plan_power(claim, size, violation=violation, distance=distance)
        literal = literal_power(claim, size, violation, confidence=0.9525, distance=distance)  # 5% for a second event
        assert found == pytest.approx(literal, abs=1e-9)


@pytest.mark.parametrize(("claim", "violation"), [(PureDP(1.0), 2.0), (ApproxDP(1.0, 0.01), 2.2)])
@pytest.mark.parametrize("power", [0.5, 0.8])
def test_the_size_is_the_first_that_is_enough(claim, violation, power):
    size = plan_size(claim, violation=violation, power=power)
    powers = [plan_power(claim, n, violation=violation) for n in range(25, size + 1)]
    assert powers[-1] >= power > max(powers[:-1])


def test_sizes_of_small_budgets_are_those_of_the_normal_law():
    """Of a fair coin that is off by a little: the square of the sum of two quantiles over the difference."""
    for epsilon, violation, power in ((0.1, 1.1, 0.8), (0.02, 1.5, 0.95)):
        apart = expit(epsilon * violation) - expit(epsilon)
        runs = ((ndtri(0.9525) + ndtri(power)) * 0.5 / apart) ** 2  # 5% of the error is for a second event
        size = plan_size(PureDP(epsilon), violation=violation, power=power)
        assert size * (1 - SELECTION) == pytest.approx(runs, rel=0.01)
        group = plan_size(PureDP(epsilon / 5), violation=violation, power=power, distance=5)
        assert group == size


def test_events_that_are_seen_in_a_share_of_the_runs_need_more_in_proportion():
    always = plan_size(PureDP(1.0), violation=1.2, selection=0.0)
    always -= int(probe_runs(always))
    seldom = plan_size(PureDP(1.0), violation=1.2, selection=0.0, share=0.05) - int(probe_runs(10**6))
    assert seldom * 0.05 == pytest.approx(always, rel=0.05)
    right, runs, guesses = expit(2.0), 300 - int(probe_runs(300)), np.arange(301)
    shown = [
        sum(binom.pmf(k, n, right) for k in range(n + 1) if guessing_game_lower(k, n, confidence=0.95) > 1)
        for n in guesses.tolist()[:70]
    ]
    exact = float(binom.pmf(guesses[:70], runs, 0.1) @ shown)
    assert plan_power(PureDP(1.0), 300, violation=2.0, selection=0.0, share=0.1) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("claim", [pytest.param(PureDP(0.5), marks=pytest.mark.slow), ApproxDP(0.5, 0.05)])
def test_few_given_outputs_have_the_power_of_all_their_counts(claim):
    size, violation = 30, 6.0
    choosing = round(size * SELECTION) // 2 * 2
    each, right = size // 2 - choosing // 2, right_of(claim, violation, 1)
    method, chance = TwoSamples(claim, 1, 0.95), 0.0
    for a, b in itertools.product(range(each + 1), repeat=2):
        if method.lower(named((each - a, a), (each - b, b)), {"regions": 2}) > claim.budget:
            chance += binom.pmf(a, each, 1 - right) * binom.pmf(b, each, right)
    found = plan_power(claim, size, violation=violation, design="outputs")
    assert 0.1 < found == pytest.approx(chance * majority(choosing, right), abs=1e-9)


@pytest.mark.parametrize("each", [300, 301, 500])
def test_audits_of_given_outputs_count_as_many_as_planned(each):
    """Attacks spend an odd number of selection runs here; as many as that choose on either database all the same."""
    rng = np.random.default_rng(each)
    x, y = (np.where(rng.random(each) < wrong, 1.0, -1.0) for wrong in (0.2, 0.8))
    found = measure_loss_from_outputs(x, y, PureDP(1.0), relation="add_remove", rng=1)
    design = Plan(PureDP(1.0), 0.95, 1, 0.3, 1.0, "outputs")
    choosing, left = (int(runs) for runs in design.split(np.array(2 * each)))
    assert found.selection == choosing
    assert sum(side["runs"] for side in found.counts.values()) == design.method.given_counting(np.array(left // 2))


def test_given_outputs_are_thinned_to_what_coins_would_have_picked():
    """From 150 left on either database on: as many tosses as outputs suffice for, all but surely."""
    tosses = int(400 - 4 * math.sqrt(400))
    exact = binom.sf(binom.isf(0.05, tosses, expit(1.0)), tosses, expit(1.8))
    found = plan_power(PureDP(1.0), 400, violation=1.8, selection=0.0, design="outputs")
    assert found == pytest.approx(exact, abs=1e-12)


def test_one_run_of_coins_is_a_game_of_canaries():
    for canaries in (18, 100):
        exact = binom.sf(binom.isf(0.05, canaries, expit(0.5)), canaries, expit(1.0))
        assert plan_power(PureDP(0.5), canaries, violation=2.0, design="one_run") == pytest.approx(exact)
    steps = plan_size(PureDP(0.1), violation=2.0, distance=5, selection=0.0)
    assert plan_size(PureDP(0.5), violation=2.0, design="one_run") == steps - int(probe_runs(steps))


@pytest.mark.parametrize(
    ("claim", "violation", "canaries"),
    [(ApproxDP(1.0, 1e-4), 3.0, 60), (GaussianDP(1.0), 4.0, 2000), (ZCDP(0.1), 30.0, 800)],
)
def test_one_run_that_forgives_is_a_game_of_the_clearest_canaries(claim, violation, canaries):
    """A violation is what `measure_loss_one_run` would call so, of as many of the clearest canaries."""
    truth = claim.at(violation * claim.budget)
    share = OneRun(claim, 1, 0.95).share(canaries)
    guesses = round(share * canaries)

    def refuted(correct):
        counts = named((correct, guesses - correct, canaries - guesses), (0, 0, 0))
        return OneRun(claim, 1, 0.95).lower(counts, {}) > claim.budget

    needed = bisect_left(range(guesses + 1), True, lo=guesses // 2, key=refuted)
    if isinstance(claim, ApproxDP):
        right = 1 - (share - claim.delta) * expit(-truth.epsilon) / share
    else:
        shift = truth.budget if isinstance(claim, GaussianDP) else math.sqrt(2 * truth.budget)
        scores = np.random.default_rng(3).standard_normal(400_000) + shift / 2
        clearest = np.abs(scores) >= np.quantile(np.abs(scores), 1 - share)
        right = float(np.mean(scores[clearest] > 0))
    found = plan_power(claim, canaries, violation=violation, design="one_run")
    # Of simulated scores the share that is right is good to 0.001, four standard errors at most.
    spread = 0.0 if isinstance(claim, ApproxDP) else 0.06
    assert 0.05 < found == pytest.approx(float(binom.sf(needed - 1, guesses, right)), abs=spread + 1e-9)


EARLY = [(PureDP(1.0), 1.5), (PureDP(1.0), 2.0), (ApproxDP(1.0, 0.01), 2.0), (GaussianDP(1.0), 2.0), (ZCDP(1.0), 4.0)]


@pytest.mark.parametrize(("plans", "seeds"), in_full((EARLY[:1], 3), (EARLY, 40)))
def test_early_audits_find_a_violation_within_the_planned_runs(plans, seeds):  # made-up audits
    """Blocks of runs grow by a quarter: 40 audits are at most two blocks off, three audits at most five."""
    for claim, violation in plans:
        mechanism = as_planned(claim.at(violation * claim.budget))
        results = [measure_loss(mechanism, COIN, claim, stop="early", rng=seed) for seed in range(seeds)]
        assert {result.verdict for result in results} == {"violated"}
        made = np.quantile([result.size for result in results], (0.5, 0.8), method="inverted_cdf")
        off = np.log(made / plan_early(claim, violation=violation))
        assert max(abs(off)) <= np.log(1.25) * (5 if seeds == 3 else 2)


def test_plans_of_early_audits_follow_what_they_are_told():  # 2 s of made-up audits
    """Four steps lose four times as much, and an event in a tenth of the runs takes ten times as many."""
    (median, late), options = plan_early(PureDP(1.0), violation=2.0), {"violation": 2.0}
    # Ends of blocks; real audits have medians of 88 and 110, Wald's limits are 45, 42.
    assert (median, late) == (88, 138)
    assert plan_early(GaussianDP(1.0), **options) == (110, 172)
    assert plan_early(PureDP(0.25), distance=4, **options) == (median, late)
    assert plan_early(PureDP(1.0), confidence=0.999, **options)[0] > 1.5 * median
    assert plan_early(PureDP(1.0), share=0.1, **options)[0] == pytest.approx(10 * median, rel=0.4)
    columns = [{"early_median", "early_80"} & row.keys() for row in plan_table(PureDP(1.0), design="outputs").rows]
    assert not any(columns)


# Known truth of two normal laws


@pytest.mark.parametrize(("runs", "shift", "confidence", "within"), [(60, 2.0, 0.9, 1e-9), (900, 1.25, 0.95, 2e-3)])
def test_a_registered_region_has_the_power_of_all_its_counts(runs, shift, confidence, within):
    """Where counts are many, a few stand for them."""
    met = np.arange(runs + 1)
    lower = gaussian_lower(met[:, None], runs, met[None, :], runs, confidence=confidence)
    chance = np.outer(binom.pmf(met, runs, ndtr(shift / 2)), binom.pmf(met, runs, ndtr(-shift / 2)))
    exact = float(chance[lower > 1.0].sum())
    size = next(size for size in itertools.count(2 * runs) if size - int(probe_runs(size)) == 2 * runs)
    found = plan_power(GaussianDP(1.0), size, violation=shift, confidence=confidence, selection=0.0)
    assert 0.5 < exact == pytest.approx(found, abs=within)


def usual(values, likely, other, order, runs):
    """The usual bound by a score, from its moments one by one, with the probabilities of each value."""
    tilted = values - values.max() if order == 1 else np.exp((order - 1) * (values - values.max()))
    moments = [
        (law @ v, law @ (v - law @ v) ** 2)
        for law, v in ((likely, tilted), (other, np.exp(order * (values - values.max()))))
    ]
    return float(usual_lower(order, *moments, tilted.min(), (runs, runs), 0.05)[0])


@pytest.mark.parametrize("clip", [0.7, 2.0, 9.0])
def test_the_bound_of_many_sets_at_once_is_that_of_each(clip):
    rng, runs, sets = np.random.default_rng(1), 500, 3
    weights = np.clip(rng.normal(0, 2, (sets, 20)), -clip, clip)
    likely, other = (rng.multinomial(runs, rng.dirichlet(np.ones(20)), sets) / runs for _ in range(2))
    each = runs + 100 * np.arange(len(ORDERS))
    found = likelihood_ratios._lower(weights, likely, other, np.tile(each, (sets, 1)), 0.95)
    for row, column in itertools.product(range(sets), range(len(ORDERS))):
        exact = max(0.0, usual(weights[row], likely[row], other[row], ORDERS[column], each[column]))
        assert found[row, column] == pytest.approx(exact, abs=1e-9)


def test_the_weights_chosen_promise_most():
    """Of all estimates, clips, orders and directions, tried one by one; a part of held variance counts."""
    rng, runs = np.random.default_rng(2), 800
    edges, center = renyi._bins(1.2, 400)
    laws = renyi._laws(edges, 1.2)
    fit, held = (tuple(rng.multinomial(100, law, 3) for law in laws) for _ in range(2))
    weights, order, toward_y, shown = likelihood_ratios.chosen_weights(center, fit, held, runs, 0.95)
    doubted = {order: 1 / (1 / 800 + (1 / 3 if order == 1 else 0.6) / 100) for order in ORDERS}
    for row in range(3):
        sides, best = [side[row] / 100 for side in held], 0.0
        for estimate, clip, at, sign in itertools.product(
            likelihood_ratios._likelihood_ratios(center, *fit, itself=False), CLIPS, ORDERS, (1, -1)
        ):
            best = max(best, usual(np.clip(sign * estimate[row], -clip, clip), *sides[::-sign], at, doubted[at]))
        chosen = usual(weights[row], *sides[:: -1 if toward_y[row, 0] else 1], order[row, 0], doubted[order[row, 0]])
        assert shown[row] == pytest.approx(chosen, rel=1e-9)
        assert chosen == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(("clip", "order"), [(2.0, 1.0), (2.0, 1.5), (1.0, 4.0)])
@pytest.mark.parametrize("audits", in_full(300, 2000))  # 1 ms a bound
def test_weights_have_the_power_that_simulation_gives_them(clip, order, audits):
    """Of 2,000 audits a share strays by 0.044 with probability below 1e-4; 0.02 besides, as if it were normal."""
    rng, runs, shift = np.random.default_rng(4), 1500, 1.5
    edges, center = renyi._bins(shift, 2000)
    law_x, law_y = renyi._laws(edges, shift)
    values = np.clip(shift * center, -clip, clip)
    bounds = [
        renyi_variational_lower(values, b, a, order=order, confidence=0.95)
        for a, b in zip(rng.multinomial(runs, law_x, audits), rng.multinomial(runs, law_y, audits), strict=True)
    ]
    for level in (0.3, 0.7):
        rho = float(np.quantile(bounds, level))
        found = renyi._weights_power(rho, values[None], np.array([order]), law_y, law_x, runs, runs, 0.95)
        assert float(found[0]) == pytest.approx(1 - level, abs=0.02 + 0.044 * math.sqrt(2000 / audits))
    # Negative control: a twentieth more is seen seldom.
    assert renyi._weights_power(rho * 1.05, values[None], np.array([order]), law_y, law_x, runs, runs, 0.95) < 0.2


def test_bins_between_laws_far_apart_are_never_met_and_show_nothing():
    edges, center = renyi._bins(1e6, 40)
    empty = np.maximum(*renyi._laws(edges, 1e6)) == 0
    assert center[empty].tolist() == [0] * empty.sum() != []
    assert np.isfinite(center).all()


# Properties

DESIGNS = st.sampled_from(["coins", "outputs", "one_run"])
LOSSES, WORSE, POWERS = st.floats(0.3, 4.0), st.floats(1.3, 4.0), st.floats(0.2, 0.95)


# Six examples of five plans.
@settings(max_examples=6)
@given(LOSSES, st.sampled_from([0.0, 1e-6, 0.02]), WORSE, POWERS, st.integers(1, 4), DESIGNS)
def test_size_violation_and_power_are_one_relation(epsilon, delta, violation, power, distance, design):
    assume(delta == 0 or design != "one_run")
    claim = ApproxDP(epsilon / distance, delta / 10) if delta else PureDP(epsilon / distance)
    audit = {"distance": distance, "design": design}
    size = plan_size(claim, violation=violation, power=power, **audit)
    assert plan_power(claim, size, violation=violation, **audit) >= power
    smallest = plan_violation(claim, size, power=power, **audit)
    assert 1 <= smallest <= violation * (1 + 1e-9)
    if smallest > 1.001:
        assert plan_power(claim, size, violation=smallest, **audit) == pytest.approx(power, abs=1e-6)
        assert plan_size(claim, violation=smallest * (1 + 1e-9), power=power, **audit) <= size


def test_plans_that_are_simulated_agree_with_each_other():
    """1 s of made-up runs."""
    claim = GaussianDP(1.0)
    size = plan_size(claim, violation=1.5)
    assert 0.8 <= plan_power(claim, size, violation=1.5) < 0.82
    assert plan_size(claim, violation=1.5, power=0.9) > size > plan_size(claim, violation=1.5, power=0.7)
    registered = plan_size(claim, violation=1.5, selection=0.0)
    assert registered < (1 - SELECTION) * size  # the best event is better than one that was chosen
    assert plan_size(claim, violation=1.5, selection=0.0, confidence=0.9) < registered
    assert plan_size(GaussianDP(0.25), violation=1.5, distance=4) == size


@pytest.mark.slow
@pytest.mark.parametrize("claim", [GaussianDP(1.0), ZCDP(0.5)])
def test_plans_that_are_simulated_agree_with_their_reverse(claim):
    size = plan_size(claim, violation=1.5)
    assert plan_violation(claim, size) == pytest.approx(1.5, abs=0.02)
    assert plan_size(claim, violation=1.5, confidence=0.99) > size
    given_outputs = plan_size(claim, violation=1.5, design="outputs")
    assert given_outputs % 2 == 0
    assert given_outputs == pytest.approx(size, rel=0.02)
    gaussian._chosen_regions.cache_clear(), renyi._weights.cache_clear()
    assert plan_size(claim, violation=1.5) == size  # the same made-up runs


# Edges and refusals


@pytest.mark.parametrize("design", ["coins", "outputs", "one_run"])
@pytest.mark.parametrize("selection", [0.0, 0.1, 0.3, 0.97])
def test_the_fewest_runs_choose_and_count_an_event(design, selection):
    plan = Plan(PureDP(1.0), 0.95, 1, selection, 1.0, design)
    choosing, counting = plan.split(np.array(plan.least))
    if design == "one_run":
        assert plan.least == 1
        return
    assert counting // 2 >= plan.step
    assert choosing >= 8 * (selection > 0)
    fewer = plan.split(np.array(plan.least - plan.step))
    least = LEAST if design == "coins" else 2 * plan.step
    chosen_by = round((plan.least - plan.step) * selection)
    assert chosen_by < 8 * (selection > 0) or fewer[1] // 2 < plan.step or plan.least <= least
    if selection == 0.3:
        mechanism, options = leaky(1.0, 0.0), {"relation": "add_remove", "rng": 1}
        x, y = (mechanism(bit, plan.least // 2, np.random.default_rng(bit)) for bit in (0, 1))

        def audit_of(fewer):
            if design == "coins":
                return measure_loss(mechanism, COIN, PureDP(1.0), size=plan.least - fewer, rng=1)
            return measure_loss_from_outputs(x[fewer:], y[fewer:], PureDP(1.0), **options)

        assert audit_of(0).selection == choosing
        with pytest.raises(ValueError, match="at least 8 runs"):
            audit_of(1)


def test_too_few_runs_see_nothing():
    assert plan_violation(PureDP(6.0), 30) == math.inf
    assert plan_power(PureDP(6.0), 30, violation=5.0) == 0
    assert plan_violation(ZCDP(0.5), 60) == math.inf
    assert plan_power(ZCDP(0.5), 20, violation=3.0, selection=0.0) == 0  # two runs on either database
    assert plan_power(ApproxDP(1.0, 0.5), 36, violation=2.0, selection=0.0, share=0.01) == pytest.approx(0, abs=1e-3)
    assert plan_power(ApproxDP(0.1, 0.99), 20, violation=2.0, distance=2, design="one_run") == 0
    # A power below the false alarm needs no violation.
    assert plan_violation(PureDP(0.1), 1000, confidence=0.5, power=0.1) == 1
    assert plan_size(PureDP(0.1), violation=1.1, confidence=0.5, power=0.05) == 25


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"violation": 1.0}, "violation must be more than 1 and finite, got 1.0"),
        ({"violation": math.inf}, "violation must be more than 1 and finite, got inf"),
        ({"power": 0.0}, r"power must be in \(0, 1\), got 0.0"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0"),
        ({"distance": 0}, "distance must be at least 1, got 0"),
        ({"selection": 1.0}, "selection must be 0, or 1e-06 to 1 - 1e-06, got 1.0"),
        ({"selection": 1e-320}, "selection must be 0, or 1e-06 to 1 - 1e-06, got 1e-320"),
        ({"selection": math.nan}, "selection must be 0, or 1e-06 to 1 - 1e-06, got nan"),
        ({"share": 0.0}, r"share must be in \(0, 1\], got 0.0"),
        ({"share": 0.5}, "share below 1 needs an event fixed beforehand: selection must be 0, got 0.3"),
        ({"share": 0.5, "design": "outputs"}, "share is for coins under pure or approximate privacy"),
        ({"design": "dice"}, "design must be one of coins, outputs, one_run, got 'dice'"),
    ],
)
def test_all_plans_refuse_what_is_out_of_range(options, message):
    calls = [(plan_size, (), ""), (plan_violation, (1000,), "violation"), (plan_power, (1000,), "power")]
    for plan, size, answer in calls:
        if answer not in options:  # the others need it
            with refused_like(ValueError, message):
                plan(PureDP(1.0), *size, **options)


RUNS = r"not even 1,000,000,000,000 runs would see [0-9.]+ times .* with power 0\.8"
EARLY_RUNS = "^not even 1,000,000,000,000 runs would show 1.1 times epsilon"
EARLY_END = "^an early audit ends when it would have found 1.1 times"
VIOLATION = "^violation must be more than 1 and finite, got 1.0$"
CANARIES = r"not even 1,000,000 canaries would see [0-9.]+ times .* with power 0\.8"


@pytest.mark.parametrize(
    ("error", "call", "arguments", "options", "message"),
    [
        (ValueError, plan_violation, (PureDP(1.0), 24), {}, "size must be at least 25, got 24"),
        (ValueError, plan_power, (PureDP(1.0), MOST + 1), {}, f"size must be at most {MOST}, got"),
        (ValueError, plan_power, (PureDP(1.0), MOST_CANARIES + 1), {"design": "one_run"}, f"at most {MOST_CANARIES}, "),
        (TypeError, plan_violation, (PureDP(1.0), 1000.0), {}, "size must be an integer"),
        (TypeError, plan_size, (PureDP(1.0),), {"violation": "2"}, "violation must be"),
        (TypeError, plan_size, (PureDP(1.0),), {"distance": 1.5}, "distance must be"),
        (TypeError, plan_size, (1.0,), {}, "claim must be one of"),
        (ValueError, plan_size, (PureDP(0.0),), {}, "must have a positive and finite epsilon, got 0"),
        (ValueError, plan_size, (ZCDP(0.5),), {"share": 0.5, "selection": 0.0}, r"approximate privacy, got rho 0\.5"),
        (ValueError, plan_size, (PureDP(1.0, "replace_one"),), {"design": "one_run"}, "add_remove, got replace_one"),
        (OutOfReachError, plan_size, (PureDP(1e-7),), {}, RUNS),
        (OutOfReachError, plan_size, (GaussianDP(1e-8),), {}, RUNS),
        (OutOfReachError, plan_early, (PureDP(1e-7),), {}, EARLY_RUNS),
        (OutOfReachError, plan_early, (PureDP(1.0),), {"violation": 1.09}, EARLY_END),
        (ValueError, plan_early, (PureDP(1.0),), {"violation": 1.0}, VIOLATION),
        (ValueError, plan_early, (GaussianDP(1.0),), {"share": 0.5}, "^share is for coins under pure or approximate"),
        (OutOfReachError, plan_size, (PureDP(0.01),), {"violation": 1.05, "design": "one_run"}, CANARIES),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(error, call, arguments, options, message):
    with refused_like(error, message):
        call(*arguments, **options)
