"""Compiled code is kept by numba where it can be written."""

import pytest

numba = pytest.importorskip("numba")
batched = pytest.importorskip("algorithms.topdown.estimation.batched")
kernels = pytest.importorskip("algorithms.topdown.estimation.kernels")
pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="numba is turned off")


def twice(x):
    return 2 * x


def test_what_is_compiled_is_found_again_and_not_used_where_it_was_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert kernels._kept(twice)(5) == 10
    again = kernels._kept(twice)
    assert again(5) == 10
    assert sum(again.kernel.stats.cache_hits.values()) == 1
    (kept,) = tmp_path.rglob("*.nbc")
    kept.write_bytes(kept.read_bytes()[:100])
    assert kernels._kept(twice)(5) == 10


def test_where_nothing_can_be_written_code_runs_too(monkeypatch):
    def fail(self):
        raise RuntimeError("no locator available")

    monkeypatch.setattr(numba.core.dispatcher.Dispatcher, "enable_caching", fail)
    assert kernels._kept(twice)(5) == 10
    monkeypatch.setattr(numba, "njit", lambda **options: lambda function: function)  # numba is turned off
    assert kernels._kept(twice)(5) == 10


@pytest.mark.parametrize("kept", [True, False])
def test_who_waits_for_the_compiler_is_told(tmp_path, monkeypatch, capsys, kept):
    monkeypatch.setattr(kernels.solve_families.kernel._cache, "_cache_path", str(tmp_path))
    if kept:
        (tmp_path / "kernels.solve_families-1.nbi").touch()
    assert batched._kernels.__wrapped__() is kernels
    assert ("a minute or so, once for this installation" in capsys.readouterr().err) == (not kept)
