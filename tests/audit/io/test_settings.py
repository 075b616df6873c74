"""Settings of a project: read from the nearest pyproject.toml, and refused by name where they mean nothing."""

import os

import pytest

from audit.io.settings import SETTINGS, project_settings
from tests.helpers import refused_like

GOOD = """
[project]
name = "release"
[tool.plaudit]
size = 1e5
confidence = 0.999
seed = 0
report = "audits.json"
"""
EXPECTED = {"size": 100_000, "confidence": 0.999, "seed": 0, "report": "audits.json"}


def test_the_nearest_file_counts(tmp_path):
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert project_settings(tmp_path, above=False) == ({}, None)
    (tmp_path / "pyproject.toml").write_text(GOOD)
    assert project_settings(tmp_path) == project_settings(below) == (EXPECTED, tmp_path / "pyproject.toml")
    assert project_settings(below, above=False) == ({}, None)
    assert EXPECTED.keys() == SETTINGS.keys()
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'another'\n")
    assert project_settings(below) == ({}, None)  # of another project


@pytest.mark.parametrize("text", ["", "tool = 'plaudit'\n", "# plaudit\n[tool.other]\nsize = -1\n"])
def test_a_file_that_says_nothing_of_plaudit_is_none(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    assert project_settings(tmp_path) == ({}, None)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sizes = 10", "takes size, confidence, seed, report, got 'sizes'"),
        ("size = 0", "size must be a whole number of runs, at least 1 and below 2**53, got 0"),
        ("size = true", "size must be a whole number of runs, at least 1 and below 2**53, got True"),
        ("confidence = 1.0", "confidence must be in (0, 1), got 1.0"),
        ("confidence = '95%'", "confidence must be in (0, 1), got '95%'"),
        ("seed = -1", "seed must be a whole number, 0 or more, got -1"),
        ("seed = true", "seed must be a whole number, 0 or more, got True"),
        ("report = 3", "report must be the name of a file, got 3"),
        ("report = ''", "report must be the name of a file, got ''"),
    ],
)
def test_what_means_nothing_is_refused(tmp_path, line, words):
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[tool.plaudit]\n{line}\n")
    with pytest.raises(ValueError, match=r"^\[tool\.plaudit\] of ") as caught:
        project_settings(tmp_path)
    assert str(caught.value).endswith(words)


def test_what_cannot_be_read_is_refused(tmp_path):
    path = tmp_path / "pyproject.toml"
    for content in (b"[tool.plaudit\n", b"[tool.plaudit]\nreport = '\xff'\n"):
        path.write_bytes(content)
        with refused_like(ValueError, r"pyproject\.toml must be TOML: "):
            project_settings(tmp_path)
    path.write_text("[tool]\nplaudit = 3\n")
    with refused_like(ValueError, r"pyproject\.toml must be a table, got 3$"):
        project_settings(tmp_path)


def test_a_file_that_nobody_may_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(GOOD)
    monkeypatch.setattr(type(tmp_path), "read_bytes", lambda path: os.listdir(path))
    with refused_like(ValueError, r"pyproject\.toml must be readable: Not a directory$"):
        project_settings(tmp_path)
