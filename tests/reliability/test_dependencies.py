"""The default tests with other versions of what plaudit needs."""

from __future__ import annotations

import pytest

from tests.helpers import refuses
from tests.reliability.dependencies import counted, lowest, results

REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="good"/>
<testcase classname="tests.a" name="bad"><failure message="no"/></testcase>
<testcase classname="tests.a" name="broken"><error message="no"/></testcase>
<testcase classname="tests.a" name="left"><skipped message="no"/></testcase>
</testsuite></testsuites>"""


def test_the_lowest_versions_are_those_that_are_allowed():
    extras = {"census": ["duckdb>=2.0"], "dask": ["dask[distributed]>=2024.8"], "release": [], "dev": ["ruff>=0.6"]}
    project = {"dependencies": ["numpy>=2.0.1"], "optional-dependencies": extras}
    assert lowest(project) == ["numpy==2.0.1", "duckdb==2.0", "dask==2024.8"]


def test_a_report_is_counted(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    assert counted(tmp_path / "report.xml") == {
        "passed": 1,
        "failed": ["tests.a::bad", "tests.a::broken"],
        "skipped": 1,
    }


def test_no_tests_are_no_pass(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text("<testsuites/>")
    refuses(ValueError, f"tests must run, got none in {report}", counted, report)


@pytest.mark.slow
@pytest.mark.reliability(19)
@pytest.mark.parametrize("versions", ["lowest", "newest"])
def test_all_tests_pass_with(versions, record_property):
    found = results(versions, ["-q"])
    passed, skipped, installed = found["passed"], found["skipped"], found["installed"]
    named = ", ".join(f"{name} {installed[name]}" for name in ("numpy", "scipy", "scikit-learn"))
    record_property("tried", passed + len(found["failed"]))
    record_property(
        "words", f"{versions}: {passed:,} passed, {skipped} skipped, with {named} and {len(installed)} in all"
    )
    assert found["failed"] == []
