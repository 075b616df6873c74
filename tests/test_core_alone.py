"""The core alone, from the wheel in a fresh environment: audits run, and what needs an extra says which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OWN = "def noisy(data, size, rng):\n    return data + rng.laplace(size=(size, data.size))\n"
MOST_MEGABYTES = 420


@pytest.mark.slow
def test_the_core_alone_audits_and_names_the_extra_that_a_system_needs(tmp_path, capsys):
    def run(*command, code=0):
        done = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    pip = ("-m", "pip", "--disable-pip-version-check", "--quiet")
    run(sys.executable, "-m", "venv", "fresh")
    python, plaudit = tmp_path / "fresh/bin/python", tmp_path / "fresh/bin/plaudit"
    empty = sum(file.stat().st_size for file in (tmp_path / "fresh").rglob("*") if file.is_file())
    run(python, *pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    run(python, *pip, "install", "--constraint", ROOT / "constraints.txt", *tmp_path.glob("plaudit-*.whl"))

    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "counts.csv").write_text("120\n75\n")
    audit = ("audit", "own:noisy", "--data", "counts.csv", "--claim", "pure:1", "--size", 2000, "--seed", 1)
    assert run(plaudit, "--version").startswith("plaudit ")
    assert "own:noisy" in run(plaudit, *audit)
    assert "rdpc" in run(plaudit, "audit", "gdpc", "rdpc", "--size", 2000, "--seed", 1)
    needed = "topdown needs the extra census: pip install 'plaudit[census]'\n"
    assert run(plaudit, "release", "topdown", code=2) == f"plaudit: error: {needed}"
    in_python = "from algorithms.systems import systems; systems()['topdown'].mechanism()"
    assert run(python, "-c", in_python, code=1).endswith(f"ImportError: {needed}")

    size = sum(file.stat().st_size for file in (tmp_path / "fresh").rglob("*") if file.is_file()) - empty
    with capsys.disabled():
        print(f"\nthe core alone takes {size / 1e6:.0f} MB, beside {empty / 1e6:.0f} MB of an empty environment")
    assert size <= MOST_MEGABYTES * 1e6
