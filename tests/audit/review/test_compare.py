"""Comparisons: what is worse, what is only other, and what cannot be told."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from audit.claims import ApproxDP, GaussianDP, PureDP
from audit.methods import AnytimeGame
from audit.results import ONE_RUN
from audit.review.compare import compare_results
from audit.review.two_samples import count_changes
from tests.audit.review.test_two_samples import GOOD, LOUDER, WEIGHTS, WITNESS, binned, guessed, one, weighed
from tests.helpers import audited

GREW = "the minimum detectable loss grew, relative to the promise:"
NONE = "no power: not even twice the promise can be detected (not refuted -> no power)"


def test_a_copy_is_identical():
    change = one(audited(), audited(seconds=9.0, provenance={"python": "3.12"}))
    assert (change.counts, change.p_value) == ("identical", 1.0)
    assert change.regressions == change.weaknesses == change.notes == ()
    other = one(audited(), audited(seed_entropy=7))  # equal counts, and no copy
    assert (other.counts, other.p_value) == ("within chance", 1.0)


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


STRONGER = {"claim": ApproxDP(1, 1e-6), "measured": ApproxDP(1, 1e-6)}


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ({"verdict": "violated", "measured": PureDP(2)}, {}, "the verdict became not refuted, was violated"),
        ({}, {"claim": PureDP(0.9)}, "the promise got stronger: epsilon 1 -> epsilon 0.9"),
        (STRONGER, {}, "the promise got stronger: epsilon 1, delta 1e"),
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
    new = [
        ("stays", audited()),
        ("fine", audited()),
        ("bad", audited(measured=PureDP(2), verdict="violated")),
        ("blind", audited(detectable=9.0, verdict="no power")),
    ]
    comparison = compare_results(old, new)
    outcomes = {change.name: (change.counts, change.regressions, change.weaknesses) for change in comparison.changes}
    assert outcomes == {
        "bad": ("new", ("a new audit, and its promise is violated",), ()),
        "blind": ("new", (), ("a new audit, and it has no power",)),
        "fine": ("new", (), ()),
        "gone": ("missing", ("the audit is gone",), ()),
        "stays": ("identical", (), ()),
    }
    assert list(outcomes) == sorted(outcomes)
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
