"""The wheel in a fresh environment: the core alone audits, what needs an extra says which, recipes run as printed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import blocks

ROOT = Path(__file__).resolve().parent.parent
OWN = "def noisy(data, size, rng):\n    return data + rng.laplace(size=(size, data.size))\n"
MOST_MEGABYTES = 420
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


pytestmark = pytest.mark.slow


class Environment:
    """A fresh environment with the wheel of this checkout and its core dependencies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run(sys.executable, "-m", "venv", "fresh")
        self.empty = self.bytes()
        self.run("python", *PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
        (self.wheel,) = folder.glob("plaudit-*.whl")
        self.run("python", *PIP, "install", "--constraint", ROOT / "constraints.txt", self.wheel)

    def run(self, *command: object, code: int = 0, folder: Path | None = None, **settings: str) -> str:
        """Return what a command prints."""
        path = os.pathsep.join([str(self.folder / "fresh/bin"), os.environ["PATH"]])
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"PATH": path, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")} | settings
        words, where = list(map(str, command)), folder or self.folder
        words[0] = shutil.which(words[0], path=path) or words[0]
        done = subprocess.run(words, cwd=where, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def bytes(self) -> int:
        return sum(file.stat().st_size for file in (self.folder / "fresh").rglob("*") if file.is_file())


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("alone"))


def test_the_core_alone_audits_and_names_the_extra_that_a_system_needs(fresh, capsys):
    (fresh.folder / "own.py").write_text(OWN)
    (fresh.folder / "counts.csv").write_text("120\n75\n")
    audit = ("audit", "own:noisy", "--data", "counts.csv", "--claim", "pure:1", "--size", 2000, "--seed", 1)
    assert fresh.run("plaudit", "--version").startswith("plaudit ")
    assert "own:noisy" in fresh.run("plaudit", *audit)
    assert "rdpc" in fresh.run("plaudit", "audit", "gdpc", "rdpc", "--size", 2000, "--seed", 1)
    needed = "topdown needs the extra census: pip install 'plaudit[census]'\n"
    assert fresh.run("plaudit", "release", "topdown", code=2) == f"plaudit: error: {needed}"
    in_python = "from algorithms.systems import systems; systems()['topdown'].mechanism()"
    assert fresh.run("python", "-c", in_python, code=1).endswith(f"ImportError: {needed}")

    size = fresh.bytes() - fresh.empty
    with capsys.disabled():
        print(f"\nthe core alone takes {size / 1e6:.0f} MB, beside {fresh.empty / 1e6:.0f} MB of an empty environment")
    assert size <= MOST_MEGABYTES * 1e6


def test_the_workflow_of_the_example_runs_as_it_is_printed(fresh, tmp_path):
    """On the wheel; the steps that are actions of GitHub are left out."""
    folder = shutil.copytree(ROOT / "examples/privacy_test", tmp_path / "privacy_test")
    lines = re.findall(r"^ +- run: (.*)$", (folder / ".github/workflows/privacy.yml").read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        fresh.run("sh", "-c", line, folder=folder, PLAUDIT=str(fresh.wheel))
    assert "noisy_counts_keep_their_promise" in (folder / "privacy.html").read_text("utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a copy of what `pip` reads of the checkout, and the examples."""
    parts = ("audit", "algorithms", "examples", "LICENSE", "MANIFEST.in", "README.md", "plaudit.py", "pyproject.toml")
    folder = tmp_path_factory.mktemp("checkout")
    for part in (ROOT / name for name in parts):
        copied = shutil.copytree if part.is_dir() else shutil.copy
        copied(part, folder / part.name)
    return folder


def test_the_page_on_continuous_integration_runs_as_it_is_printed_from_a_checkout(fresh, checkout):
    for line in blocks(ROOT / "docs/tutorials/audit_in_ci.md", "console")[0].splitlines():
        fresh.run("sh", "-c", line.removeprefix("$ "), folder=checkout)
    assert (checkout / "examples/privacy_test/privacy.html").exists()


def test_the_package_of_a_system_in_contributing_runs_as_it_is_printed(fresh, checkout, tmp_path):
    page = ROOT / "CONTRIBUTING.md"
    (module,) = [block for block in blocks(page, "python") if "class Toy" in block]
    (project,) = blocks(page, "toml")
    (commands,) = blocks(page, "console")
    (tmp_path / "toy.py").write_text(module)
    (tmp_path / "pyproject.toml").write_text(project)
    for line in commands.splitlines():
        fresh.run("sh", "-c", line.removeprefix("$ "), folder=tmp_path, PLAUDIT=str(checkout))
    assert (tmp_path / "counts.txt").read_text().startswith("[")
