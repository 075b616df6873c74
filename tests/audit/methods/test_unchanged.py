"""What was shown to hold is what audits and plans say today."""

import json

import pytest

from tests.audit.audits import TIGHT
from tests.audit.methods.golden import FILE, TIES, golden_rows
from tests.helpers import in_full


@pytest.mark.parametrize("whole", in_full(False, True))  # .5 to 2 s, or 1 to 5 s: audits and plans of every design
@pytest.mark.parametrize("name", TIGHT)
def test_every_family_says_what_it_said(name, whole):
    golden, rows = json.loads(FILE.read_text("utf-8"))[name], golden_rows(name, whole)
    assert rows.keys() == golden.keys() if whole else 15 < len(rows) < len(golden)
    for question, row in rows.items():
        within = 2e-3 if question.endswith(TIES) else 1e-6
        wanted = golden[question] if whole else golden[question][: len(row)]
        close = [one if isinstance(one, str) else pytest.approx(one, rel=within, abs=1e-12) for one in wanted]
        assert row == close, question
