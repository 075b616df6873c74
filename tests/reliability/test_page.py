"""The page says what was measured, and what failed is said first."""

import re
from pathlib import Path
from xml.etree import ElementTree

from audit.results.files import read_json
from tests.helpers import most
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
    assert "\n\nIn 1 of 1 rows something failed. Not measured yet: row 1, row 2, row 3, row 4, row 5, row 7" in text
    assert f"| 1,501 | **1** |  | 1 | {row['measured']} |" in text
    assert "- failed: `tests.a::t[1]`\n- left out: `tests.a::t[2]` (no disk)\n- of two kinds" in text


def test_a_row_says_which_failures_would_have_shown():
    """None of 1,000 tries: a rate of 0.003 would have shown once with a probability of 1 - (1 - 0.003)^1000 = 0.95."""
    assert "| 1,000 | 0 | 1 in 334 |" in page({"6": of(({"tried": 1000}, ""))})  # kills are drawn at random
    assert "| 1,000 | 0 |  |" in page({"7": of(({"tried": 1000}, ""))})  # forgeries of a list are not
    assert "| 920 of 1,000 | 0 |" in page({"10": of(({"tried": 1000, "reached": 920}, ""))})
    found = {"tried": 20, "case": "a comb", "found": 20, "announced": 0.8}
    assert "| a comb | 20 | 20 | 83% to 100% | 80% |" in page({"4": of((found, ""))})
    missed = {"tried": 1000, "group": "A", "case": "a", "misses": 3}
    text = page({"1": of(*(({**missed, "confidence": level}, "") for level in (0.5, 0.95)))})
    assert f"| **may miss** | 1,000 | {most(1000, 0.5)} | 77 |" in text
    assert "| **smallest true rate that would have failed (95%)** | | 59% | 9.3% |" in text
    assert "| A: a | 1,000 | 3 | 3 |" in text


def test_what_tests_find_alike_is_put_together():
    cases = {"parity": 20, "tail": 17, "comb": 20}
    text = page({"3": of(*(({"tried": 20, "case": case, "found": number}, "") for case, number in cases.items()))})
    assert "| comb, parity | 20 | 20 | 83% to 100% |\n| tail | 20 | 17 | 62% to 97% |" in text


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
