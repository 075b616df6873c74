"""One source of formulas: every number of the page in Chromium is that of Python, at random settings of every sheet."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.phsafe.table10 import printed_table
from tests.audit.explorer.settings import random_state

pytestmark = pytest.mark.slow
SETTINGS, CLOSE, BATCH = 2_000, 1e-9, 25
TAKEN = """([sheet, states]) => {
    if (explorer.open !== sheet) explorer.turn(sheet);
    const described = book.sheets.find(one => one.name === sheet);
    return states.map(state => {
        const left = explorer.take(state, store.state);
        const cells = [...document.querySelectorAll(`[data-of="${sheet}"] [data-cell]`)]
            .map(e => [e.dataset.cell, e.dataset.value]);
        return [left, cells, sheets[sheet].compute(store.ofSheet(sheet, store.state), described.data)];
    });
}"""


def differences(shown, wanted):
    """What is not the same: numbers within a relative 1e-9, whole ones and all else exactly."""
    for key in shown.keys() | wanted.keys():
        got, truth = shown.get(key, "absent"), wanted.get(key, "absent")
        whole = isinstance(truth, int | str | None) or isinstance(got, str | None)
        if got != truth if whole else not abs(got - truth) <= CLOSE * abs(truth):
            yield key, got, truth


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
                assert list(differences(results, wanted)) == [], state
                for key, value in cells:  # what stands in the page is what was computed, with all digits
                    result = results[key]
                    text = isinstance(result, str)
                    assert value == "" if result is None else (value if text else float(value)) == result, key
                tried, numbers, drawn = tried + 1, numbers + len(results), drawn + len(cells)
    record_property("tried", tried)
    print(f"\n{tried} settings of {len(all_sheets)} sheets: {numbers:,} numbers computed, {drawn:,} cells shown")
    assert tried >= SETTINGS
    assert seen == []


def test_the_comparison_can_fail():
    assert list(differences({"a": 1.0, "b": 20, "c": None}, {"a": 1.0 + 5e-10, "b": 20, "c": None})) == []
    assert list(differences({"a": 1.0}, {"a": 1.0 + 2e-9}))
    assert list(differences({"a": 20}, {"a": 21}))
    assert list(differences({"a": None}, {"a": 1.0}))
    assert list(differences({}, {"a": None}))


def test_table_10_stands_in_the_page(open_page):
    page, _ = open_page("#phsafe")
    rows = printed_table()
    assert len(rows) == 46
    for row in rows:
        place = f"phsafe/{row['table']}/{row['level']}"
        printed = row["unbounded"].rstrip("0")  # 0.006630 in one row, 0.00117 in another
        assert page.locator(f'[data-input="{place}/rho"]').input_value() == printed
        assert page.locator(f'[data-cell="{place}/rho"]').text_content() == printed
        assert page.locator(f'[data-input="{place}/margin"]').input_value() == str(row["target"])
        assert page.locator(f'[data-input="{place}/on"]').is_checked()
    wanted = {
        "rho": "1.257281",
        "bounded_rho": "2.514562",
        "epsilon_simple": "12.018",
        "bounded_epsilon_simple": "17.733",
    }
    wanted |= {"epsilon_tight": "11.412", "bounded_epsilon_tight": "16.980"}
    wanted |= {"epsilon_gaussian": "10.944", "bounded_epsilon_gaussian": "16.308"}
    for name, text in wanted.items():
        assert page.locator(f'[data-cell="phsafe/total/all/{name}"]').inner_text() == text
