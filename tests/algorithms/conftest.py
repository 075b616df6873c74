"""What the tests of systems stand on."""

import csv
import json
import tempfile
from functools import cache
from pathlib import Path

import pytest

from algorithms.noise import DiscreteGaussian, Laplace, TwoTailedGeometric
from algorithms.noise.margins import least_margin


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Write files of rows, of text or of what becomes JSON into a folder of their own, which is the current one."""
    monkeypatch.chdir(tmp_path)

    def write(files):
        for name, content in files.items():
            if isinstance(content, list):
                with Path(name).open("w", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(content)
            else:
                Path(name).write_text(content if isinstance(content, str) else json.dumps(content))

    return write


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """The current folder, beside one for what is temporary, of which nothing is left."""
    folder, temporary = tmp_path / "workspace", tmp_path / "temporary"
    for path in (folder, temporary):
        path.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield folder
    assert not list(temporary.iterdir())


@pytest.fixture
def scripted(monkeypatch):
    """Replace samplers by one that keeps the wild noise it hands out, each with the parameter of its law, in order."""
    handed = []

    def sample(self, size, rng):
        noise = rng.normal(0, 3, size) if isinstance(self, Laplace) else rng.integers(-30, 31, size)
        handed.append((*vars(self).values(), noise))
        return noise.copy()

    for law in (DiscreteGaussian, Laplace, TwoTailedGeometric):
        monkeypatch.setattr(law, "sample", sample)
    return handed


@pytest.fixture(scope="module")
def remembered():
    """Exact margins of the same laws are asked for again and again: each is found once, which takes milliseconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("algorithms.noise.margins.least_margin", cache(least_margin))
        yield
