"""One profile for all properties: the same examples on every machine, however slow it is. One thread a process."""

import fcntl
import gc
import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from audit.io.temporary import _leftovers, pop_leftovers

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read by the processes of xdist: each has a core to itself
    os.environ.setdefault(name, "1")

settings.register_profile("plaudit", deadline=None, derandomize=True, database=None)
settings.load_profile("plaudit")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays until the end: it is not searched for garbage again and again, half a second each."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def temporary():
    """A folder for temporary files, open to every user as /tmp is, and short enough for the names of sockets."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o1777)
        yield folder


@pytest.fixture(autouse=True)
def alone(monkeypatch, temporary):
    """What a command says depends neither on a slow machine nor on what killed runs have left on it."""
    pop_leftovers()
    for left in _leftovers(Path(temporary)):
        shutil.rmtree(left)
    for seconds in ("EVERY", "PATIENCE"):  # so that a slow machine says no more than a fast one
        monkeypatch.setattr(f"audit.sampling.progress.{seconds}", 3600.0)
    monkeypatch.setattr(tempfile, "tempdir", temporary)
    monkeypatch.setenv("TMPDIR", temporary)


@pytest.fixture(scope="module")  # a process can have one alone, and none while it awaits something
def browser():
    """Chromium, closed after the last test of a module that opens pages."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("Debian's package chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def good_files(tmp_path_factory):  # 1 s, for the first test that asks
    """One folder with a good file of every kind that the command reads; whoever uses it works on a copy."""
    from tests.workspace import make_workspace

    folder = tmp_path_factory.mktemp("workspace")
    make_workspace(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def compiled(request):
    """TopDown's loops, compiled before the first test: no test reads what is said of it, or waits."""
    files = {item.path for item in request.session.items}
    if find_spec("numba") and any("topdown" in file.read_text("utf-8") for file in files):
        import numpy as np

        from algorithms.hierarchy import Hierarchy
        from algorithms.topdown import preset

        with open(__file__, "rb") as lock:  # one process compiles, the others wait and load
            fcntl.flock(lock, fcntl.LOCK_EX)
            preset("micro", Hierarchy.regular(1, 1))([[1, 1, 1, 1]], 1, np.random.default_rng(1))


def pytest_unconfigure():
    gc.unfreeze()  # else a library reports what it finds left as a leak
