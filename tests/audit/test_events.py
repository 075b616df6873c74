import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.attacks.statistics import agreement, distance_from, sum_of_entries, weighted_sum
from audit.events import LARGEST, CellRule, Event, Statistic, ThresholdRule, WeightRule, cell, score_in_words
from tests.helpers import refused_like

ANY = st.floats(allow_nan=False)
INF = math.inf


def literal_threshold(rule, score):
    upper, lower = (1, -1) if rule.above == "y" else (-1, 1)
    if score >= rule.high:
        return upper
    return lower if score <= rule.low else 0


def values(*numbers):
    return np.array(numbers, dtype=float)


@given(st.lists(ANY, max_size=20), ANY, ANY, st.sampled_from("xy"))
def test_thresholds_do_what_they_say(scores, low, high, above):
    if not low < high:
        with pytest.raises(ValueError, match="low must be below high"):
            ThresholdRule(low, high, above)
        return
    rule = ThresholdRule(low, high, above)
    scores += [low, high, -INF, INF]
    found = rule.guess(values(*scores))
    assert found.tolist() == [literal_threshold(rule, score) for score in scores]
    assert found.dtype == np.int8


@given(*[st.lists(st.integers(-9, 9), max_size=12)] * 3)
def test_cells_do_what_they_say(scores, y, x):
    rule = CellRule(values(*y), values(*x))
    assert rule.guess(values(*scores)).tolist() == [(score in y) - (score in x) for score in scores]
    assert rule.guess(values(*scores)).dtype == np.int8


@pytest.mark.parametrize(
    ("options", "words"),
    [((2, 1), "low must be below high"), ((math.nan, 1), "got nan and 1"), ((0, 1, "z"), 'above must be "x" or "y"')],
)
def test_rules_that_mean_nothing_are_refused(options, words):
    with refused_like(ValueError, words):
        ThresholdRule(*options)


STEPS = WeightRule(values(-1, 0, 2.5), values(-1.5, -0.5, 0, 3), 1.5)


def test_a_score_on_an_edge_belongs_to_the_bin_above():
    scores = values(-LARGEST, -1.001, -1, -0.5, 0, 2.4, 2.5, LARGEST)
    assert STEPS.bins(scores).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert STEPS.guess(scores).tolist() == [-1, -1, -1, -1, 0, 0, 1, 1]
    assert STEPS.guess(scores).dtype == np.int8


def test_the_last_bits_of_a_sum_do_not_reach_a_score():
    outputs = values(0.1 + 0.2, 0.3, 0.3 + 4e-10, 0.3 + 2e-9)
    assert outputs[0] != outputs[1]
    scores = cell()(outputs)
    assert scores[0] == scores[1] == scores[2] != scores[3]
    assert Event(cell(), CellRule(y=values(0.3), x=values())).guess(outputs).tolist() == [1, 1, 1, 0]


def test_scores_too_large_to_round_stay_and_infinities_become_finite():
    given = values(-INF, -LARGEST, -1.5e300, 2.0**60, 1.5e300, LARGEST, INF)
    assert cell()(given).tolist() == [-LARGEST, -LARGEST, -1.5e300, 2.0**60, 1.5e300, LARGEST, LARGEST]


CUBE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("statistic", "name", "outputs", "scores"),
    [
        (cell(), "output", [3, 4], [3, 4]),
        (cell(1, 2), "output[1, 2]", CUBE, [6, 18]),
        (cell(-1, 0), "output[-1, 0]", CUBE, [8, 20]),
        (sum_of_entries(), "sum of output", (CUBE * 5).astype(np.int8), [330, 1050]),
        (sum_of_entries(), "sum of output", [3.5, INF], [3.5, LARGEST]),
        (distance_from((), 1 / 3), "distance of output from 0.3333333333", [1 / 3], [0]),
        (distance_from((1,), 10.5), "distance of output[1] from 10.5", [[0, 4], [9, -INF]], [6.5, LARGEST]),
    ],
)
def test_a_statistic_reads_what_its_name_says(statistic, name, outputs, scores):
    assert (statistic.name, statistic(np.array(outputs)).tolist()) == (name, scores)


