"""The page says what was measured, and what failed is said first."""

import re
from pathlib import Path
from xml.etree import ElementTree

from audit.results.files import read_json
from tests.reliability.__main__ import NUMBERS, PAGE, ROOT, ROWS, added_up, page

CASE = '<testcase classname="tests.a" name="{name}" time="1.5"><properties>{properties}</properties>{end}</testcase>'


def of(*cases):
    """What is added up of tests, each with its properties and how it ended."""
    texts = []
    for number, (told, end) in enumerate(cases):
        properties = "".join(f'<property name="{name}" value="{value}"/>' for name, value in told.items())
        texts.append(CASE.format(name=f"t[{number}]", properties=properties, end=end))
    return added_up(ElementTree.fromstring(f"<all>{''.join(texts)}</all>").iter("testcase"))


def test_what_failed_is_said_first_and_by_name():
    row = of(({"tried": 1500, "words": "of two kinds"}, ""), ({}, "<failure/>"), ({}, '<skipped message="no disk"/>'))
    text = page({"6": row})
    assert "\n\nIn 1 of 1 rows something failed. Not measured yet: row 1, row 3, row 4, row 5, row 7" in text
    assert f"| 1,501 | **1** |  | 1 | {row['measured']} |" in text
    assert "- failed: `tests.a::t[1]`\n- left out: 1 tests (no disk)\n- of two kinds" in text


def test_a_module_that_cannot_be_read_has_failed_and_one_that_needs_an_extra_has_not():
    case = '<testcase classname="" name="tests.b"><{end}/></testcase>'
    assert added_up([ElementTree.fromstring(case.format(end="error"))])["failed"] == ["::tests.b"]
    assert added_up([ElementTree.fromstring(case.format(end="skipped"))])["left_out"] == {}


def test_every_row_has_a_test_and_every_mark_a_row():
    marks = {number for path in Path(ROOT / "tests").rglob("test_*.py")
             for number in re.findall(r"mark\.reliability\(row=(\d+)\)", path.read_text("utf-8"))}  # fmt: skip
    assert marks == {*ROWS}


def test_the_page_is_what_the_numbers_say():
    saved = read_json(NUMBERS)
    assert saved["kind"] == "reliability"
    assert page(saved["rows"]) == PAGE.read_text("utf-8")
    assert [row["failed"] for row in saved["rows"].values() if row["failed"]] == []
    mutants = saved["rows"]["10"]
    assert sum(one["reached"] for one in mutants["told"]) >= 0.93 * mutants["tried"]
