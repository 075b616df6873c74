"""Which branches the default tests take: ``python -m tests.reliability.branches [FILE]``, of data of branch coverage.

Without a file the default tests are run for it, unless nothing has changed since they were. Commands that they start
count too, and the tests of engines. What numba has compiled cannot be traced: tests of it run again without compiling.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from coverage import Coverage

ROOT = Path(__file__).resolve().parents[2]
LEAST = {"audit": 0.95, "algorithms": 0.90}
COMPILED, ENGINES = "tests/algorithms/topdown/estimation", "tests/engines"
SETTINGS = "[run]\nbranch = true\nsource = audit,algorithms\npatch = subprocess\n"
SHOWN = 10


def measured(data: Path = ROOT / "build" / "reliability" / "branches.coverage") -> Path:
    """Return data of the default tests, which are run where a module is younger than the data.

    Returns
    -------
    pathlib.Path
        A data file of coverage, in branch mode, of both packages.
    """
    modules = [path for folder in (*LEAST, "tests", "experiments") for path in (ROOT / folder).rglob("*.py")]
    if not data.exists() or data.stat().st_mtime < max(path.stat().st_mtime for path in modules):
        data.parent.mkdir(parents=True, exist_ok=True)
        data.unlink(missing_ok=True)
        settings = data.with_suffix(".ini")
        settings.write_text(SETTINGS)
        words = [sys.executable, "-m", "pytest", "-q", "--cov", f"--cov-config={settings}", "--cov-report="]
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        own["COVERAGE_FILE"] = str(data)
        try:
            subprocess.run(words, cwd=ROOT, env=own, check=True)
            subprocess.run([*words, "--cov-append", "-m", "slow", ENGINES], cwd=ROOT, env=own, check=True)
            own["NUMBA_DISABLE_JIT"] = "1"
            subprocess.run([*words, "--cov-append", COMPILED], cwd=ROOT, env=own, check=True)
        except BaseException:
            data.unlink(missing_ok=True)  # data of tests that failed are of no use to a later run
            raise
    return data


def taken(data: Path, root: Path = ROOT) -> dict[str, Any]:
    """Return how many branches there are, and how many were taken.

    Parameters
    ----------
    data : pathlib.Path
        What coverage measured in branch mode, of the sources as they stand now.
    root : pathlib.Path
        Where the packages are.

    Returns
    -------
    dict
        By package: ``tried``, branches that there are; ``taken``; ``least``, modules that miss the most, and how many.

    Raises
    ------
    ValueError
        If the data are not of branches.
    """
    found = Coverage(data_file=str(data), config_file=False)
    found.load()
    if not found.get_data().has_arcs():
        raise ValueError(f"data must be a file of branch coverage, got {data}")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        found.json_report(outfile=str(report), include=[f"{root / package}/*" for package in LEAST])
        files = json.loads(report.read_text("utf-8"))["files"]
    result = {}
    for package in LEAST:
        of = {name: file["summary"] for name, file in files.items() if (root / package) in (root / name).parents}
        missed = {str((root / name).relative_to(root)): one["missing_branches"] for name, one in of.items()}
        result[package] = {
            "tried": sum(one["num_branches"] for one in of.values()),
            "taken": sum(one["covered_branches"] for one in of.values()),
            "least": dict(sorted(missed.items(), key=lambda one: (-one[1], one[0]))[:SHOWN]),
        }
    return result


def main() -> int:
    found = taken(Path(sys.argv[1]) if sys.argv[1:] else measured())
    for package, one in found.items():
        least = ", ".join(f"{name} {missed}" for name, missed in one["least"].items())
        print(f"{package}: {one['taken'] / one['tried']:.1%} of {one['tried']} branches; missed most: {least}")
    return int(any(one["taken"] < LEAST[package] * one["tried"] for package, one in found.items()))


if __name__ == "__main__":
    sys.exit(main())
