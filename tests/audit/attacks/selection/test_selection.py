"""The choice of an event for the guessing game: laws whose best event is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, logsumexp, ndtri
from scipy.stats import norm

from audit.attacks.selection import Shifts, choice, rate_candidates, select_events, select_weights, tabulated
from audit.attacks.selection.choice import LEAST_HITS
from audit.attacks.selection.tables import PARTS
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.renyi import renyi_variational_lower
from audit.events import CellRule, Statistic, ThresholdRule, cell
from tests.audit.attacks.cases import BOTH, ENTRY, exact_quality, geometric_law, scored, select, several
from tests.helpers import geometric


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_geometric_noise_is_told_by_thresholds_that_always_guess(epsilon):
    rng, first = np.random.default_rng(2), 0
    for _ in range(10):
        x, y = geometric(epsilon, 5000, rng), geometric(epsilon, 5000, rng) + 1
        events = several(x, y, families=("threshold",))
        rules = [(event.rule.low, event.rule.high, event.rule.above) for event in events]
        assert (0, 1, "y") in rules
        first += rules[0] == (0, 1, "y")
    assert first >= 9  # now and then a bolder rule promises clearly more; the cautious one is counted, too
    event = events[rules.index((0, 1, "y"))]
    quality = exact_quality(event, geometric_law(epsilon), geometric_law(epsilon, 1))
    assert quality == pytest.approx((expit(epsilon), 1))


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_randomized_response_is_told_by_the_two_true_answers(epsilon):
    rng, answers = np.random.default_rng(4), 10
    kept = math.exp(epsilon) / (math.exp(epsilon) + answers - 1)

    def response(truth, size):
        other = (truth + rng.integers(1, answers, size)) % answers
        return np.where(rng.random(size) < kept, truth, other)

    x, y = response(2, 10_000), response(5, 10_000)
    event = select(x, y)
    assert (event.rule.y.tolist(), event.rule.x.tolist()) == ([5], [2])
    law = np.full(answers, (1 - kept) / (answers - 1))
    p, q = (np.where(np.arange(answers) == truth, kept, law) for truth in (2, 5))
    assert exact_quality(event, p, q, np.arange(answers))[0] == pytest.approx(expit(epsilon))
    # Thresholds must take other answers along: negative control of the family.
    best = exact_quality(select(x, y, families=("threshold",)), p, q, np.arange(answers))[0]
    assert best < expit(epsilon) - 0.02


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("noise", "value", "words"),
    [
        (lambda size, rng: geometric(0.3, size, rng), 0.5, "y if output in {0.5}"),
        (lambda size, rng: rng.laplace(size=size), 0.0, "y if output in {0}"),
        (lambda size, rng: rng.normal(size=size), 1.25, "y if output in {1.25}"),
        (lambda size, rng: rng.integers(0, 10**7, size), 5e6 - 0.5, "y if output in {4999999.5}"),
    ],
)
def test_a_rare_value_between_others_is_found(noise, value, words, seed):
    rng = np.random.default_rng(seed)
    x, y = (noise(30_000, rng).astype(float) for _ in range(2))
    y[rng.random(y.size) < 0.01] = value  # an unbounded loss
    assert str(select(x, y)) == words


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_certain_outputs_are_not_diluted_by_doubtful_ones(share):
    rng = np.random.default_rng(5)
    x, y = rng.laplace(size=(2, 20_000))
    x[rng.random(x.size) < share], y[rng.random(y.size) < share] = -math.inf, math.inf
    assert str(select(x, y)) == "y if output >= inf, x if output <= -inf"


def test_the_statistic_with_the_signal_is_chosen():
    rng = np.random.default_rng(7)
    x, y = rng.laplace(size=(2, 5000, 4))
    y[:, 2] += 1
    statistics = [cell(k) for k in range(4)]
    assert select(x, y, statistics).statistic is statistics[2]


DELTA = 0.05


def four_outcomes(epsilon, delta, runs, rng):
    """The law that attains every inequality of (epsilon, delta): 0 on `x` only, 3 on `y` only, 1 and 2 in between."""
    s = expit(epsilon)
    p = np.array([delta, (1 - delta) * s, (1 - delta) * (1 - s), 0])
    return p, p[::-1], rng.choice(4, runs, p=p), rng.choice(4, runs, p=p[::-1])


def forgiving_epsilon(event, p, q, forgiven, support):
    """What the guesses of an event prove of (epsilon, delta), were there no error of chance."""
    accuracy, share = exact_quality(event, p, q, support)
    odds = forgiven / share
    return logit((accuracy - odds) / (1 - odds)) if accuracy > odds < 1 else -math.inf


@pytest.mark.parametrize("families", [("threshold",), ("cell",), BOTH])
@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_what_is_forgiven_is_not_guessed_by_itself(epsilon, families):
    p, q, x, y = four_outcomes(epsilon, DELTA, 10_000, np.random.default_rng(7))
    event = select(x, y, families=families, forgiven=DELTA)
    assert event.guess(np.arange(4)).tolist() == [-1, -1, 1, 1]
    assert forgiving_epsilon(event, p, q, DELTA, np.arange(4)) == pytest.approx(epsilon)
    certain = select(x, y, families=families)  # negative control: nothing is forgiven
    assert certain.guess(np.arange(4)).tolist() == [-1, 0, 0, 1]
    assert forgiving_epsilon(certain, p, q, DELTA, np.arange(4)) == -math.inf


@pytest.mark.parametrize("families", [("threshold",), ("cell",), BOTH])
@pytest.mark.parametrize("score", [0, 7.5, -math.inf])
def test_one_and_the_same_score_is_never_guessed_from(score, families):
    event = select(np.full(50, score), np.full(70, score), families=families)
    assert str(event) == "never a guess"
    assert not event.guess(np.array([score, 0.0, math.inf])).any()


SCORES = st.one_of(st.integers(-3, 3), st.floats(-10, 10), st.sampled_from([-math.inf, math.inf, 1e308]))
SIDE = st.lists(SCORES, min_size=1, max_size=30)


@settings(max_examples=40)
@given(SIDE, SIDE, st.sampled_from([("threshold",), ("cell",), BOTH]))
def test_any_scores_give_an_event_of_the_families(x, y, families):
    x, y = np.array(x, float), np.array(y, float)
    event = select(x, y, families=families)
    kinds = {"threshold": ThresholdRule, "cell": CellRule}
    if str(event) != "never a guess":
        assert isinstance(event.rule, tuple(kinds[family] for family in families))
    assert set(event.guess(np.concatenate([x, y])).tolist()) <= {-1, 0, 1}


def test_the_ends_of_many_scores_are_tried():
    x = np.append(np.linspace(0, 1, 5000), np.full(300, 2.0))
    y = np.append(np.linspace(0, 1, 5000), np.full(300, -1.0))
    event = select(x, y, families=("threshold",))
    assert (event.rule.low, event.rule.high, event.rule.above) == (-1, 2, "x")


def test_the_first_among_equals_is_chosen():
    x, y = np.random.default_rng(10).laplace([[0], [1]], size=(2, 500))
    one, other = Statistic("one", lambda outputs: outputs), Statistic("other", lambda outputs: outputs)
    assert select(x, y, [one, other]).statistic is one
    assert select(x, y, [other, one]).statistic is other
    reverse = Statistic("reverse", lambda outputs: -outputs)
    assert select(x, y, [one, reverse]).statistic is one


# Outcomes that one database shows and the other hardly does: one of the events is always the best of them


NEARLY_SURE = {"confidence": 1 - 1e-6}


def tails(rng, x_far, y_far, size=20_000):
    """Laplace noise on both databases, so many of whose scores lie far below on x and far above on y."""
    x, y = rng.laplace(size=(2, size))
    x[rng.choice(size, x_far, replace=False)] = -1000 - rng.random(x_far)
    y[rng.choice(size, y_far, replace=False)] = 1000 + rng.random(y_far)
    return x, y


def guesses(events, *scores):
    return [event.guess(np.array(scores)).tolist() for event in events]


@pytest.mark.parametrize(("x_far", "y_far", "guess"), [(0, 20, 1), (20, 0, -1)])
def test_a_rare_and_certain_tail_is_an_event_of_its_own(x_far, y_far, guess):
    x, y = tails(np.random.default_rng(1), x_far, y_far)
    found = guesses(several(x, y, **NEARLY_SURE), guess * 1002.0, guess * 15.0, 0.0)
    assert [guess, 0, 0] in found


def test_values_that_repeat_among_others_that_do_not_are_an_event_of_their_own():
    rng = np.random.default_rng(5)
    x, y = rng.laplace(size=(2, 20_000))
    y[:20] = np.repeat([0.25, 0.75], [12, 8])
    assert [1, 1, 0] in guesses(several(rng.permutation(x), rng.permutation(y), **NEARLY_SURE), 0.25, 0.75, 0.5)


def test_what_is_forgiven_is_no_event_that_promises_most():
    event = select(*tails(np.random.default_rng(3), 0, 20), forgiven=0.01, confidence=0.95)
    assert event.guess(np.array([20.0, 900.0])).tolist() != [0, 1]


def test_how_many_hits_an_outcome_needs_is_told():
    """Chance gives a rival some tail, which more hits have to beat; where a real one is there, many more."""
    rng = np.random.default_rng(8)
    sound = several(rng.laplace(size=3000), rng.laplace(size=3000))[0].hits
    leaking = several(*tails(rng, 0, 60, 3000))[0].hits
    assert LEAST_HITS <= sound < 20 < leaking


# The choice of regions for Gaussian privacy, and of weights for divergences


def region(x, y, *, families=BOTH, counting=50_000, confidence=0.95):
    shifts = Shifts(counting, confidence)
    return select_events(rate_candidates(tabulated(ENTRY, *scored(ENTRY, x, y), families), shifts), shifts)[0]


def weights(x, y, *, counting=50_000, confidence=0.95):
    return select_weights(ENTRY, *scored(ENTRY, x, y), counting=counting, confidence=confidence)


@pytest.mark.parametrize("mu", [-2.0, -0.3, 0.3, 1.0, 3.0])
def test_a_region_shows_the_shift_of_normal_laws(mu):
    shown = []
    for seed in range(5):
        x, y = np.random.default_rng([seed, 10]).normal([[0], [mu]], size=(2, 5000))
        event = region(x, y, families=("threshold",))
        rule = event.rule
        assert math.isinf(rule.low) != math.isinf(rule.high)  # it names one database only
        here, there = (mu, 0) if len(set(event.guess(np.array([-1e9, 1e9])).tolist()) & {1}) else (0, mu)
        tail, edge = (norm.sf, rule.high) if math.isinf(rule.low) else (norm.cdf, rule.low)
        p, q = tail(edge - here), tail(edge - there)
        assert ndtri(p) - ndtri(q) == pytest.approx(abs(mu))  # any half-line does: what counts is how many runs fall in
        shown.append(gaussian_lower(round(25_000 * p), 25_000, round(25_000 * q), 25_000, confidence=0.95))
    # The best region shows mu less 2 standard errors of 25,000 runs on either side: 0.025 at the middle.
    assert abs(mu) - 0.08 < np.median(shown) <= abs(mu)


def divergence_shown(event, p, q):
    """What the weights of an event show of a divergence over its order, on exact probabilities of its bins."""
    rule = event.rule
    likely, other = (q, p) if rule.toward == "y" else (p, q)
    with np.errstate(divide="ignore"):
        log_likely, log_other = np.log(likely), np.log(other)
    a, g = rule.order, rule.weights
    first = likely @ g if a == 1 else logsumexp(log_likely + (a - 1) * g) / (a - 1)
    return first - logsumexp(log_other + a * g) / a


def normal_bins(event, mean):
    return np.diff(norm.cdf(event.rule.edges, mean), prepend=0, append=1)


@pytest.mark.parametrize("mu", [0.2, 1.0, -1.0, 2.0])
def test_weights_show_the_divergence_of_normal_laws(mu):
    shown = []
    for seed in range(3):
        x, y = np.random.default_rng([seed, 14]).normal([[0], [mu]], size=(2, 10_000))
        event = weights(x, y, counting=400_000)
        shown.append(divergence_shown(event, normal_bins(event, 0), normal_bins(event, mu)))
        # No weights show more than there is. Of 256 quantiles, clipped where they are rare, most of it is left.
        assert shown[-1] <= mu**2 / 2 + 1e-9
    assert np.median(shown) > 0.85 * mu**2 / 2


def test_weights_do_not_depend_on_the_unit_of_a_score():
    """A score was taken for a log-likelihood ratio; if its unit was wrong, this looked best in one choice of four."""
    for seed in range(8):
        x, y = np.random.default_rng(seed).normal([[0], [0.45]], size=(2, 389))
        first, *others = (weights(by * x, by * y, counting=2420).rule.weights for by in (1.0, 0.01, 100.0))
        assert all(one == pytest.approx(first, abs=1e-6) for one in others)


@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 0.0), (-math.inf, math.inf), (math.inf, 5.0)])
def test_disjoint_laws_get_the_largest_weights(values):
    x, y = (np.full(200, value) for value in values)
    event = weights(x, y)
    # Only 4 bits of loss can be told by 25,000 runs if one in 10 must be doubted; 9 is the most that is tried.
    assert np.abs(event.rule.weights).max() >= 4
    assert event.guess(np.array(values)).tolist() == [-1, 1]
    rule, counts = event.rule, [np.bincount(event.rule.bins(cell()(part)), minlength=2) * 125 for part in (x, y)]
    likely, other = counts[::-1] if rule.toward == "y" else counts
    assert renyi_variational_lower(rule.weights, likely, other, order=rule.order, confidence=0.95) > 2


@pytest.mark.parametrize("share", [0.0002, 0.01, 0.4])
@pytest.mark.parametrize("end", [-math.inf, math.inf, 1e307])
def test_weights_of_infinite_scores_are_finite(share, end):
    rng = np.random.default_rng(19)
    x, y = rng.normal([[0], [1]], size=(2, 10_000))
    x[rng.random(x.size) < share], y[rng.random(y.size) < share] = end, end
    event = weights(x, y)
    assert np.isfinite(event.rule.weights).all()
    assert event.guess(np.array([-2.0, 3.0])).tolist() == [-1, 1]


# What is believed of a score, and how cautious a choice is


def log_ratio_of_normal_laws(factor=1.0):
    return Statistic("log-likelihood ratio", lambda outputs: factor * (outputs - 0.5), log_ratio=True)


def normal_promise(event, factor=1.0, counting=50_000):
    """Rate of right guesses and what fresh runs would show, on normal laws at 0 and 1 and an honest or scaled score."""
    low, high = sorted((event.rule.low / factor + 0.5, event.rule.high / factor + 0.5))
    right, wrong = norm.cdf(low) + norm.sf(high - 1), norm.cdf(low - 1) + norm.sf(high)
    if (event.rule.above == "y") != (factor > 0):  # it names x above
        right, wrong = wrong, right
    rate = right / (right + wrong)
    return rate, logit(rate - 1.645 * math.sqrt(rate * (1 - rate) / (counting * (right + wrong) / 2)))


def test_a_log_likelihood_ratio_is_believed():
    honest = [log_ratio_of_normal_laws()]
    blind = [Statistic("score", lambda outputs: outputs - 0.5)]
    # What the best thresholds -t and t promise: guesses are right with 1 / (1 + exp(-t)) at least.
    t = np.linspace(0, 6, 600)
    right, wrong = norm.cdf(0.5 - t), norm.cdf(-0.5 - t)
    rate = right / (right + wrong)
    best = logit(np.maximum(rate - 1.645 * np.sqrt(rate * (1 - rate) / (50_000 * (right + wrong))), 0.5)).max()
    found = []
    for seed in range(5):
        x, y = np.random.default_rng([seed, 5]).normal([[0], [1]], size=(2, 3000))
        found.append([normal_promise(select(x, y, one, families=("threshold",)))[1] for one in (honest, blind)])
    believed, doubted = np.median(found, axis=0)
    assert 0.95 * best < believed <= best + 1e-9
    assert believed > doubted


@pytest.mark.parametrize("factor", [0.01, 1.0, 50.0])
def test_a_log_likelihood_ratio_up_to_a_factor_is_believed_as_well(factor):
    """The factor is the only thing that runs must tell; a score that speaks for the other side has none."""

    def scaled(by):
        return [Statistic("score", lambda outputs: by * (outputs - 0.5), proportional=True)]

    x, y = np.random.default_rng(8).normal([[0], [1]], size=(2, 3000))
    scores = [log_ratio_of_normal_laws()], scaled(factor)
    honest, found = (select(x, y, one, families=("threshold",)) for one in scores)
    promised = [normal_promise(honest)[1], normal_promise(found, factor)[1]]
    assert promised[1] == pytest.approx(promised[0], rel=0.03)
    rate, _ = normal_promise(select(x, y, scaled(-factor), families=("threshold",)), -factor)
    assert rate > norm.cdf(0.5) - 0.01


WEAK, RUNS, COUNTING = 0.05, 1000, 5000


def weak_promise():
    """Median over seeds of what fresh runs would show: the rate of right guesses, less the error of as many guesses."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 11])
        event = select(geometric(WEAK, RUNS, rng), geometric(WEAK, RUNS, rng) + 1, counting=COUNTING)
        accuracy, share = exact_quality(event, geometric_law(WEAK), geometric_law(WEAK, 1))
        found.append(accuracy - 1.645 * 0.5 / math.sqrt(share * COUNTING))
    return np.median(found)


def test_a_weak_signal_is_not_lost_to_a_rule_that_is_rare_and_lucky():
    # The best event guesses always and is right with probability 0.5125: 0.501. In 1,000 seeds 14% of the chosen rules
    # were below 0.485, so that half of 40 are with probability 1e-8.
    assert 0.485 < weak_promise() <= 0.501


def test_without_caution_it_would_be(monkeypatch):
    """Negative control: the runs that choose a rule say what it is worth, and how cautious the choice should be."""
    monkeypatch.setattr(
        "audit.attacks.selection.choice.SELECTION_RULES",
        [choice.SelectionRule(0.0), choice.SelectionRule(0.0), *choice.SELECTION_RULES[2:]],
    )
    for folds in ("FOLDS", "HELD"):
        monkeypatch.setattr(f"audit.attacks.selection.choice.{folds}", np.ones((4, PARTS)))
    # Three of four rules are below 0.47: they guess 2% of the runs, right as often as wrong.
    assert weak_promise() < 0.47
