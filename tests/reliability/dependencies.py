"""Run the default tests with other versions: ``python -m tests.reliability.dependencies lowest|newest [WORDS]``.

Makes a fresh environment in a temporary folder. The lowest versions are those that pyproject.toml allows of what
plaudit and its extras need; what that needs, and the tools of the tests, are left to pip. The newest are those of the
index. More words are for pytest.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("census", "dask", "release")  # those that the tests use


def lowest(project: dict[str, Any]) -> list[str]:
    """Return every direct dependency, those of the extras included, as ``name==lower bound``."""
    extras = project["optional-dependencies"]
    parts = (project["dependencies"], *(extras[name] for name in EXTRAS))
    requirements = [Requirement(one) for part in parts for one in part]
    return [f"{one.name}=={next(iter(one.specifier)).version}" for one in requirements]


def counted(report: Path) -> dict[str, Any]:
    """Return how many tests passed, which failed, and how many were skipped, by pytest's report in XML."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    if not cases:
        raise ValueError(f"tests must run, got none in {report}")
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {
        "passed": len(cases) - len(failed) - skipped,
        "failed": [f"{case.get('classname')}::{case.get('name')}" for case in failed],
        "skipped": skipped,
    }


def results(versions: Literal["lowest", "newest"], words: list[str]) -> dict[str, Any]:
    """Return what the default tests say in an environment of these versions, and the versions; `words` are pytest's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    with tempfile.TemporaryDirectory() as folder:
        python, constraints, report = (Path(folder) / name for name in ("bin/python", "versions.txt", "report.xml"))
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        constraints.write_text("\n".join(lowest(project) if versions == "lowest" else []), "utf-8")
        pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, "install", "--quiet", "--constraint", str(constraints), "--editable", f"{ROOT}[dev]"], check=True
        )
        frozen = subprocess.run([*pip, "freeze", "--exclude-editable"], check=True, capture_output=True, text=True)
        # Old versions of one package warn of new ones of another, which is nothing that plaudit does.
        old = ["-W", "ignore::DeprecationWarning"] if versions == "lowest" else []
        subprocess.run(
            [str(python), "-m", "pytest", *old, f"--junitxml={report}", "-o", "junit_family=xunit1", *words],
            cwd=ROOT,
            check=False,
        )
        return {
            **counted(report),
            "installed": dict(line.split("==") for line in frozen.stdout.split() if "==" in line),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the default tests with other versions of what plaudit needs.")
    parser.add_argument("versions", choices=["lowest", "newest"])
    options, words = parser.parse_known_args()
    counts = results(options.versions, words)
    print(f"{options.versions}: {counts['passed']} passed, {len(counts['failed'])} failed, {counts['skipped']} skipped")
    return int(bool(counts["failed"]))


if __name__ == "__main__":
    sys.exit(main())
