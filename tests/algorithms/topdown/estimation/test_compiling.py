"""Compiled code is kept by numba where it can be written, and compiled by one process at a time."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

numba = pytest.importorskip("numba")
compiling = pytest.importorskip("algorithms.topdown.estimation.compiling")
pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="numba is turned off")

MODULE = """
import numba
from algorithms.topdown.estimation.compiling import compiled_on_disk

FACTOR = 2

@numba.njit
def inner(x):
    return FACTOR * x

@compiled_on_disk
@numba.njit
def outer(x):
    return inner(x) + 1
"""
LINE = "compiling TopDown's solver: a minute or so, once for this installation\n"


@pytest.fixture
def load(tmp_path, monkeypatch, capsys):
    """Import a module anew, as another process would; return what its function makes of 5, and what was said."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def result(text=MODULE):
        (tmp_path / "loops.py").write_text(text)
        sys.modules.pop("loops", None)
        importlib.invalidate_caches()
        module = importlib.import_module("loops")
        compiling._say.cache_clear()
        return module.outer(5), capsys.readouterr().err

    yield result
    sys.modules.pop("loops", None)


def test_what_is_compiled_is_found_again_unless_the_file_changes(load):
    assert load() == (11, LINE)
    assert load() == (11, "")
    assert load(MODULE.replace("FACTOR = 2", "FACTOR = 30"))[0] == 151


def test_where_nothing_can_be_written_every_process_compiles(load, monkeypatch):
    for name in ("UserProvided", "InTree", "UserWide"):
        locator = getattr(numba.core.caching, f"{name}CacheLocator")
        monkeypatch.setattr(locator, "ensure_cache_path", lambda self: os.mkdir("/proc/nowhere"))
    assert load() == load() == (11, LINE)


def test_a_full_disk_is_no_error(load, monkeypatch):
    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "_save_data", lambda *_: os.mkdir("/proc/nowhere"))
    assert load() == (11, LINE)


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_again(load, tmp_path, kind):
    load()
    (path,) = (tmp_path / "cache").glob(f"*/*outer*.{kind}")
    path.write_bytes(b"")
    assert load()[0] == 11
    assert path.stat().st_size > 0


def test_one_of_two_processes_compiles(tmp_path):
    (tmp_path / "loops.py").write_text(MODULE)
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, '.']; import loops; print(loops.outer(5))"
    options = {"env": {"PYTHONDONTWRITEBYTECODE": "1"}, "text": True}  # it is kept beside the module
    pair = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        for _ in range(2)
    ]
    assert sorted(process.communicate(timeout=300) for process in pair) == [("11\n", ""), ("11\n", LINE)]
    assert list((tmp_path / "__pycache__").glob("loops.outer-*.nbi"))


def test_code_runs_without_the_compiler(load, monkeypatch):
    monkeypatch.setattr(numba, "njit", lambda function: function)
    assert load() == (11, "")
