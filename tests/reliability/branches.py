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
    """Return a data file of the default tests in branch mode: they are run where a module is younger than the data."""
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
    """Return by package ``tried``, its branches; ``taken``; ``least``, modules that miss the most, and how many."""
    coverage = Coverage(data_file=str(data), config_file=False)
    coverage.load()
    if not coverage.get_data().has_arcs():
        raise ValueError(f"data must be a file of branch coverage, got {data}")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        coverage.json_report(outfile=str(report), include=[f"{root / package}/*" for package in LEAST])
        files = json.loads(report.read_text("utf-8"))["files"]
    result = {}
    for package in LEAST:
        summaries = {root / name: file["summary"] for name, file in files.items()}
        summaries = {path: summary for path, summary in summaries.items() if (root / package) in path.parents}
        missed = {str(path.relative_to(root)): summary["missing_branches"] for path, summary in summaries.items()}
        result[package] = {
            "tried": sum(summary["num_branches"] for summary in summaries.values()),
            "taken": sum(summary["covered_branches"] for summary in summaries.values()),
            "least": dict(sorted(missed.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]),
        }
    return result


def main() -> int:
    branches = taken(Path(sys.argv[1]) if sys.argv[1:] else measured())
    for package, counts in branches.items():
        least = ", ".join(f"{name} {missed}" for name, missed in counts["least"].items())
        print(f"{package}: {counts['taken'] / counts['tried']:.1%} of {counts['tried']} branches; missed most: {least}")
    return int(any(counts["taken"] < LEAST[package] * counts["tried"] for package, counts in branches.items()))


if __name__ == "__main__":
    sys.exit(main())
