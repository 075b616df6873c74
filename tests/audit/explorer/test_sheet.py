"""What inputs of the explorer may hold, and what a state is."""

from pathlib import Path

import pytest

from audit.explorer.sheet import Input, Sheet
from audit.explorer.views import Explored
from tests.audit.explorer.settings import differing
from tests.helpers import refuses

LISTED = "up to 1000 whole numbers from 1 to 999999999, with blanks between"
NUMBER = Input(key="a/b/c/number", kind="number", value=1.0, least=0.5, most=2.0, label="x")
WHOLE = Input(key="a/b/c/whole", kind="integer", value=3, least=1, most=9, label="x", optional=True)
FLAG = Input(key="a/b/c/flag", kind="flag", value=True, label="x")
CHOICE = Input(key="a/all/all/preset", kind="choice", value="one", choices=("one", "two"), label="x")
CODES = Input(key="a/b/c/codes", kind="codes", value="01 02", choices=("01", "02", "03"), label="x")
NUMBERS = Input(key="a/b/c/numbers", kind="numbers", label="x", optional=True)
SHEET = Sheet(
    name="a",
    title="x",
    about=(),
    inputs=(NUMBER, WHOLE, FLAG, CHOICE, CODES),
    compute=lambda state: {"a/b/c/twice": 2 * state["a/b/c/number"]},
    script=("none", "none.js"),
    presets={"one": {}, "two": {"a/b/c/number": 1.5, "a/b/c/flag": False}},
)


def test_an_input_takes_what_fits():
    numbers = [(NUMBER, 2), (NUMBER, 0.5), (WHOLE, None), (WHOLE, 9), (NUMBERS, "7 900 7"), (NUMBERS, None)]
    for setting, value in [*numbers, (FLAG, False), (CHOICE, "two"), (CODES, "03")]:
        assert setting.check(value) == value


@pytest.mark.parametrize(
    ("one", "value", "rule"),
    [
        (NUMBER, 2.1, "a number from 0.5 to 2, got 2.1"),
        (NUMBER, float("nan"), "a number from 0.5 to 2, got nan"),
        (WHOLE, 2.0, "a whole number from 1 to 9, got 2.0"),
        (FLAG, 1, "true or false, got 1"),
        (CHOICE, "three", "one of one, two, got 'three'"),
        (CODES, "", "of the codes 01 02 03, each once, got ''"),
        (CODES, "01 01", "of the codes 01 02 03, each once, got '01 01'"),
        (NUMBERS, "0 5", f"{LISTED}, got '0 5'"),
        (NUMBERS, "1 " * 1000 + "1", f"{LISTED}, got '{'1 ' * 29}1"),
    ],
)
def test_an_input_refuses_what_does_not(one, value, rule):
    refuses(ValueError, f"{one.key} must be {rule}", one.check, value)


def test_a_state_is_as_published_where_nothing_is_given_in_the_preset_that_is():
    assert SHEET.checked({}) == SHEET.published
    state = SHEET.checked({"a/all/all/preset": "two", "a/b/c/flag": True})
    assert (state["a/b/c/number"], state["a/b/c/flag"], state["a/b/c/whole"]) == (1.5, True, 3)
    assert Explored(SHEET, {"a/b/c/number": 2.0}).results == {"a/b/c/twice": 4.0}


def test_a_state_names_inputs_and_what_is_opened_is_written():
    refuses(ValueError, "a has no input 'a/b/c/other'", SHEET.checked, {"a/b/c/other": 1})
    refuses(ValueError, "--open goes with --html FILE", Explored(SHEET).show, opened=True)


def test_a_page_is_opened_in_the_browser(tmp_path, monkeypatch):
    addresses = []
    monkeypatch.setattr("webbrowser.open", addresses.append)
    monkeypatch.setattr(Explored, "to_html", lambda self, path: Path(path).write_text("page"))
    Explored(SHEET).show(html=tmp_path / "out.html", opened=True)
    assert addresses == [(tmp_path / "out.html").as_uri()]


def test_the_comparison_of_numbers_can_fail():
    assert differing({"a": 1.0 + 5e-10, "b": 20, "c": None}, {"a": 1.0, "b": 20, "c": None}) == []
    for found, wanted in ((1.0 + 2e-9, 1.0), (21, 20), (20.0, 21), (None, 1.0), (1.0, None), ("a", "b")):
        assert differing({"a": found}, {"a": wanted}) == ["a"]
    with pytest.raises(AssertionError):
        differing({}, {"a": None})
