"""One source of formulas: every number of the page in Chromium is that of Python, at random settings of every sheet."""

from __future__ import annotations

import numpy as np
import pytest

from tests.audit.explorer.settings import TAKEN, differing, random_state

pytestmark = pytest.mark.slow
SETTINGS, BATCH = 2_000, 25


def test_every_number_is_that_of_python(open_page, all_sheets, record_property):
    each = -(-SETTINGS // len(all_sheets))
    page, seen = open_page()
    tried = numbers = drawn = 0
    for place, (name, sheet) in enumerate(all_sheets.items()):
        rng = np.random.default_rng(20260 + place)
        states = [sheet.checked({"phsafe/all/all/preset": "pr"} if name == "phsafe" else {}), sheet.published]
        states += [random_state(sheet, rng) for _ in range(each - len(states))]
        for first in range(0, len(states), BATCH):
            batch = states[first : first + BATCH]
            for state, (left, cells, results) in zip(batch, page.evaluate(TAKEN, [name, batch]), strict=True):
                assert left == []
                wanted = sheet.compute(state)
                assert differing(results, wanted) == [], state
                for key, value in cells:  # what stands in the page is what was computed, with all digits
                    result = results[key]
                    text = isinstance(result, str)
                    assert value == "" if result is None else (value if text else float(value)) == result, key
                tried, numbers, drawn = tried + 1, numbers + len(results), drawn + len(cells)
    record_property("tried", tried)
    print(f"\n{tried} settings of {len(all_sheets)} sheets: {numbers:,} numbers computed, {drawn:,} cells shown")
    assert tried >= SETTINGS
    assert seen == []
