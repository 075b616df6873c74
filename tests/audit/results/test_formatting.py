"""Numbers in words are honest in the direction of their rounding, and an audit is said in one line."""

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.claims import ApproxDP, PureDP
from audit.results import verdict_of
from audit.results.formatting import COLUMNS, at_least, at_most, nearest, percent, row, texts
from tests.audit.results.strategies import FEW, audits
from tests.helpers import audited


@pytest.mark.parametrize(
    ("value", "low", "high", "near"),
    [
        (0.0, "0", "0", "0"),
        (0.99996, "0.9999", "1.000", "1"),
        (0.1, "0.1000", "0.1000", "0.1"),  # and not a bit more, although the float is
        (123.4567, "123.4", "123.5", "123.5"),
        (999999.5, "999999", "1.000e+06", "1e+06"),
        (0.00012345, "0.0001234", "0.0001235", "0.0001234"),
        (-math.inf, "-inf", "-inf", "-inf"),
        (-0.123456, "-0.1235", "-0.1234", "-0.1235"),
    ],
)
def test_known_numbers(value, low, high, near):
    assert (at_least(value), at_most(value), nearest(value)) == (low, high, near)


@settings(max_examples=60)
@given(st.floats(allow_nan=False), st.integers(1, 17))
def test_a_bound_in_words_is_a_bound(value, digits):
    low, high = at_least(value, digits), at_most(value, digits)
    exact = Decimal(repr(value))
    assert Decimal(low) <= exact <= Decimal(high)
    if 0 < abs(value) < math.inf:
        unit = Decimal(10) ** (exact.adjusted() + 1 - digits)
        assert max(exact - Decimal(low), Decimal(high) - exact) < unit
        assert Decimal(nearest(value, digits)) in (Decimal(low), Decimal(high))
    if digits == 17:
        assert float(low) == float(high) == value


@settings(max_examples=40)
@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_a_confidence_is_never_rounded_up_or_a_certainty(confidence):
    formatted = Decimal(percent(confidence).removesuffix("%")) / 100
    exact = Decimal(repr(confidence))
    assert formatted <= exact
    assert formatted < 1
    assert (1 - formatted) <= (1 - exact) * Decimal("1.001") + Decimal("1e-27")


def test_known_confidences():
    formatted = [percent(confidence) for confidence in (0.95, 0.999999, 1 - 1e-12, 0.5, 1 - 0.05 / 3)]
    assert formatted == ["95%", "99.9999%", "99.9999999999%", "50%", "98.333%"]


@FEW
@given(audits())
def test_the_verdict_follows_from_the_numbers_as_they_are_written(result):
    formatted = texts(result.summary())
    claim, measured = (result.claim.at(float(formatted[name])) for name in ("promised", "measured"))
    unbounded = result.support is not None
    if result.far_below_claim:  # nothing is announced, and a promise is still not refuted
        assert (formatted["detectable"], result.verdict) == ("not announced", "not refuted")
        assert float(formatted["measured"]) < float(formatted["promised"])
    else:
        assert verdict_of(claim, measured, float(formatted["detectable"]), unbounded) == result.verdict
        assert float(formatted["detectable"]) >= result.detectable
    assert float(formatted["measured"]) <= result.measured.budget
    assert float(formatted["ceiling"]) >= result.ceiling
    assert len(str(result).splitlines()) == 1
    assert f": {result.verdict}: promised " in str(result)
    assert f" minimum detectable loss {formatted['detectable']} (" in str(result)


@pytest.mark.parametrize(
    ("measured", "verdict", "formatted"),
    [
        (1.0, "not refuted", "1.000"),
        (1.00004, "violated", "1.00004"),  # with four digits it would stand beside a promise of 1 as 1.000
        (math.nextafter(1, 2), "violated", "1.0000000000000002"),
    ],
)
def test_a_number_is_on_the_side_of_the_promise_that_the_verdict_says(measured, verdict, formatted):
    assert texts(audited(measured=PureDP(measured), verdict=verdict).summary())["measured"] == formatted