@pytest.mark.parametrize(
    ("statistic", "outputs", "words"),
    [
        (cell(3), np.zeros((5, 3)), r"output\[3\] must be inside outputs, got outputs of shape \(3,\)"),
        (cell(0), np.zeros(5), r"output\[0\] must be inside outputs, got single numbers, which are called output"),
        (agreement([(0,), (3,)], [0, 0], [1, 1]), np.zeros((5, 3)), r"output\[0\], \[3\] raises IndexError: index 3"),
        (cell(), np.zeros((5, 3)), r"output must give one score a run, got shape \(5, 3\) for 5 runs"),
        (Statistic("root", lambda v: v * np.nan), np.zeros(5), "root must not be NaN, got 5 of 5 scores"),
        (Statistic("has West", lambda v: v[0]["west"]), np.array([{"n": 1}]), "^has West raises KeyError: 'west'$"),
        (cell(1), np.array([["b", "3"]]), r"output\[1\] must be a number, got '3': words need an own Statistic"),
    ],
)
def test_statistics_that_give_no_score_are_refused(statistic, outputs, words):
    with refused_like(ValueError, words):
        statistic(outputs)


def test_agreement_speaks_for_the_database_that_all_entries_are_near():
    x, y = values(5, 0, 9), values(5, 2, 8)
    statistic = agreement([(1,), (2,)], (x + y)[1:] / 2, np.sign(y - x)[1:])
    outputs = np.array([x, y, (x + y) / 2, [5, 2, 9], [5, 4, 7.5], [0, -4, 9.5]])
    assert statistic(outputs).tolist() == [-0.5, 0.5, 0, 0, 1, -1]
    assert statistic.name == "joint shift of output[1], [2]"
    two = agreement([(0, 1), (1, 0)], [0, 0], [1, 0.5])
    assert two(np.array([[[9, 2], [6, 9]], [[-9, -1], [-6, -9]], [[0, 1], [-1, 0]]])).tolist() == [2, -1, 0]


def test_a_weighted_sum_is_the_likelihood_ratio_of_normal_laws():
    rng = np.random.default_rng(4)
    x, y, scale = rng.normal(size=(3, 5)) * [[4], [4], [1]]
    outputs = rng.normal(0, 5, (30, 5))
    log_ratio = (((outputs - x) / scale) ** 2 - ((outputs - y) / scale) ** 2).sum(axis=1) / 2
    statistic = weighted_sum([(k,) for k in range(5)], (x + y) / 2, (y - x) / scale**2)
    # The constant is 0: at the middles both densities are the same.
    np.testing.assert_allclose(statistic(outputs), log_ratio, rtol=1e-9, atol=1e-8)
    assert weighted_sum([(0, 1), (2, 0)], [0, 0], [1, 1]).name == "weighted sum of output[0, 1], [2, 0]"
    assert weighted_sum([(0, 1), (1, 0)], [0, 1], [1, 2])(np.array([[[0, 7], [3, 0]]])).tolist() == [11]


def test_infinities_that_speak_for_both_databases_speak_for_neither():
    cells, outputs = [(0,), (1,)], np.array([[-INF, -INF], [INF, INF], [-INF, 3], [5, -INF], [-INF, INF]])
    both_ways = weighted_sum(cells, [1, 2], [1, -2])
    assert both_ways(outputs).tolist() == [0, 0, -LARGEST, LARGEST, -LARGEST]
    assert weighted_sum(cells, [1, 2], [1, 2])(outputs).tolist() == [-LARGEST, LARGEST, -LARGEST, -LARGEST, 0]
    assert sum_of_entries()(outputs).tolist() == [-LARGEST, LARGEST, -LARGEST, -LARGEST, 0]
    assert agreement(cells, [1, 2], [1, -2])(outputs).tolist() == [0, 0, -2, 4, -LARGEST]
    assert weighted_sum(cells, [0, 0], [1, 1])(np.array([[LARGEST, LARGEST]])).tolist() == [LARGEST]


