"""What a file keeps of a replay: whole, or refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.claims import ZCDP
from audit.replay import Replay
from audit.results import ReplayRecord
from tests.helpers import replayed

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
