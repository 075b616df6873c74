"""Branches of two packages of a few lines, and those of the default tests."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers import refuses
from tests.reliability.branches import LEAST, measured, taken

SOURCES = {
    "audit/sign.py": "def sign(n):\n    if n < 0:\n        return -1\n    return 1\n",
    "audit/unused.py": "def loop(n):\n    while n:\n        n -= 1\n",
    "algorithms/half.py": "def half(n):\n    for _ in range(n):\n        pass\n    return n // 2\n",
    "run.py": "from audit.sign import sign\nfrom algorithms.half import half\n\nsign(half(4))\n",
}


def coverage_of(root, *options):
    for name, text in SOURCES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    for package in LEAST:
        (root / package / "__init__.py").touch()
    words = ["-m", "coverage", "run", "--data-file=data", "--source=audit,algorithms", *options, "run.py"]
    subprocess.run([sys.executable, *words], cwd=root, check=True)
    return root / "data"


def test_branches_are_counted_by_package(tmp_path):
    """An if that was never true, a loop that was entered and left, and a module that nobody imports."""
    found = taken(coverage_of(tmp_path, "--branch"), tmp_path)
    assert (found["audit"]["tried"], found["audit"]["taken"]) == (4, 1)
    assert found["audit"]["least"] == {"audit/unused.py": 2, "audit/sign.py": 1, "audit/__init__.py": 0}
    assert (found["algorithms"]["tried"], found["algorithms"]["taken"]) == (2, 2)


def test_lines_are_no_branches(tmp_path):
    data = coverage_of(tmp_path)
    refuses(ValueError, f"data must be a file of branch coverage, got {data}", taken, data, tmp_path)


@pytest.mark.slow
@pytest.mark.reliability(15)
def test_the_default_tests_take_most_branches(record_property):
    found = taken(measured())
    words = []
    for package, one in found.items():
        least = ", ".join(f"{name} ({missed})" for name, missed in one["least"].items())
        words.append(f"{package}: {one['taken']:,} of {one['tried']:,} branches, missed most in {least}")
    record_property("words", "; ".join(words))
    record_property("tried", sum(one["tried"] for one in found.values()))
    record_property("reached", sum(one["taken"] for one in found.values()))
    assert all(one["taken"] >= LEAST[package] * one["tried"] for package, one in found.items())
