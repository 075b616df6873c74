"""Comparisons: what is worse, what is only other, and what cannot be told."""

import math
from dataclasses import replace

import pytest

from audit.claims import ApproxDP, GaussianDP, PureDP
from audit.review.compare import compare_results, totals
from tests.helpers import audited

WITNESS = {"order": "possible on x only", "probability": 0.25}
GREW = "the minimum detectable loss grew, relative to the promise:"
NONE = "no power: not even twice the promise can be detected (not refuted -> no power)"
ASIDE = "these are other runs: only the bounds stand side by side"


def one(before, after):
    """Compare one audit with another."""
    (change,) = compare_results([("a", before)], [("a", after)])
    return change


def test_a_copy_is_identical():
    change = one(audited(), audited(seconds=9.0, provenance=audited().provenance | {"python": "3.12"}))
    assert change.counts == "identical"
    assert change.regressions == change.weaknesses == change.notes == ()


@pytest.mark.parametrize(
    "after",
    [
        {"counts": {side: {"runs": 1000, "guessed_x": 300, "guessed_y": 300} for side in "xy"}},
        {"event": "y if output[0] >= 14"},
        {"measured": PureDP(0.9)},  # code that draws in another order gives a larger bound every second time
    ],
)
def test_the_same_seed_and_settings_give_the_same_runs_and_others_are_no_regression(after):
    change = one(audited(), audited(**after))
    assert (change.counts, change.regressions) == ("changed", ())
    assert any(note.startswith("the same seed gave other runs: ") for note in change.notes)


def test_bounds_that_differ_by_rounding_are_identical():
    change = one(audited(), audited(measured=PureDP(0.875 * (1 + 1e-9))))
    assert (change.counts, change.regressions) == ("identical", ())


@pytest.mark.parametrize(
    "changes",
    [
        {"seed_entropy": 7},
        {"pair": "1 person added to cell 1"},
        {"claim": PureDP(0.95)},
        {"relation": "replace_one"},
        {"provenance": {"parameters": {"stop": "early"}}},
    ],
)
def test_a_larger_bound_of_other_runs_is_no_regression(changes):
    change = one(audited(), audited(**{"measured": PureDP(0.9), **changes}))
    assert (change.counts, change.regressions) == ("bounds only", ())
    assert ASIDE in change.notes


@pytest.mark.parametrize(
    "shared",
    [
        {"seed_entropy": None},
        {"provenance": {"parameters": {"seedable": False}}},
        {"provenance": {"parameters": {"runs_x": 700, "runs_y": 699}}},
    ],
    ids=["no seed", "entropy of the system", "outputs from elsewhere"],
)
def test_runs_that_no_seed_repeats_are_not_compared(shared):
    change = one(audited(**shared), audited(**shared, measured=PureDP(0.9)))
    assert (change.counts, change.notes) == ("bounds only", (ASIDE,))


BROKEN = {"measured": PureDP(1.23456), "verdict": "violated"}
BLIND, PROVED = {"detectable": 3.0, "verdict": "no power"}, {"support": WITNESS, "verdict": "violated"}
REPLACED = {"claim": PureDP(1, "replace_one"), "measured": PureDP(1, "replace_one"), "relation": "replace_one"}
BECAME = "the verdict became violated: lower bound"
OF_CHANCE = "unbounded by the exact law: possible on x only, probability 0.25"


