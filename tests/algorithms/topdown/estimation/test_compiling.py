"""Compiled code is found again by all that it depends on, and compiled by one process at a time."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

numba = pytest.importorskip("numba")
compiling = pytest.importorskip("algorithms.topdown.estimation.compiling")
pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="numba is turned off")

MODULE = """
import numba
from algorithms.topdown.estimation.compiling import once

FACTOR = 2

@numba.njit
def inner(x):
    return FACTOR * x

@once
@numba.njit
def outer(x):
    return inner(x) + 1
"""
LINE = "compiling TopDown's solver: a minute or so, once on this machine\n"


@pytest.fixture
def load(tmp_path, monkeypatch, capsys):
    """Import a module anew, as another process would; return what its function makes of 5, and what was said."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def result(text=MODULE, **numbers):
        (tmp_path / "loops.py").write_text(text)
        sys.modules.pop("loops", None)
        importlib.invalidate_caches()
        module = importlib.import_module("loops")
        for name, value in numbers.items():
            setattr(module, name, value)
        compiling._say.cache_clear()
        return module.outer(5), capsys.readouterr().err

    yield result
    sys.modules.pop("loops", None)


def test_what_is_compiled_is_found_again_unless_a_number_changes_in_the_file_or_in_memory(load, tmp_path):
    assert load() == (11, LINE)
    assert load() == (11, "")
    assert load(MODULE.replace("FACTOR = 2", "FACTOR = 3")) == (16, LINE)
    assert load(FACTOR=4) == (21, LINE)
    assert load() == (11, "")
    folders = list((tmp_path / "cache").iterdir())
    assert len(folders) == 3
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


@pytest.mark.parametrize("name", compiling.SETTINGS)
def test_settings_of_the_compiler_are_told_apart(name, monkeypatch):
    folders = set()
    for value in (0, 1):
        monkeypatch.setattr(numba.config, name, value)
        folders.add(compiling._Locator(compiling.once, compiling.__file__).get_cache_path())
    assert len(folders) == 2


def test_where_nothing_can_be_written_every_process_compiles(load, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    assert load() == load() == (11, LINE)


def test_a_folder_that_others_may_write_is_neither_read_nor_written(load, tmp_path):
    load()
    (folder,) = (tmp_path / "cache").iterdir()
    folder.chmod(0o777)
    for path in folder.iterdir():
        path.write_bytes(b"")
    assert load() == load() == (11, LINE)
    assert not any(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_again(load, tmp_path, kind):
    load()
    (path,) = (tmp_path / "cache").glob(f"*/*outer*.{kind}")
    path.write_bytes(b"")
    assert load() == (11, LINE)
    assert load() == (11, "")


def test_one_of_two_processes_compiles(tmp_path):
    (tmp_path / "loops.py").write_text(MODULE)
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, '.']; import loops; print(loops.outer(5))"
    options = {"env": {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}, "text": True}
    pair = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        for _ in range(2)
    ]
    assert sorted(process.communicate(timeout=300) for process in pair) == [("11\n", ""), ("11\n", LINE)]


def test_code_runs_without_the_compiler(load, monkeypatch):
    monkeypatch.setattr(numba, "njit", lambda function: function)
    assert load() == (11, "")
