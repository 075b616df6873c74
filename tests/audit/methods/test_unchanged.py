"""What was shown to hold is what audits and plans say today."""

import json

import pytest

from tests.audit.audits import TIGHT
from tests.audit.methods.golden import FILE, TIES, golden_rows


@pytest.mark.parametrize("name", TIGHT)  # 2 to 10 s: audits and plans of every design
def test_every_family_says_what_it_said(name):
    golden, rows = json.loads(FILE.read_text("utf-8"))[name], golden_rows(name)
    assert rows.keys() == golden.keys()
    for question, row in rows.items():
        within = 2e-3 if question.endswith(TIES) else 1e-6
        close = [one if isinstance(one, str) else pytest.approx(one, rel=within, abs=1e-12) for one in golden[question]]
        assert row == close, question
