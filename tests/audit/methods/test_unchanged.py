"""What was shown to hold is what audits and plans say today."""

from __future__ import annotations

import json

import pytest

from tests.audit.audits import TIGHT
from tests.audit.methods.said import KEPT, TIES, everything


@pytest.mark.parametrize("name", TIGHT)
def test_every_family_says_what_it_said(name):
    kept, said = json.loads(KEPT.read_text("utf-8"))[name], everything(name)
    assert said.keys() == kept.keys()
    for question, values in said.items():
        words = [one if isinstance(one, str) else "" for one in values]
        assert (question, words) == (question, [one if isinstance(one, str) else "" for one in kept[question]])
        numbers = [[one for one in told if not isinstance(one, str)] for told in (values, kept[question])]
        within = 2e-3 if question.endswith(TIES) else 1e-6
        assert numbers[0] == pytest.approx(numbers[1], rel=within, abs=1e-12), question
