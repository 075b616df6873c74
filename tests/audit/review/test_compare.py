"""Comparisons: exact tests of counts, what is worse and what only other, and what a continuous integration reads."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import typer
from scipy import stats
from typer.testing import CliRunner

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.cli.compare import compare
from audit.methods import AnytimeGame, Gaussian, Renyi
from audit.results import ONE_RUN
from audit.results.files import write_json
from audit.review.compare import compare_results
from audit.review.two_samples import _Table, _tails, count_changes
from tests.audit.report.test_formats import NAMES
from tests.helpers import audited, estimated

GREW = "the minimum detectable loss grew, relative to the promise:"

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
    claim = ZCDP(0.5)
    return audited(
        **{
            "counts": binned(x, y),
            "basis": basis,
            "bound": Renyi.bound,
            "claim": claim,
            "measured": claim.at(0.25),
        }
        | changes
    )


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
    [
        guessed((10, 9, 2), (10, 0, 0)),
        guessed((10, -1, 2), (10, 0, 0)),
        {"x": {"runs": 10, "guessed_x": 1, "guessed_y": 1}},
        {"x": {"runs": 10, "guessed_x": 1}, "y": {"runs": 10, "guessed_x": 1}},
        {"x": {"guessed_x": 0, "guessed_y": 0}, "y": {"guessed_x": 0, "guessed_y": 0}},
        {"x": {}, "y": {}},
    ],
)
def test_impossible_counts(counts):
    with pytest.raises(ValueError, match=r"^a: counts on [xy] must be parts of its runs, got \{"):
        one(audited(), audited(counts=counts))


def test_bins_without_weights():
    strange = weighed((1,) * 6, (1,) * 6, counts={"x": {"runs": 6, "bin 7": 6}, "y": {"runs": 6}})
    with pytest.raises(ValueError, match=r"^a: counts on x must be parts of its runs, got \{'runs': 6, 'bin 7': 6\}"):
        one(strange, strange)


# False alarms and power


def laplace(rng, scale, threshold, runs):
    """Counts of a rule on a count with Laplace noise that a person moves by 1; below 0.5 it never abstains."""

    def above(z):
        return 0.5 * math.exp(-z / scale) if z >= 0 else 1 - 0.5 * math.exp(z / scale)

    sizes = rng.multinomial(runs, [0.5, 0.5])
    chances = [(1 - above(1 - threshold), above(threshold)), (1 - above(-threshold), above(threshold - 1))]
    counts = []
    for size, (low, high) in zip(sizes, chances, strict=True):
        hits = rng.multinomial(size, [low, high, max(0.0, 1 - low - high)])
        counts.append((size, *hits[:2]))
    return audited(counts=guessed(*counts), seed_entropy=int(rng.integers(2**60)))


def bins(rng, shift, runs):
    edges = [-np.inf, -1.5, -0.5, 0.0, 0.5, 1.5, np.inf]
    x, y = (np.diff(stats.norm.cdf(edges, loc)) for loc in (-shift / 2, shift / 2))
    seed = int(rng.integers(2**60))
    return weighed(rng.multinomial(runs // 2, x), rng.multinomial(runs // 2, y), seed_entropy=seed)


def false_alarms(rng, times, runs, binning):
    """How often any of several audits is called changed, at confidence 0.95, where none did."""
    changed = 0
    for _ in range(times):
        old, new = (
            [
                ("narrow", laplace(rng, 1.0, 0.5, runs)),
                ("wide", replace(laplace(rng, 1.0, 2.0, runs), bound=Gaussian.bound)),
                *([("bins", bins(rng, 1.0, runs))] if binning else []),
            ]
            for _ in range(2)
        )
        changed += any(change.counts == "changed" for change in compare_results(old, new, confidence=0.95).changes)
    return changed


def found(rng, times, scale, runs=200_000, counting=0.7):
    """How often another scale is seen, and how often with a larger loss, by default confidence."""
    seen = grown = 0
    for _ in range(times):
        change = one(laplace(rng, 1.0, 1.0, int(runs * counting)), laplace(rng, scale, 1.0, int(runs * counting)))
        seen += change.counts == "changed"
        grown += any("grew" in words for words in change.regressions)
    return seen, grown


def test_what_did_not_change_is_seldom_called_changed():
    # 40 times with probability 0.05 at most: more than 9 with probability 3e-5.
    assert false_alarms(np.random.default_rng(7), 40, 2000, binning=False) <= 9


def test_a_scale_five_percent_off_is_found():
    # With probability 0.9 or more each (the slow test counts 400): fewer than 5 of 10 with probability 2e-4.
    rng = np.random.default_rng(8)
    seen, grown = found(rng, 10, 0.95)
    assert min(seen, grown) >= 5
    seen, grown = found(rng, 10, 1.05)
    assert seen >= 5
    assert grown == 0  # less is lost: no regression
    assert found(rng, 10, 1.0) == (0, 0)  # a false alarm with probability 0.01


@pytest.mark.slow
def test_false_alarms_are_as_seldom_as_said():
    # 2,000 times with probability 0.05 at most: more than 138 with probability 1e-4.
    assert false_alarms(np.random.default_rng(9), 2000, 5000, binning=True) <= 138


@pytest.mark.slow
def test_power_as_said():
    rng = np.random.default_rng(10)
    less, more = found(rng, 400, 0.95), found(rng, 400, 1.05)
    assert min(less) >= 352  # 88%: were it 94%, fewer with probability 1e-5
    assert more[0] >= 340
    assert more[1] == 0
    bigger = [one(bins(rng, 1.0, 140_000), bins(rng, 1.05, 140_000)) for _ in range(100)]
    assert sum(any("grew" in words for words in change.regressions) for change in bigger) >= 80


# What became of an audit


def test_a_copy_is_identical():
    change = one(audited(), audited(seconds=9.0, provenance={"python": "3.12"}))
    assert (change.counts, change.p_value) == ("identical", 1.0)
    assert change.regressions == change.weaknesses == change.notes == ()


def test_equal_counts_of_other_seeds_are_no_copy():
    change = one(audited(), audited(seed_entropy=7))
    assert (change.counts, change.p_value) == ("within chance", 1.0)


def test_other_counts_of_the_same_seed():
    other = guessed((700, 0, 190), (699, 0, 515))
    change = one(audited(), audited(counts=other))
    assert change.counts == "within chance"
    assert change.notes == (
        "the same seed gave other counts: parameters, code, software or platform are not what they were",
    )
    assert one(audited(), audited(counts=other, seed_entropy=7)).notes == ()


def test_growth_is_a_regression_and_its_contrary_a_note():
    old, new = audited(counts=GOOD), audited(counts=LOUDER, seed_entropy=1)
    change = one(old, new)
    assert change.counts == "changed"
    assert change.regressions == ("the loss of this event grew: right among all guesses 72.86% -> 74.29%",)
    back = one(new, old)
    assert (back.counts, back.regressions) == ("changed", ())
    assert back.notes[-1].startswith("the counts changed beyond chance, but no growth of the loss is shown: ")


def test_the_error_probability_is_that_of_all_audits_together():
    old = audited(counts=GOOD)
    new = audited(counts=guessed((70_000, 51_300, 18_700), (70_000, 18_700, 51_300)), seed_entropy=1)
    p_value = count_changes("a", old, new).p_value
    others = [(f"other {k}", audited()) for k in range(9)]
    for factor, counts in ((9.9, "within chance"), (10.1, "changed")):
        comparison = compare_results([("a", old), *others], [("a", new), *others], confidence=1 - factor * p_value)
        assert comparison.changes[0].counts == counts
        assert (comparison.compared, comparison.tested) == (10, 10)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"event": "y if output[0] >= 14"}, "the events differ"),
        ({"pair": "1 person added to cell 1"}, "the pairs of databases differ"),
        ({"claim": PureDP(0.9)}, "the promises differ"),
        ({"unit": "household"}, "the units differ"),
        ({"distance": 2}, "the distances differ"),
        ({"bound": "Clopper-Pearson rectangle"}, "the theorems differ"),
        ({"relation": "replace_one"}, "the neighbor relations differ"),
    ],
)
def test_counts_are_compared_only_where_the_question_is_the_same(changes, why):
    change = one(audited(), audited(counts=LOUDER, **changes))
    assert (change.counts, change.p_value) == ("bounds only", None)
    assert f"{why}: only the bounds stand side by side" in change.notes
    assert not any("grew" in words for words in change.regressions)


@pytest.mark.parametrize(
    ("shared", "why"),
    [
        ({"bound": ONE_RUN}, "guesses from one run are not independent"),
        ({"bound": AnytimeGame.bound}, "the runs ended when the answer was clear, which their counts tell"),
        ({"basis": {"look": 3}}, "the runs ended when the answer was clear, which their counts tell"),
        (
            {"provenance": {"parameters": {"stop": "early"}}},
            "the runs ended when the answer was clear, which their counts tell",
        ),
        ({"counts": binned((3, 4), (4, 3)), "basis": {}}, "a file does not say what the event weighs"),
        (
            {"counts": binned((3, 4), (4, 3)), "basis": {"weights": ["1", 2], "toward": "y"}},
            "a file does not say what the event weighs",
        ),
        ({"counts": guessed((10**10, 1, 1), (1, 0, 0))}, "there are more than 1e+10 runs"),
    ],
)
def test_counts_that_no_test_holds_for(shared, why):
    change = one(audited(**shared), audited(**shared, seed_entropy=7))
    assert (change.counts, change.p_value) == ("bounds only", None)
    assert change.notes == (f"{why}: only the bounds stand side by side",)
    assert one(audited(**shared), audited(**shared)).counts == "identical"


def test_events_of_other_weights():
    old = weighed((1,) * 6, (1,) * 6)
    new = replace(old, basis=old.basis | {"weights": [*WEIGHTS[:-1], 2.0]}, seed_entropy=7)
    assert one(old, new).notes == ("the weights of the events differ: only the bounds stand side by side",)


@pytest.mark.parametrize(
    ("before", "after", "regression"),
    [
        (
            {},
            {"measured": PureDP(1.23456), "verdict": "violated"},
            "the verdict became violated: lower bound 1.234 of a promised epsilon 1, was 0.8750, not refuted",
        ),
        (
            {"detectable": 3.0, "verdict": "no power"},
            {"support": WITNESS, "verdict": "violated"},
            "the verdict became violated: lower bound 0.8750 of a promised epsilon 1, was 0.8750, no power; "
            "unbounded by the exact law: possible on x only, probability 0.25",
        ),
        ({}, {"claim": PureDP(1.5)}, "the promise got weaker: epsilon 1 (add_remove) -> epsilon 1.5 (add_remove)"),
        (
            {},
            {"claim": ApproxDP(0.9, 1e-6), "measured": ApproxDP(0.5, 1e-6)},
            "the promise got weaker: epsilon 1 (add_remove) -> epsilon 0.9, delta 1e-06 (add_remove)",
        ),
        (
            {},
            {"claim": ZCDP(0.5), "measured": ZCDP(0.5)},
            "the promise is of another kind, and may be weaker: epsilon 1 (add_remove) -> rho 0.5 (add_remove)",
        ),
        (
            {},
            {"claim": PureDP(1, "replace_one"), "measured": PureDP(1, "replace_one"), "relation": "replace_one"},
            "the promise is of another kind, and may be weaker: epsilon 1 (add_remove) -> epsilon 1 (replace_one)",
        ),
        ({}, {"unit": "record"}, "the promise is for another unit, and may be weaker: one person -> one record"),
        (
            {},
            {"adjacency": "declared"},
            "the distance of the databases was verified, and is now declared: verified -> declared",
        ),
    ],
)
def test_regressions(before, after, regression):
    assert one(audited(**before), audited(**after)).regressions == (regression,)


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ({"verdict": "violated", "measured": PureDP(2)}, {}, "the verdict became not refuted, was violated"),
        ({}, {"claim": PureDP(0.9)}, "the promise got stronger: epsilon 1 -> epsilon 0.9"),
        (
            {"claim": ApproxDP(1, 1e-6), "measured": ApproxDP(1, 1e-6)},
            {},
            "the promise got stronger: epsilon 1, delta 1e",
        ),
        ({}, {"confidence": 0.9}, "confidence: 95% -> 90%"),
        ({}, {"mechanism": "other"}, "mechanism: count -> other"),
        ({}, {"pair": ""}, "pair: 1 person added to cell 0 -> none"),
        ({}, {"distance": 2}, "steps between the databases: 1 -> 2"),
        ({"adjacency": "declared"}, {}, "the distance of the databases is now verified: declared -> verified"),
        ({}, {"confidential": True}, "the databases are now confidential"),
        ({"confidential": True}, {}, "the databases are confidential no longer"),
    ],
)
def test_what_is_no_regression_is_noted(before, after, note):
    change = one(audited(**before), audited(**after))
    assert change.regressions == ()
    assert any(words.startswith(note) for words in change.notes)


def test_a_violation_that_was_known_is_no_regression():
    bad = audited(measured=PureDP(2), verdict="violated")
    assert one(bad, replace(bad, measured=PureDP(2.1), seed_entropy=7)).regressions == ()


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (1.25, 1.375, ()),  # 10%
        (
            1.25,
            1.3751,
            ("the minimum detectable loss grew, relative to the promise: 1.250 (epsilon 1) -> 1.376 (epsilon 1)",),
        ),
        (1.25, 1.0, ()),
        (math.inf, math.inf, None),
        (3.0, 2.5, None),
    ],
)
def test_power_that_was_lost(before, after, lost):
    old, new = (audited(detectable=at, verdict="no power" if at > 2 else "not refuted") for at in (before, after))
    none = ("no power: not even twice the promise can be detected (no power -> no power)",)
    assert one(old, new).weaknesses == (none if lost is None else lost)


def test_power_is_relative_to_the_promise():
    old, new = audited(detectable=1.25), audited(claim=PureDP(0.5), measured=PureDP(0.5), detectable=0.75)
    assert one(old, new).weaknesses == (f"{GREW} 1.250 (epsilon 1) -> 0.7500 (epsilon 0.5)",)
    nothing = audited(claim=PureDP(0), measured=PureDP(0), verdict="no power")  # as a file may hold it
    assert len(one(old, nothing).weaknesses) == 2
    mu = audited(claim=GaussianDP(0.1), measured=GaussianDP(0.1), detectable=0.15)
    assert one(old, mu).weaknesses == ()


def test_audits_that_come_and_go():
    old = [("gone", audited()), ("stays", audited())]
    new = [
        ("stays", audited()),
        ("fine", audited()),
        ("bad", audited(measured=PureDP(2), verdict="violated")),
        ("blind", audited(detectable=9.0, verdict="no power")),
    ]
    comparison = compare_results(old, new)
    said = {change.name: (change.counts, change.regressions, change.weaknesses) for change in comparison.changes}
    assert said == {
        "bad": ("new", ("a new audit, and its promise is violated",), ()),
        "blind": ("new", (), ("a new audit, and it has no power",)),
        "fine": ("new", (), ()),
        "gone": ("missing", ("the audit is gone",), ()),
        "stays": ("identical", (), ()),
    }
    assert list(said) == sorted(said)
    assert (comparison.compared, comparison.tested) == (1, 1)


def test_redacted_audits_are_compared_by_what_remains():
    full, public = audited(), audited().redact()
    for old, new in ((full, public), (public, full), (public, public)):
        change = one(old, new)
        assert change.counts == "bounds only"
        assert change.regressions == ()
        assert "the counts were redacted: only the bounds stand side by side" in change.notes
    worse = replace(public, measured=PureDP(2), verdict="violated")
    assert "the verdict became violated" in one(public, worse).regressions[0]


def test_what_cannot_be_asked():
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), got 1"):
        compare_results([], [], confidence=1)
    with pytest.raises(ValueError, match="names must differ, got 2 audits with 1 names"):
        compare_results([("a", audited()), ("a", audited())], [])
    assert compare_results([], []).changes == ()


# The command


app = typer.Typer(pretty_exceptions_enable=False)
app.command()(compare)


def run(*arguments):
    """The exit code and what was printed; bad input raises, as the command `plaudit` turns into one line."""
    result = CliRunner().invoke(app, list(map(str, arguments)), standalone_mode=False, catch_exceptions=False)
    return result.return_value, result.stdout


@pytest.fixture
def folders(tmp_path):
    def write(which, **results):
        for name, result in results.items():
            result.to_json(tmp_path / which / f"{name}.json")
        return tmp_path / which

    return write


def test_all_as_before(folders):
    old = folders("old", a=audited(), b=audited(counts=GOOD))
    code, printed = run(old, old)
    assert code == 0
    assert "REGRESSION" not in printed
    assert printed.count("identical") == 2
    assert " ".join(printed.split()).endswith(
        "Compared: 2 audits, of which 2 by their counts. If no algorithm changed, any counts are called changed with "
        "probability 0.001 at most, over all audits. A verdict holds by itself, at 95% confidence."
    )
    assert run(old, folders("new", a=audited(), b=audited(counts=GOOD, seed_entropy=7)))[0] == 0


def test_regressions_are_printed_first_and_fail(folders):
    old = folders("old", a=audited(counts=GOOD), b=audited(), c=audited())
    new = folders("new", a=audited(counts=LOUDER, seed_entropy=7), b=audited(claim=PureDP(2), verdict="not refuted"))
    code, printed = run(old, new)
    assert code == 1
    assert printed.splitlines()[:3] == [
        "REGRESSION: a: the loss of this event grew: right among all guesses 72.86% -> 74.29%",
        "REGRESSION: b: the promise got weaker: epsilon 1 (add_remove) -> epsilon 2 (add_remove)",
        "REGRESSION: c: the audit is gone",
    ]
    assert "b: the promises differ: only the bounds stand side by side" in printed
    assert "person added or removed" in printed
    assert "y if output[0] >= 13" in printed
    assert run(old, new, "--confidence", "0.999999999999")[0] == 1  # the other two


def test_less_power_has_an_exit_code_of_its_own(folders):
    old = folders("old", a=audited(), b=audited())
    new = folders("new", a=audited(detectable=1.5), b=audited(detectable=9.0, verdict="no power"))
    code, printed = run(old, new)
    assert code == 3
    assert printed.startswith(
        "LESS POWER: a: the minimum detectable loss grew, relative to the promise: 1.250 (epsilon 1) -> 1.5"
    )
    assert "LESS POWER: b: no power" in printed
    assert run(old, folders("worse", a=audited(detectable=1.5)))[0] == 1  # a regression weighs more


def test_two_files_are_compared_whatever_their_names(folders):
    old, new = folders("old", a=audited()), folders("new", b=audited(detectable=1.5))
    code, printed = run(old / "a.json", new / "b.json")
    assert code == 3
    assert "LESS POWER: b: the minimum detectable loss grew" in printed
    assert run(old / "a.json", old / "a.json")[0] == 0


def test_json(folders):
    old = folders("old", a=audited(detectable=math.inf, verdict="no power"), b=audited())
    new = folders("new", a=audited(), c=audited(confidential=True))
    code, printed = run(old, new, "--json")
    values = json.loads(printed)
    assert code == 1
    assert (values["regressed"], values["weakened"], values["confidential"]) == (True, False, True)
    assert (values["compared"], values["tested"], values["confidence"]) == (1, 1, 0.999)
    assert values["audits"]["b"]["regressions"] == ["the audit is gone"]
    assert values["audits"]["b"]["new"] is None
    assert values["audits"]["a"]["old"]["detectable"] == "inf"
    assert values["audits"]["a"]["new"]["measured"] == 0.875
    assert values["audits"]["a"]["notes"] == ["the verdict became not refuted, was no power"]


def test_what_is_confidential_is_said_to_be(folders):
    code, printed = run(folders("old", a=audited()), folders("new", a=audited(confidential=True)))
    assert code == 0
    assert printed.startswith("CONFIDENTIAL: the databases behind these audits are")
    assert "  CONFIDENTIAL  " in printed


def test_files_of_another_schema(folders, tmp_path, monkeypatch):
    new = folders("new", a=audited(), b=audited())
    monkeypatch.setattr("audit.results.files.SCHEMA", 1)
    plain = {key: value for key, value in audited().to_dict().items() if key not in ("basis", "confidential")}
    write_json(tmp_path / "old" / "a.json", plain)
    monkeypatch.undo()
    folders("old", b=audited())
    code, printed = run(tmp_path / "old", new)
    assert code == 0
    assert "a: the file is of schema 2, was of schema 1" in printed
    assert "b: the file" not in printed
    assert json.loads(run(tmp_path / "old", new, "--json")[1])["audits"]["a"]["schemas"] == [1, 2]


def test_a_narrow_terminal_shows_events_below(folders, monkeypatch):
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    old = folders("old", a=audited(), b=audited())
    new = folders("new", a=audited(event="y if output[1] >= 2"), b=audited())
    printed = run(old, new)[1]
    assert "a: y if output[0] >= 13 -> y if output[1] >= 2\n" in printed
    assert "b: y if output[0] >= 13\n" in printed
    assert "within chance" not in printed
    for whole in ("bounds only", "identical", "not refuted", "0.8750"):
        assert whole in printed


def test_a_terminal_is_not_commanded(tmp_path):
    obeyed = [name for name in NAMES if "[" in name or not name.isprintable()]
    hostile = [name for name in obeyed if not any(0xD800 <= ord(letter) < 0xE000 for letter in name)]
    for number, name in enumerate(hostile):
        file = f"{number}{name.translate({ord('/'): None, 0: None})}.json"
        audited(mechanism=name, event=name, pair=name).to_json(tmp_path / "old" / file)
        audited(event=f"{name}!", pair=f"{name}!", confidential=True).to_json(tmp_path / "new" / file)
    for options in ((), ("--json",)):
        code, printed = run(tmp_path / "old", tmp_path / "new", *options)
        assert code == 0
        assert all(letter.isprintable() or letter == "\n" for letter in printed)
    assert len(json.loads(printed)["audits"]) == len(hostile) >= 20


def test_estimates_are_not_compared(folders, tmp_path):
    old = folders("old", a=audited())
    write_json(old / "e.json", estimated().to_dict())
    assert run(old, old)[0] == 0
    write_json(tmp_path / "only" / "e.json", estimated().to_dict())
    with pytest.raises(ValueError, match="only must hold saved audits, got estimates only"):
        run(old, tmp_path / "only")


def test_bad_input_is_one_line(folders, tmp_path):
    old = folders("old", a=audited())
    with pytest.raises(ValueError, match="nowhere must be a folder of saved audits or one of them, and there is none"):
        run(old, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="OLD and NEW must be two folders or two files, got a folder and a file"):
        run(old, old / "a.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty must hold saved audits \(\*.json\), got none"):
        run(old, tmp_path / "empty")
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), got 2"):
        run(old, old, "--confidence", "2")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "a.json").write_text((old / "a.json").read_text()[:-9])
    with pytest.raises(ValueError, match="is not a result file"):
        run(old, tmp_path / "torn")
