"""Audits as values: what they say, what they keep when saved, what they hide, what they refuse when read."""

import json
import math
from dataclasses import MISSING, FrozenInstanceError, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.claims import ZCDP, ApproxDP, PureDP
from audit.replay import Replay
from audit.results import AuditResult, LossEstimate, ReplayRecord, verdict_of
from tests.audit.results.strategies import FAMILIES, FEW, JSON, audits, estimates
from tests.helpers import audited, estimated, refused_like, replayed

APPROXIMATE = audited(claim=ApproxDP(1.0, 1e-6), measured=ApproxDP(0.5, 1e-6)).to_dict()


def refuse(constant):
    raise AssertionError(f"{constant} is not strict JSON")


def through_json(values):
    return json.loads(json.dumps(values, allow_nan=False), parse_constant=refuse)


def same(first, second):
    return all(np.array_equal(getattr(first, f.name), getattr(second, f.name)) for f in fields(first))


# What numbers say of a promise

ABOVE_1, ABOVE_2 = math.nextafter(1, 2), math.nextafter(2, 3)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize(
    ("promised", "measured", "detectable", "unbounded", "verdict"),
    [
        (1.0, 0.5, 1.5, False, "not refuted"),
        (1.0, 1.0, 1.5, False, "not refuted"),  # exactly what is promised
        (1.0, 1.0, 2.0, False, "not refuted"),  # exactly twice the promise would have been seen
        (1.0, 1.0, ABOVE_2, False, "no power"),
        (1.0, ABOVE_1, math.inf, False, "violated"),  # what was seen needs no power
        (1.0, 0.0, math.inf, True, "violated"),
        (0.0, 0.0, 0.0, False, "not refuted"),
        (0.0, 5e-324, 0.0, False, "violated"),
        (math.inf, math.inf, math.inf, False, "not refuted"),
    ],
)
def test_verdicts(family, promised, measured, detectable, unbounded, verdict):
    assert verdict_of(family(promised), family(measured), detectable, unbounded) == verdict
    by_hand = family(promised, "replace_one"), family(measured, "replace_one")
    assert verdict_of(*by_hand, detectable, unbounded) == verdict


def test_a_promise_is_not_held_against_a_loss_under_another_relation():
    with pytest.raises(ValueError, match="claims under replace_one and add_remove have no order"):
        verdict_of(PureDP(1.0), PureDP(2.0, "replace_one"), 1.5)


@pytest.mark.parametrize("promised", FAMILIES)
@pytest.mark.parametrize("measured", FAMILIES)
def test_a_bound_on_one_parameter_is_none_on_another(promised, measured):
    """A mu of 1 is no rho of 1/2: discrete Gaussian noise keeps the one promise and not the other."""
    claim, found = FAMILIES[promised](0.5), FAMILIES[measured](1.0)
    if promised == measured:
        assert verdict_of(claim, found, 0.6) == "violated"
        return
    with refused_like(TypeError, "a bound on one parameter is no bound on another"):
        verdict_of(claim, found, 0.6)
    values = audited(claim=claim, measured=found, verdict="violated").to_dict()
    kinds = f"{type(claim).__name__} and {type(found).__name__}"
    with refused_like(ValueError, f"claim and measured must be of one family, got {kinds}"):
        AuditResult.from_dict(values)


def test_without_a_witness_or_a_pair_nothing_is_said_of_one():
    assert audited().witness == ""
    assert "(y if output[0] >= 13; searched: " in str(audited(pair=""))


@pytest.mark.parametrize(
    ("changes", "design"),
    [
        ({}, "coins"),
        ({"bound": "one-run guessing game"}, "one_run"),
        ({"provenance": {"parameters": {"runs_x": 700, "runs_y": 699}}}, "outputs"),
        ({"mechanism": "given outputs", "adjacency": "declared"}, "coins"),  # somebody's name of a mechanism
    ],
)
def test_how_the_runs_were_made(changes, design):
    result = audited(**changes)
    assert result.design == result.redact().design == design


def test_the_line_of_an_estimate_says_what_it_is():
    assert str(estimated()) == ("estimate, no bound: largest |loss| 0.5 [0.25, inf] by lag_tail from 500 x 9 residuals")
    assert estimated().maximum == 3
    assert "verdict" not in {f.name for f in fields(LossEstimate)}


def test_results_are_frozen_and_what_they_hand_out_is_a_copy():
    result, estimate = audited(), estimated()
    for one in (result, estimate):
        with pytest.raises(FrozenInstanceError):
            one.confidence = 1.0
    result.to_dict()["counts"]["x"]["runs"] = result.to_dict()["provenance"]["parameters"]["size"] = 0
    assert result.to_dict() == audited().to_dict()
    estimate.to_dict()["settings"]["starts"].append(3)
    assert estimate.settings["starts"] == [0, 1, 2]


