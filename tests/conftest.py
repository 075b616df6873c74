"""One profile for all properties: the same examples on every machine, however slow it is. One thread a process."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read by the processes of xdist: each has a core to itself
    os.environ.setdefault(name, "1")

settings.register_profile("plaudit", deadline=None, derandomize=True, database=None)
settings.load_profile("plaudit")


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """A slow machine adds no lines on progress to what a command says."""
    monkeypatch.setattr("audit.sampling.progress.EVERY", 3600.0)


@pytest.fixture(scope="session")
def good_files(tmp_path_factory):
    """One folder with a good file of every kind that the command reads; whoever uses it works on a copy."""
    from tests.fuzz.desk import make_desk

    folder = tmp_path_factory.mktemp("desk")
    make_desk(folder)
    return folder
