"""Where a command asks for runs to be worked on: what there is not is refused in one line."""

from __future__ import annotations

import sys

import joblib
import pytest

from audit.io.backends import on_backend
from audit.io.workers import Workers
from tests.helpers import refused


@pytest.mark.parametrize(
    ("name", "address", "words"),
    [
        ("spark", "", "backend must be one of loky, threads, dask, ray, got 'spark'"),
        ("", "tcp://host:8786", "--address goes with --backend dask or ray, got 'tcp://host:8786'"),
        ("loky", "auto", "--address goes with --backend dask or ray, got 'auto'"),
        ("dask", "", "--backend dask needs the extra dask: pip install 'plaudit[dask]'"),
        ("ray", "", "--backend ray needs the extra ray: pip install 'plaudit[ray]'"),
    ],
)
def test_what_there_is_not_is_refused(monkeypatch, name, address, words):
    for missing in ("distributed", "ray"):
        monkeypatch.setitem(sys.modules, missing, None)
    with refused(ValueError, words), on_backend(name, address, 2):
        pass


def test_nobody_at_an_address_is_one_line():
    pytest.importorskip("distributed")
    words = "address must be that of a dask cluster with plaudit on every worker, got 'nowhere': "
    with pytest.raises(ValueError, match=f"^{words}[^\n]+$"), on_backend("dask", "nowhere", 2):
        pass


@pytest.mark.parametrize(("name", "shared"), [("", False), ("loky", False), ("threads", True)])
def test_a_backend_is_that_of_joblib(name, shared):
    with on_backend(name, "", 2):
        workers = Workers(abs, 2)
        assert (workers.number, workers.shared) == (2, shared)
        assert workers.cluster is None
    backend, _ = joblib.parallel.get_active_backend()
    assert type(backend).__name__ == "LokyBackend"