def test_a_registered_event_guesses_from_one_entry():
    outputs = np.array([[0, 3], [0, 5], [9, 7]])
    assert Event.at_least(1, 5).guess(outputs).tolist() == [0, 1, 1]
    assert Event.at_least((1,), 5, low=3).guess(outputs).tolist() == [-1, 1, 1]
    assert Event.at_least((), 5).guess(np.array([4, 5])).tolist() == [0, 1]
    assert Event.at_least((0, 1), 5).guess(outputs[None]).tolist() == [0]
    assert Event.equals(1, 5).guess(outputs).tolist() == (outputs[:, 1] == 5).astype(int).tolist()
    assert Event.equals((), 0.1 + 0.2).guess(np.array([0.3, 0.30001])).tolist() == [1, 0]
    with refused_like(ValueError, r"low must be below high, got 5\.0 and 5\.0"):
        Event.at_least(0, 5, low=5)
    for value in (0.1 * 3, 0.1 - 0.7, 123456789.123, 1e15 / 7, 1.5e300):  # rounded as scores are
        below = value - 1e-6 * max(abs(value), 1)
        assert Event.at_least((), value, low=below).guess(values(value, below)).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Event.at_least(3, 17), "y if output[3] >= 17"),
        (Event.at_least((1, 2), 17.25, low=-3), "y if output[1, 2] >= 17.25, x if output[1, 2] <= -3"),
        (Event(cell(), ThresholdRule(0, 1, "x")), "x if output >= 1, y if output <= 0"),
        (Event(cell(), ThresholdRule(0, INF)), "x if output <= 0"),
        (Event(cell(0), CellRule(values(), values())), "never a guess"),
        (Event(cell(), CellRule(values(-2, -1, 1, 3), values(0))), "y if output in {-2..-1, 1, 3}, x if output in {0}"),
        (Event(cell(), CellRule(np.arange(0, 16, 2), values())), "y if output in {0, 2, 4, 6, 8, 10, ... (8 values)}"),
        (Event(cell(), ThresholdRule(-LARGEST, LARGEST)), "y if output >= inf, x if output <= -inf"),
        (Event(cell(3), STEPS), "log-likelihood ratio of y over x by output[3] in 4 bins, -1.5 to 3, Renyi order 1.5"),
        (
            Event(cell(), WeightRule(values(0), values(-1 / 3, 2), toward="x")),
            "log-likelihood ratio of x over y by output in 2 bins, -0.333 to 2, Renyi order 1",
        ),
        (
            Event(cell(), CellRule(values(0, 1), values(2)), lambda k: "abc"[int(k)]),
            "y if output in {a..b}, x if output in {c}",
        ),
    ],
)
def test_events_are_readable(event, text):
    assert str(event) == text


@pytest.mark.parametrize(
    ("rule", "counts", "parameters"),
    [
        (ThresholdRule(0, 1), {"guessed_x": 1, "guessed_y": 2}, {"regions": 2}),
        (ThresholdRule(0, INF), {"guessed_x": 1, "guessed_y": 0}, {"regions": 1}),
        (CellRule(values(3), values(0.5)), {"guessed_x": 1, "guessed_y": 1}, {"regions": 2}),
        (STEPS, {"bin 0": 1, "bin 2": 2, "bin 3": 1}, {"weights": [-1.5, -0.5, 0.0, 3.0], "order": 1.5, "toward": "y"}),
    ],
)
def test_a_rule_counts_what_a_bound_needs_and_gives_its_parameters_as_plain_values(rule, counts, parameters):
    assert rule.counts(values(-2, 0.5, 1, 3)) == counts
    assert rule.parameters() == parameters


def test_scores_are_written_in_ten_digits_and_infinity_in_words():
    scores = (INF, -INF, 0.0, np.nextafter(LARGEST, 0), 1234567890.0)
    assert [score_in_words(score) for score in scores] == ["inf", "-inf", "0", "1.797693135e+308", "1234567890"]