def test_every_cell():
    broken = {
        "verdict": "violated",
        "support": {"order": "possible on x only", "probability": 0.25},
        "confidential": True,
        "notes": ("a warning", "another"),
    }
    result = audited(
        **broken,
        claim=ApproxDP(1, 1e-6, "replace_one"),
        measured=ApproxDP(0.87512, 1e-6, "replace_one"),
        relation="replace_one",
        distance=2,
        adjacency="declared",
    )
    assert ",".join(texts(result.summary("first")).values()) == (
        "first,count,epsilon,1,1e-06,replace_one,person,2,declared,0.8751,0.95,1.250,False,,5.500,violated,"
        "y if output[0] >= 13,entries,a warning; another,unbounded by the exact law: possible on x only, probability "
        "0.25,2000,601,1 person added to cell 0,42,CONFIDENTIAL"
    )
    formatted = row(result.summary("first"))
    assert list(formatted) == list(COLUMNS)
    assert {name: words for name, words in formatted.items() if words != texts(result.summary("first")).get(name)} == {
        "promised": "epsilon 1, delta 1e-06",
        "neighbors": "person replaced, the databases 2 steps apart (declared)",
        "confidence": "95%",
        "runs": "2000, 601 of them to choose the event",
    }
    assert str(result) == (
        "CONFIDENTIAL: count: violated: promised epsilon 1, delta 1e-06 (replace one), lower bound 0.8751 at 95% "
        "confidence from 2000 runs, minimum detectable loss 1.250 (on the caller's word, 1 person added to cell 0; "
        "y if output[0] >= 13; unbounded by the exact law: possible on x only, probability 0.25; searched: thresholds "
        "on output[0]; note: a warning; another)"
    )


FOUND = "May be missed (power below 0.8): a loss below {} in the counted event, met by 100% of the runs."
ELSE = FOUND.format("1.250").replace("the counted event, met by 100%", "another event that was counted, met by 25%")
NOTHING = {"detectable": math.inf, "verdict": "no power"}
NONE = "No loss is found with probability 0.8 by these runs"
FAR = (
    "Nothing near the promise was found: the bound is 1.0% of it. A loss elsewhere than in the counted event may be "
    "larger, so no minimum detectable loss is announced."
)
OTHER = {"counts": {"x": {"runs": 8, "guessed_y": 4}, "y": {"runs": 8}}, "basis": {"share": 0.05}}
RARE = (
    "May be missed (power below 0.8): a value, word or failure that only one database gives, if it occurs less than "
    "once in 1,340 runs. Others (scattered, new each time, of another type or in changing places) may occur more often "
    "and be missed."
)


@pytest.mark.parametrize(
    ("audit", "sentences"),
    [
        ({}, [FOUND.format("1.250")]),
        ({"rare": 1340.9}, [FOUND.format("1.250"), RARE]),
        ({"rare": 1.0}, [FOUND.format("1.250"), RARE.replace("less than once in 1,340 runs", "not in every run")]),
        ({"others": (OTHER,)}, [FOUND.format("1.250")]),
        ({"others": ({**OTHER, "basis": {"share": 0.05, "detects": True}},)}, [ELSE]),
        ({"measured": PureDP(0.01)}, [FAR]),
        (NOTHING, [f"{NONE}: they are too few for this event."]),
        (
            {**NOTHING, "ceiling": 0.5372, "distance": 20},
            [f"{NONE}: they prove at most 0.5372 (10.75 / 20), whatever they show."],
        ),
        ({"measured": PureDP(1.5), "verdict": "violated", "rare": 1340.9}, []),
    ],
)
def test_a_promise_that_is_not_refuted_says_what_it_could_have_hidden(audit, sentences):
    counts = {"x": {"runs": 700, "guessed_x": 400, "guessed_y": 300}, "y": {"runs": 700, "guessed_x": 700}}
    result = audited(**{"detectable": 1.25, "counts": counts} | audit)
    assert list(result.power) == sentences
    assert ("; power: " + " ".join(sentences) in str(result)) == bool(sentences)
    assert result.redact().power == ()
