"""Numbers that no bound takes."""

import math
from functools import partial

import pytest

from audit.bounds.betting import betting_lower
from audit.bounds.game import approx_game_lower, guessing_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.limits import check_confidence, clopper_pearson_lower, clopper_pearson_upper
from audit.bounds.one_run import one_run_curve_p_value, one_run_least_mass, one_run_p_value
from audit.bounds.rectangle import delta_lower, rectangle, two_sample_lower
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import GaussianDP

OF_ONE_RATE = (clopper_pearson_lower, clopper_pearson_upper, guessing_game_lower)
OF_TWO_RATES = (two_sample_lower, gaussian_lower, rectangle, renyi_event_lower)
approx = partial(approx_game_lower, confidence=0.9)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, math.nan])
def test_confidence_is_strictly_between_0_and_1(confidence):
    calls = [partial(bound, 1, 2) for bound in OF_ONE_RATE] + [partial(bound, 1, 2, 1, 2) for bound in OF_TWO_RATES]
    calls += [partial(approx_game_lower, 1, 2, 3, delta=delta) for delta in (0.0, 0.1)]
    calls += [partial(delta_lower, 0.1, 1, 2, 1, 2), partial(renyi_variational_lower, [0, 1], [1, 2], [2, 1], order=1)]
    for call in (*calls, partial(betting_lower, None, 1.0), check_confidence):
        with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), got"):
            call(confidence=confidence)


def test_a_confidence_is_no_smaller_than_what_leaves_room_for_an_error():
    check_confidence(2.0**-53)
    with pytest.raises(ValueError, match=r"^confidence must be at least 1\.1e-16, got 1e-320$"):
        check_confidence(1e-320)


@pytest.mark.parametrize(("hits", "runs"), [(3, 2), (-1, 2), (math.nan, 2), (1, math.nan), (1, -1), ([1, 3], 2)])
def test_events_are_between_none_and_all(hits, runs):
    calls = [partial(bound, hits, runs, confidence=0.9) for bound in OF_ONE_RATE]
    calls.append(partial(one_run_p_value, hits, runs, 1.0))
    scalar = not isinstance(hits, list)
    for bound in OF_TWO_RATES if scalar else OF_TWO_RATES[:4]:
        calls += [partial(bound, *args, confidence=0.9) for args in ((hits, runs, 1, 2), (1, 2, hits, runs))]
    if scalar:
        calls += [partial(approx, *args, delta=d) for args in ((hits, runs, 9), (0, hits, runs)) for d in (0.0, 0.1)]
    for call in calls:
        with pytest.raises(ValueError, match="events must be between 0 and the number of runs, got"):
            call()


@pytest.mark.parametrize(("hits", "runs"), [(0.5, 1), (1, 1.5), (math.inf, math.inf), (1, math.inf)])
def test_events_and_runs_are_whole(hits, runs):
    for call in (partial(clopper_pearson_lower, confidence=0.95), partial(one_run_p_value, epsilon=1.0)):
        with pytest.raises(ValueError, match="events and runs must be whole numbers, got"):
            call(hits, runs)


DELTA = (-0.1, 1, math.nan), r"delta must be in \[0, 1\), got"
DISTANCE = (0, -1, 1.5, math.nan), "distance must be a whole number of at least 1, got"
COUNTS = (-1, 0.5, math.nan, math.inf), "counts must be whole numbers, 0 or more, got"


def least_mass(correct=3, canaries=9, error=0.05):
    return one_run_least_mass(correct, 5, canaries, error=error, rarest=GaussianDP(1.0).rarest)


def of_curve(correct=3, canaries=9, error=0.05):
    return one_run_curve_p_value(correct, 5, canaries, lines=GaussianDP(1.0).lines(), error=error)


def variational(values=(0.0, 1.0), y=(1, 2), x=(2, 1), order=1.0):
    return renyi_variational_lower(values, y, x, order=order, confidence=0.9)


@pytest.mark.parametrize(
    ("call", "numbers", "message"),
    [
        (lambda epsilon: one_run_p_value(1, 2, epsilon), (-1, math.nan), "epsilon must be 0 or more, got"),
        (
            lambda low: delta_lower([0.0, low, -0.9], 1, 2, 1, 2, confidence=0.9),
            (-0.5,),
            "^epsilon must be 0 or more, got -0.5$",
        ),
        (lambda delta: two_sample_lower(1, 2, 1, 2, confidence=0.9, delta=delta), *DELTA),
        (lambda delta: approx(1, 2, 3, delta=delta), *DELTA),
        (lambda distance: approx(1, 2, 3, delta=0.1, distance=distance), *DISTANCE),
        (lambda canaries: one_run_p_value(1, 5, 1.0, canaries=canaries), (4,), "canaries must be at least the guesses"),
        *(
            case
            for bound in (least_mass, of_curve)
            for case in (
                (
                    lambda canaries, bound=bound: bound(canaries=canaries),
                    (4,),
                    "must be at least the guesses, 5, got 4",
                ),
                (lambda error, bound=bound: bound(error=error), (1.0,), r"error must be in \(0, 1\), got 1\.0"),
                (bound, (6,), "events must be between 0 and the number of runs, got"),
            )
        ),
        (lambda value: variational(values=(0.0, value)), (math.nan, math.inf), "values must be finite, got"),
        (
            lambda value: variational(values=(value, math.nan)),
            (math.inf, -math.inf),
            "^values must be finite, got -?inf$",
        ),
        (lambda count: variational(y=(1, count)), *COUNTS),
        (lambda order: variational(order=order), (0.5, 0, math.inf, math.nan), "order must be 1 or more and finite"),
        (
            lambda shapes: variational(*shapes),
            (((0.0,), (1, 2)), ((), (), ()), (0.0, 1, 1), (((0.0, 1.0),), ((1, 2),), ((1, 2),)), ((0, 1), (1, 2, 3))),
            r"values, counts_y and counts_x must share one shape \(m,\)",
        ),
    ],
)
def test_other_numbers_are_in_range(call, numbers, message):
    for number in numbers:
        with pytest.raises(ValueError, match=message):
            call(number)