@pytest.mark.parametrize(
    ("before", "after", "regression"),
    [
        ({}, BROKEN, f"{BECAME} 1.234 of a promised epsilon 1, was 0.8750, not refuted"),
        (BLIND, PROVED, f"{BECAME} 0.8750 of a promised epsilon 1, was 0.8750, no power; {OF_CHANCE}"),
        ({}, {"claim": PureDP(1.5)}, "the promise got weaker: epsilon 1 (add_remove) -> epsilon 1.5 (add_remove)"),
        ({}, {"claim": ApproxDP(0.9, 1e-6), "measured": ApproxDP(0.5, 1e-6)},
         "the promise got weaker: epsilon 1 (add_remove) -> epsilon 0.9, delta 1e-06 (add_remove)"),
        ({}, REPLACED, "the promise is of another kind, and may be weaker: epsilon 1 (add_remove) -> epsilon 1 "
                       "(replace_one)"),
        ({}, {"unit": "record"}, "the promise is for another unit, and may be weaker: one person -> one record"),
        ({}, {"adjacency": "declared"},
         "the distance of the databases was verified, and is now declared: verified -> declared"),
    ],
)  # fmt: skip
def test_regressions(before, after, regression):
    assert one(audited(**before), audited(**after)).regressions == (regression,)


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ({"verdict": "violated", "measured": PureDP(2)}, {}, "the verdict became not refuted, was violated"),
        ({}, {"claim": PureDP(0.9)}, "the promise got stronger: epsilon 1 -> epsilon 0.9"),
        ({"claim": ApproxDP(1, 1e-6), "measured": ApproxDP(1, 1e-6)}, {}, "the promise got stronger: epsilon 1, delta"),
        ({}, {"confidence": 0.9}, "confidence: 95% -> 90%"),
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
        (1.25, 1.3751, (f"{GREW} 1.250 (epsilon 1) -> 1.376 (epsilon 1)",)),
        (1.25, 1.0, ()),
        (1.25, 2.5, (NONE, f"{GREW} 1.250 (epsilon 1) -> 2.500 (epsilon 1)")),
        (math.inf, math.inf, ()),  # there was none to lose
        (3.0, 2.5, ()),
    ],
)
def test_power_that_was_lost(before, after, lost):
    old, new = (audited(detectable=at, verdict="no power" if at > 2 else "not refuted") for at in (before, after))
    assert one(old, new).weaknesses == lost


def test_power_is_relative_to_the_promise():
    old, new = audited(detectable=1.25), audited(claim=PureDP(0.5), measured=PureDP(0.5), detectable=0.75)
    assert one(old, new).weaknesses == (f"{GREW} 1.250 (epsilon 1) -> 0.7500 (epsilon 0.5)",)
    nothing = audited(claim=PureDP(0), measured=PureDP(0), verdict="no power")  # as a file may hold it
    assert len(one(old, nothing).weaknesses) == 2
    mu = audited(claim=GaussianDP(0.1), measured=GaussianDP(0.1), detectable=0.15)
    assert one(old, mu).weaknesses == ()


def test_audits_that_come_and_go():
    old = [("gone", audited()), ("stays", audited())]
    blind = ("blind", audited(detectable=9.0, verdict="no power"))
    bad = ("bad", audited(measured=PureDP(2), verdict="violated"))
    changes = compare_results(old, [("stays", audited()), ("fine", audited()), bad, blind])
    outcomes = {change.name: (change.counts, change.regressions, change.weaknesses) for change in changes}
    assert outcomes == {
        "bad": ("new", ("a new audit, and its promise is violated",), ()),
        "blind": ("new", (), ("a new audit, and it has no power",)),
        "fine": ("new", (), ()),
        "gone": ("missing", ("the audit is gone",), ()),
        "stays": ("identical", (), ()),
    }
    assert list(outcomes) == sorted(outcomes)
    assert [totals(changes)[name] for name in ("compared", "repeated")] == [1, 1]


def test_redacted_audits_are_compared_by_what_remains():
    full, public = audited(), audited().redact()
    for old, new in ((full, public), (public, full), (public, public)):
        change = one(old, new)
        assert change.counts == "bounds only"
        assert change.regressions == ()
        assert ASIDE in change.notes
    worse = replace(public, measured=PureDP(2), verdict="violated")
    assert "the verdict became violated" in one(public, worse).regressions[0]


def test_what_cannot_be_asked():
    with pytest.raises(ValueError, match="names must differ, got 2 audits with 1 names"):
        compare_results([("a", audited()), ("a", audited())], [])
    assert compare_results([], []) == ()