# Saved and read again


@FEW
@given(audits())
def test_an_audit_survives_strict_json(result):
    again = AuditResult.from_dict(through_json(result.to_dict()))
    assert same(again, result)
    assert again.to_dict() == result.to_dict()


@FEW
@given(estimates())
def test_an_estimate_survives_strict_json(estimate):
    again = LossEstimate.from_dict(through_json(estimate.to_dict()))
    for f in fields(estimate):
        np.testing.assert_array_equal(getattr(again, f.name), getattr(estimate, f.name))  # NaN where NaN was
    assert all(getattr(again, name).dtype == float for name in ("at", "loss", "low", "high"))
    assert again.to_dict() == estimate.to_dict()
    values = through_json(estimated(value=math.nan, interval=(math.nan, -math.inf)).to_dict())
    assert (values["value"], values["interval"]) == (None, [None, "-inf"])


# What is hidden

HIDDEN = {"mechanism", "event", "counts", "pair", "searched", "support", "seed_entropy", "provenance", "basis"}
HIDDEN |= {"confidential", "attack", "tried", "notes"}


def test_a_redacted_audit_says_that_it_is():
    """That it holds no true count: `tests.reliability.test_canaries`."""
    redacted = audited(verdict="violated", support={"order": "possible on x only", "probability": 0.25}).redact()
    assert redacted.mechanism == redacted.event == redacted.pair == redacted.searched == "redacted"
    assert (redacted.support, redacted.witness) == ({"order": "redacted"}, "; unbounded by the exact law")
    assert (redacted.seed_entropy, redacted.provenance) == (None, {"python": "3.11", "parameters": {}})


@FEW
@given(audits())
def test_redaction_hides_nothing_else_and_can_be_saved(result):
    redacted = result.redact()
    for f in fields(result):
        if f.name not in HIDDEN:
            assert getattr(redacted, f.name) == getattr(result, f.name)
    assert (redacted.support is None) == (result.support is None)
    assert same(AuditResult.from_dict(through_json(redacted.to_dict())), redacted)
    assert same(redacted.redact(), redacted)


# What is refused


@pytest.mark.parametrize("made", [audited(), estimated()], ids=["audit", "estimate"])
def test_every_field_must_be_there_and_no_other(made):
    values = made.to_dict()
    later = {one.name for one in fields(AuditResult) if (one.default, one.default_factory) != (MISSING, MISSING)}
    assert len(later) == 7
    for name in values.keys() - {"kind", *later}:  # which earlier files lack
        with pytest.raises(ValueError, match=rf"fields are missing or unknown: {name}$"):
            type(made).from_dict({key: value for key, value in values.items() if key != name})
    with pytest.raises(ValueError, match=r"fields are missing or unknown: certified, proof$"):
        type(made).from_dict({**values, "proof": 1, "certified": True})


@pytest.mark.parametrize(("kind", "made"), [("audit", AuditResult), ("estimate", LossEstimate)])
@pytest.mark.parametrize("values", [{"kind": "experiment"}, {}, [1]])
def test_other_kinds_are_refused(kind, made, values):
    with refused_like(ValueError, f"kind must be '{kind}', got "):
        made.from_dict(values)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"notes": "one"}, "notes must be a list, got 'one'"),
        ({"tried": [1]}, r"tried must be tuple\[str, \.\.\.\], got \(1,\)"),
        ({"claim": 1.0}, "a claim has the keys"),
        ({"claim": {"kind": "pure", "epsilon": 1.0, "relation": "replace_one"}}, "must have one relation and delta"),
        (APPROXIMATE | {"measured": ApproxDP(0.5, 0.0).to_dict()}, "must have one relation and delta, got"),
        ({"distance": 0}, "distance must be a whole number from 1 to 9007199254740991, got 0"),
        ({"confidence": 7}, "confidence must be a number from 0 to 1, got 7"),
        ({"confidence": 1}, r"confidence must be in \(0, 1\), got 1"),
        ({"adjacency": "computed"}, r"adjacency must be Literal\['verified', 'declared'\], got 'computed'"),
        ({"detectable": math.nan}, "detectable must be a number of 0 or more, got nan"),
        ({"basis": {"weights": [1.0, "0.5"]}}, r"weights must be list\[int \| float\], got \[1.0, '0.5'\]"),
        ({"basis": {"shortfalls": [0.0, 1e300]}}, "shortfalls must be a number from 0 to 9007199254740991"),
        ({"provenance": {"parameters": []}}, "parameters must be dict"),
        ({"basis": {"toward": "z"}}, r"toward must be Literal\['x', 'y'\], got 'z'"),
        ({"relation": "replace_one"}, "the claim must be under replace_one, as the pair, got add_remove"),
        ({"support": {"order": "x", "probability": 0}}, "support must be an order in words and a probability"),
        ({"others": [{"event": "z"}]}, "each of others must have attack, basis, counts, measured, notes"),
        ({"counts": {"x": {"runs": 1}}}, "counts must be of x and of y, got 'x'"),
        ({"counts": {"x": {"runs": 1, "guessed_x": 2}, "y": {"runs": 1}}}, "counts on x must be parts of its runs"),
    ],
)
def test_audits_of_wrong_types_are_refused(changes, words):
    with refused_like(ValueError, words):
        AuditResult.from_dict({**audited().to_dict(), **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"at": "0, 1, 2"}, "at must be a list, got '0, 1, 2'"),
        ({"loss": [0.5, "nan", 1.0]}, "a field of the estimate has the wrong type: 'nan' is no number"),
        ({"high": [0.5, 1.0]}, r"at, loss, low, high must be of one length, got \[2, 3\]"),
        ({"interval": [0.5]}, r"interval must be tuple\[float, float\], got \(0.5,\)"),
        ({"size": 1.0}, "size must be a whole number from 1 to 9007199254740991, got 1.0"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0"),
    ],
)
def test_estimates_of_wrong_types_are_refused(changes, words):
    with refused_like(ValueError, words):
        LossEstimate.from_dict({**estimated().to_dict(), **changes})


