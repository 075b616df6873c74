"""The page says what was measured, tests that were measured are not run again, and what failed is said first."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from audit.results.files import read_json
from tests.helpers import most
from tests.reliability.__main__ import NUMBERS, PAGE, ROOT
from tests.reliability.numbers import added_up
from tests.reliability.page import page
from tests.reliability.plugin import collected, logged
from tests.reliability.rows import ROWS

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.reliability(6)
@pytest.mark.parametrize("n", [3, 4])
def test_kills(n, record_property):
    record_property("tried", n)
    record_property("words", f"{n} kills")
    assert n != 4

@pytest.mark.quick
@pytest.mark.reliability(6)
def test_few_kills():
    pass

@pytest.mark.reliability(7)
def test_signals():
    pass

@pytest.mark.reliability(8)
def test_disks():
    pytest.skip("no disk")

def test_else():
    assert False
"""


PLAIN = ("-pno:cacheprovider", "-pno:benchmark", "-pno:hypothesispytest")


@pytest.fixture
def measure(pytester):
    """Run the tests of rows 6 and 8 among a few, as the command does; return what became of them and the log."""
    pytester.makepyfile(test_rows=TESTS)
    pytester.makeini("[pytest]\nmarkers =\n  reliability(row)\n  quick\n")
    log = pytester.path / "log"
    options = [*PLAIN, "-p", "tests.reliability.plugin", "--reliability-log", log, "--reliability-rows", "6,8"]
    return lambda *more: (pytester.runpytest_inprocess(*options, *more), log)


@pytest.mark.parametrize("jobs", [[], ["-n", "1"]], ids=["one process", "xdist"])
def test_what_was_tried_is_written_down(measure, jobs):
    ran, log = measure(*jobs)
    ran.assert_outcomes(passed=1, failed=1, skipped=1, deselected=3 * (not jobs))
    outcomes = {line["test"].rpartition("::")[2]: line["outcome"] for line in logged(log)}
    assert outcomes == {"test_kills[3]": "passed", "test_kills[4]": "failed", "test_disks": "skipped"}
    names = rows_of(logged(log)) | {"test_rows.py::test_that_ended_its_process": 6}
    assert added_up(logged(log), names)["6"] == {
        "tests": 3,
        "tried": 8,
        "failed": ["test_rows.py::test_kills[4]", "test_rows.py::test_that_ended_its_process"],
        "left_out": {},
        "seconds": pytest.approx(0, abs=5),
        "measured": str(date.today()),
        "told": [{"tried": 3, "words": "3 kills"}, {"tried": 4, "words": "4 kills"}],
    }


def test_what_is_written_down_is_not_tried_again(measure, pytester):
    log = pytester.path / "log"
    log.write_text("".join(f'{{"test": "test_rows.py::test_kills[{n}]"}}\n' for n in (3, 4)) + '{"test": "cut by')
    ran, _ = measure()
    ran.assert_outcomes(skipped=1, deselected=5)


def rows_of(lines):
    return {line["test"]: line["row"] for line in lines}


def test_what_failed_is_said_first_and_by_name():
    line = {"outcome": "passed", "seconds": 1.0, "day": "2026-01-01", "told": {}}
    lines = [
        line | {"test": "a", "row": 6, "told": {"tried": 1500}},
        line | {"test": "b[1]", "row": 6, "outcome": "failed"},
        line | {"test": "c", "row": 8, "outcome": "skipped", "why": "no disk"},
        line | {"test": "m", "row": 14, "told": {"tried": 1000, "reached": 920}},
    ]
    rows = added_up(lines, rows_of(lines))
    text = page(rows)
    assert "\n\nIn 1 of 3 rows something failed. Not measured yet: rows 1, 2, 3, 4, 5, 7, 9" in text
    assert "| 1,501 | **1** |  | 2026-01-01 |" in text
    assert "| 920 of 1,000 | 0 |  | 2026-01-01 |" in text
    assert "- failed: `b[1]`" in text
    assert "- left out: `c` (no disk)" in text


def paged(row, *told):
    """Return the page of a row, of which each test told something."""
    line = {"outcome": "passed", "seconds": 1.0, "day": "2026-01-01", "row": row}
    lines = [line | {"test": str(number), "told": one} for number, one in enumerate(told)]
    return page(added_up(lines, rows_of(lines)))


def test_a_row_says_which_failures_would_have_shown():
    """None of 1,000 tries: a rate of 0.003 would have shown once with a probability of 1 - (1 - 0.003)^1000 = 0.95."""
    assert "| 1,000 | 0 | 1 in 334 | 2026-01-01 |" in paged(6, {"tried": 1000})  # kills are drawn at random
    assert "| 1,000 | 0 |  | 2026-01-01 |" in paged(8, {"tried": 1000})  # commands of a list are not
    told = {"tried": 20, "case": "a comb", "found": 20, "announced": 0.8}
    assert "| a comb | 20 | 20 | 83% to 100% | 80% |" in paged(4, told)
    text = paged(1, *({"tried": 1000, "group": "A", "case": "a", "confidence": c, "misses": 3} for c in (0.5, 0.95)))
    assert f"| **may miss** | 1,000 | {most(1000, 0.5)} | 77 |" in text
    assert "| **smallest true rate that would have failed (95%)** | | 59% | 9.3% |" in text
    assert "| A: a | 1,000 | 3 | 3 |" in text


def test_what_tests_count_alike_is_put_together():
    found = {"parity": 20, "tail": 17, "comb": 20}
    text = paged(3, *({"tried": 20, "case": case, "found": number} for case, number in found.items()))
    assert "| parity, comb | 20 | 20 | 83% to 100% |\n| tail | 20 | 17 | 62% to 97% |" in text
    told = {"audit": {"killed": 999, "done": 1}}, {"audit": {"killed": 1}, "report": {"killed": 2}}
    text = paged(7, *({"tried": 1, "counts": one} for one in told))
    assert "- audit: 1,001 (1 done, 1,000 killed)\n- report: 2 (2 killed)" in text


def test_rows_are_numbered_and_every_one_has_a_test():
    assert [row.number for row in ROWS] == list(range(1, len(ROWS) + 1))
    found = set()
    for path in Path(ROOT / "tests").rglob("*.py"):
        text = path.read_text("utf-8")
        found |= {row.number for row in ROWS if f"mark.reliability({row.number})" in text}
    assert {row.number for row in ROWS} == found


def test_the_page_is_what_the_numbers_say():
    saved = read_json(NUMBERS)
    assert saved["kind"] == "reliability"
    assert page(saved["rows"]) == PAGE.read_text("utf-8")
    assert [row["failed"] for row in saved["rows"].values() if row["failed"]] == []
    mutants = saved["rows"]["14"]
    assert sum(one["reached"] for one in mutants["told"]) >= 0.93 * mutants["tried"]  # of all folders together


@pytest.mark.slow
def test_every_row_was_measured_by_as_many_tests_as_it_has():
    numbers = read_json(NUMBERS)["rows"]
    measured = {int(number): row["tests"] + len(row["left_out"]) for number, row in numbers.items()}
    tests = Counter(collected([row.number for row in ROWS], ROOT).values())  # none of mutations without their library
    assert {row: measured.get(row, 0) for row in tests} == tests
