"""Run the quick tests with the lowest versions that pyproject.toml allows: ``python -m tests.lowest [FOR PYTEST ...]``.

Makes a fresh environment in a temporary folder. Direct dependencies are taken at their lower bounds, what those need is
left to pip. Exits with the code of pytest.
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
    """Return every direct dependency, those of extras for development included, as ``name==lower bound``."""
    extras = project["optional-dependencies"]
    given = [*project["dependencies"], *(one for name in ("census", "release", "dask", "dev") for one in extras[name])]
    requirements = [Requirement(one) for one in given if not one.startswith("plaudit[")]
    return [f"{one.name}=={next(iter(one.specifier)).version}" for one in requirements]


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as folder:
        python, constraints = Path(folder) / "bin/python", Path(folder) / "lowest.txt"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        constraints.write_text("\n".join(lowest(project)))
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run([*pip, "--constraint", str(constraints), "--editable", f"{ROOT}[dev]"], check=True)
        return subprocess.run([str(python), "-m", "pytest", *sys.argv[1:]], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