@given(st.data())
def test_whatever_a_field_holds_it_is_read_back_or_refused(data):
    for made in (audited(), estimated()):
        values = made.to_dict()
        name = data.draw(st.sampled_from(sorted(values)))
        values[name] = data.draw(JSON)
        try:
            again = type(made).from_dict(values)
        except ValueError:
            continue
        assert type(made).from_dict(through_json(again.to_dict())).to_dict() == again.to_dict()
        assert str(again)


@pytest.mark.parametrize(
    ("honest", "lie"),
    [
        ({"measured": PureDP(1.5), "verdict": "violated"}, {"verdict": "not refuted"}),
        ({"support": {"order": "possible on x only", "probability": 0.5}, "verdict": "violated"}, {"support": None}),
        ({"detectable": 3.0, "verdict": "no power"}, {"verdict": "not refuted"}),
        ({}, {"verdict": "violated"}),
        ({}, {"detectable": 3.0}),
    ],
)
def test_a_verdict_must_follow_from_the_numbers(honest, lie):
    values = audited(**honest).to_dict()
    assert AuditResult.from_dict(values).to_dict() == values
    with pytest.raises(ValueError, match="the verdict must follow from the numbers: "):
        AuditResult.from_dict({**values, **lie})


# Replays


VIOLATION = {"kind": "output", "sentence": "entry (0,) of the output is 1 on x and 2 on y"}


@given(
    st.text(),
    st.none() | st.floats(0, math.inf).map(ZCDP),
    st.lists(st.fixed_dictionaries({"kind": st.text(), "sentence": st.text()}), max_size=2),
    st.lists(st.text(), max_size=2),
    st.booleans(),
)
def test_a_record_is_read_as_it_was_written(words, claim, violations, notes, evaluated):
    record = replayed(pair=words, claim=claim, violations=tuple(violations), notes=tuple(notes), evaluated=evaluated)
    again = Replay.from_dict(json.loads(json.dumps(record.to_dict(), allow_nan=False)))
    assert type(again) is ReplayRecord  # a file has no queries that could be asked again
    assert again.to_dict() == record.to_dict()
    assert (str(again), again.verdict) == (str(record), record.verdict)
    assert again.verdict == ("violated" if violations else "not refuted" if evaluated else "no power")
    assert str(again).isprintable()


def test_one_line_says_the_first_violation_or_how_much_was_replayed():
    record = replayed()
    assert str(record).endswith(", promised epsilon 1 (add/remove): not refuted: 1 query replayed; one run only")
    twice = replace(record, violations=(VIOLATION, VIOLATION), claim=None, confidential=True)
    assert str(twice) == (
        "CONFIDENTIAL: GDPC, 1 person added to cell 0, nothing promised (add/remove): violated: "
        "output: entry (0,) of the output is 1 on x and 2 on y (and 1 more); 1 note"
    )


@pytest.mark.reliability(row=7)
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "audit"}, "kind must be 'replay', got 'audit'"),
        ({"more": 1}, "replay fields are missing or unknown: more"),
        ({"size": "2"}, "size must be int, got '2'"),
        ({"claim": {"kind": "none"}}, "none"),
        ({"seconds": None}, "None is no number"),
        ({"violations": [{"kind": "output"}]}, "a violation must have kind and sentence"),
        ({"violations": [VIOLATION]}, "the verdict must follow from the violations: 'violated', got 'not refuted'"),
        ({"verdict": "violated"}, "the verdict must follow from the violations: 'not refuted', got 'violated'"),
    ],
)
def test_a_forged_record_is_refused(changed, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        ReplayRecord.from_dict(replayed().to_dict() | changed)
