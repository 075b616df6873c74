"""Run the quick tests with the lowest versions that pyproject.toml allows: ``python -m tests.lowest [FOR PYTEST ...]``.

Makes a fresh environment in a temporary folder. What plaudit and its extras need is taken at its lower bounds; what
that needs, and the tools of the tests, are left to pip. Exits with the code of pytest.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


def lowest(project: dict) -> list[str]:
    """Return every direct dependency, those of the extras that the tests use included, as ``name==lower bound``."""
    extras = project["optional-dependencies"]
    requirements = [
        Requirement(one)
        for part in (project["dependencies"], *(extras[name] for name in ("census", "dask", "release")))
        for one in part
    ]
    return [f"{one.name}=={next(iter(one.specifier)).version}" for one in requirements]


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as folder:
        python, constraints = Path(folder) / "bin/python", Path(folder) / "lowest.txt"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        constraints.write_text("\n".join(lowest(project)))
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run([*pip, "--constraint", str(constraints), "--editable", f"{ROOT}[dev]"], check=True)
        # Old versions of one package warn of new ones of another, which is nothing that plaudit does.
        command = [str(python), "-m", "pytest", "-W", "ignore::DeprecationWarning", *sys.argv[1:]]
        return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
