"""Exact tests of the counts of two audits."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from audit.claims import ZCDP
from audit.methods import Gaussian, Renyi
from audit.review.compare import compare_results
from audit.review.two_samples import _Table, _tails, count_changes
from tests.helpers import audited

WEIGHTS = [-1.0, -0.5, -0.1, 0.1, 0.5, 1.0]
WITNESS = {"order": "possible on x only", "probability": 0.25}


def guessed(x, y):
    """Counts of an event: runs, and how many named x and y, on either database."""
    return {
        side: dict(zip(("runs", "guessed_x", "guessed_y"), map(int, given), strict=True))
        for side, given in (("x", x), ("y", y))
    }


def binned(x, y):
    return {
        side: {"runs": int(sum(hits))} | {f"bin {k}": int(n) for k, n in enumerate(hits) if n}
        for side, hits in (("x", x), ("y", y))
    }


GOOD = guessed((70_000, 51_000, 19_000), (70_000, 19_000, 51_000))
LOUDER = guessed((70_000, 52_000, 18_000), (70_000, 18_000, 52_000))


def one(before, after, confidence=0.999):
    """Compare one audit with another."""
    (change,) = compare_results([("a", before)], [("a", after)], confidence=confidence).changes
    return change


# The exact law


@pytest.mark.parametrize("numbers", [(30, 100, 45, 110), (0, 5, 3, 5), (5, 5, 5, 5), (0, 9, 0, 7), (1, 1, 0, 4)])
def test_tails_are_those_of_the_hypergeometric_law(numbers):
    old, old_runs, new, new_runs = numbers
    law = stats.hypergeom(old_runs + new_runs, old + new, new_runs)
    assert _tails(_Table(*numbers)) == pytest.approx((law.cdf(new), law.sf(new - 1)), rel=1e-10)


def test_tails_of_differences_are_sums_over_all_outcomes():
    numbers, other = (3, 9, 6, 8), (4, 7, 2, 9)

    def law(old, old_runs, new, new_runs):
        return stats.hypergeom.pmf(range(10), old_runs + new_runs, old + new, new_runs)

    chances = np.outer(law(*numbers), law(*other))
    few = sum(chances[k, m] for k, m in itertools.product(range(10), range(10)) if k - m <= 6 - 2)
    many = sum(chances[k, m] for k, m in itertools.product(range(10), range(10)) if k - m >= 6 - 2)
    assert _tails(_Table(*numbers), _Table(*other)) == pytest.approx((few, many), rel=1e-10)


def test_tails_of_many_runs():
    table = _Table(500_000_000, 10**9, 500_100_000, 10**9)
    spread = math.sqrt(10**9 / 8)
    assert _tails(table) == pytest.approx(stats.norm(0, spread).cdf([50_000.5, -49_999.5]), rel=1e-3)
    assert _tails(_Table(0, 10**6, 10**6, 10**6)) == (pytest.approx(1.0), 0.0)  # below what is summed


def test_what_is_tested_of_a_game():
    found = count_changes("a", audited(counts=GOOD), audited(counts=LOUDER))
    on_x, on_y = _Table(19_000, 70_000, 18_000, 70_000), _Table(51_000, 70_000, 52_000, 70_000)
    right = _Table(102_000, 140_000, 104_000, 140_000)
    assert found.p_value == pytest.approx(3 * 2 * min(min(_tails(table)) for table in (on_x, on_y, right)), rel=1e-9)
    assert found.p_growth == pytest.approx(_tails(right)[1], rel=1e-9)
    assert found.grown == "right among all guesses 72.86% -> 74.29%"
    calmer = count_changes("a", audited(counts=LOUDER), audited(counts=GOOD))
    assert (calmer.p_value, calmer.p_growth > 0.999) == (pytest.approx(found.p_value, rel=1e-6), True)


def test_what_is_tested_of_a_rule_that_abstains():
    old = audited(counts=guessed((1000, 90, 10), (1000, 12, 80)))
    new = audited(counts=guessed((1000, 91, 11), (1000, 11, 140)))
    game = count_changes("a", old, new)
    hits = [(10, 11), (80, 140), (90, 91), (12, 11)]
    assert game.p_value == pytest.approx(5 * 2 * min(min(_tails(_Table(a, 1000, b, 1000))) for a, b in hits), rel=1e-9)
    assert game.changed == "y named on y 8% -> 14%, on x 1% -> 1.1% of runs"
    coinless = count_changes("a", replace(old, bound=Gaussian.bound), replace(new, bound=Gaussian.bound))
    y = _tails(_Table(80, 1000, 140, 1000), _Table(10, 1000, 11, 1000))
    assert coinless.p_value == pytest.approx(6 * 2 * min(min(_tails(_Table(80, 1000, 140, 1000))), *y), rel=1e-9)
    assert coinless.p_growth == pytest.approx(2 * y[1], rel=1e-9)


def test_a_rule_that_never_guesses_has_not_changed():
    nothing = audited(counts=guessed((40, 0, 0), (40, 0, 0)))
    for bound in ("guessing game", Gaussian.bound):
        found = count_changes("a", replace(nothing, bound=bound), replace(nothing, bound=bound))
        assert (found.p_value, found.p_growth) == (1.0, 1.0)
    assert one(nothing, replace(nothing, seed_entropy=1)).counts == "within chance"


def weighed(x, y, **changes):
    basis = {"weights": WEIGHTS, "order": 1.0, "toward": "y", "look": 0}
    given = {"counts": binned(x, y), "basis": basis, "bound": Renyi.bound, "claim": ZCDP(0.5), "measured": ZCDP(0.25)}
    return audited(**given | changes)


def test_bins_are_cut_by_their_weights():
    old = weighed((300, 250, 200, 150, 70, 30), (30, 70, 150, 200, 250, 300))
    new = weighed((300, 250, 200, 150, 70, 30), (30, 50, 120, 160, 240, 400))
    found = count_changes("a", old, new)
    heaviest = _Table(300, 1000, 400, 1000)
    assert found.grown == "a weight of 1 or more on y 30% -> 40%, on x 3% -> 3% of runs"
    cuts = 4  # that pass 0.1, 0.25, 0.5 and 0.75 of all runs; each tested on either database and by the difference
    both = _tails(heaviest, _Table(30, 1000, 30, 1000))
    assert found.p_growth == pytest.approx(cuts * both[1], rel=1e-9)
    assert found.p_value == pytest.approx(3 * cuts * 2 * min(min(both), min(_tails(heaviest))), rel=1e-9)
    toward_x = [replace(audit, basis=audit.basis | {"toward": "x"}) for audit in (old, new)]
    assert "on x" in count_changes("a", *toward_x).grown.partition(", ")[0]


@pytest.mark.parametrize(
    "counts",
    [guessed((10, 9, 2), (10, 0, 0)), {side: {"runs": 10, "guessed_x": 1} for side in "xy"}, {"x": {}, "y": {}}],
)
def test_impossible_counts(counts):
    with pytest.raises(ValueError, match=r"^a: counts on [xy] must be parts of its runs, got \{"):
        one(audited(), audited(counts=counts))


def test_bins_without_weights():
    strange = weighed((1,) * 6, (1,) * 6, counts={"x": {"runs": 6, "bin 7": 6}, "y": {"runs": 6}})
    with pytest.raises(ValueError, match=r"^a: counts on x must be parts of its runs, got \{'runs': 6, 'bin 7': 6\}"):
        one(strange, strange)
