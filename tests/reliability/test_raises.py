"""Which raise statements a run has reached: known truth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import refuses
from tests.reliability import branches
from tests.reliability.raises import raises, reached

SOURCE = '''
def checked(value):
    """Say "raise" in words."""
    if value > 2:
        raise ValueError(
            "too large"
        )
    try:
        return 1 / value
    except ZeroDivisionError:
        raise
'''
FIRST = "try: checked(3)\nexcept ValueError: pass"
BOTH = "for value in (3, 0):\n  try: checked(value)\n  except (ValueError, ZeroDivisionError): pass"


def measured(folder, calls, *options):
    """The data of a run of a program that calls one function."""
    (folder / "pack").mkdir()
    (folder / "pack" / "module.py").write_text(SOURCE)
    (folder / "pack" / "unused.py").write_text("def never():\n    raise KeyError\n")
    (folder / "run.py").write_text(f"from pack.module import checked\n{calls}\n")
    words = [sys.executable, "-m", "coverage", "run", "--data-file=data", "--source=pack", *options, "run.py"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "data"


@pytest.mark.parametrize(
    ("calls", "missed", "options"), [("checked(1)", [5, 11], []), (FIRST, [11], ["--branch"]), (BOTH, [], [])]
)
def test_what_a_run_has_not_reached_is_named(calls, missed, options, tmp_path):
    found = reached(measured(tmp_path, calls, *options), tmp_path, ["pack"])
    statements = {5: "raise ValueError('too large')", 11: "raise"}
    assert found["tried"] == 3
    assert found["failed"] == [
        *(f"pack/module.py:{line}: {statements[line]}" for line in missed),
        "pack/unused.py:2: raise KeyError",
    ]


def test_statements_are_found_wherever_they_stand():
    source = "class A:\n    async def f(self):\n        with x:\n            raise E from None\n# raise\n'raise'\n"
    assert list(raises(source)) == [(4, "raise E from None")]


def test_data_of_something_else_show_nothing(tmp_path):
    data = measured(tmp_path, BOTH)
    told = f"data must be of modules of other in {tmp_path}, got others in {data}"
    refuses(ValueError, told, reached, data, tmp_path, ["other"])
    refuses(ValueError, "data must be a file of coverage, got nowhere", reached, Path("nowhere"))


@pytest.mark.slow
@pytest.mark.reliability(16)
def test_the_default_tests_reach_every_refusal(record_property):
    for extra in ("pyspark", "ray"):
        pytest.importorskip(extra, reason=f"its refusals need {extra}")
    found = reached(branches.measured())
    record_property("tried", found["tried"])
    record_property("words", "not reached: " + ("; ".join(f"`{one}`" for one in found["failed"]) or "none"))
    assert found["failed"] == []
