"""Branches that the default tests take, and refusals that none reaches: ``python -m tests.reliability.branches``.

Commands that tests start count too, and the tests of engines. What numba has compiled cannot be traced: tests of it run
again without compiling.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).resolve().parents[2]
LEAST = {"audit": 0.95, "algorithms": 0.90}
SETTINGS = "[run]\nbranch = true\nsource = audit,algorithms\npatch = subprocess\n"
COMPILED, ENGINES = "tests/algorithms/topdown/estimation", "tests/engines"


def measured() -> Path:
    """Return a data file of the default tests in branch mode."""
    data = ROOT / "build" / "branches.coverage"
    data.parent.mkdir(parents=True, exist_ok=True)
    data.unlink(missing_ok=True)
    settings = data.with_suffix(".ini")
    settings.write_text(SETTINGS)
    words = [sys.executable, "-m", "pytest", "-q", "--numprocesses", "2"]
    words += ["--cov", f"--cov-config={settings}", "--cov-report="]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own["COVERAGE_FILE"] = str(data)
    subprocess.run(words, cwd=ROOT, env=own, check=True)
    subprocess.run([*words, "--cov-append", "-m", "slow", ENGINES], cwd=ROOT, env=own, check=True)
    subprocess.run([*words, "--cov-append", COMPILED], cwd=ROOT, env={**own, "NUMBA_DISABLE_JIT": "1"}, check=True)
    return data


def main() -> int:
    coverage = Coverage(data_file=str(measured()), config_file=False)
    coverage.load()
    report, missed = ROOT / "build" / "branches.json", []
    coverage.json_report(outfile=str(report), include=[f"{ROOT / package}/*" for package in LEAST])
    files = json.loads(report.read_text("utf-8"))["files"]
    for package, least in LEAST.items():
        summaries = {name: one["summary"] for name, one in files.items() if name.startswith(f"{package}/")}
        tried = sum(one["num_branches"] for one in summaries.values())
        covered = sum(one["covered_branches"] for one in summaries.values())
        print(f"{package}: {covered / tried:.1%} of {tried} branches")
        missed += [package] if covered < least * tried else []
    for name, one in files.items():
        for node in ast.walk(ast.parse((ROOT / name).read_text("utf-8"))):
            if isinstance(node, ast.Raise) and node.lineno in one["missing_lines"]:
                missed.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    print("refusals that no test reaches:", *missed or ["none"], sep="\n")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
