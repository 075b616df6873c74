"""Where runs are worked on: processes of one's own, and work as it is sent to a cluster (clusters: engines)."""

import itertools
import os
import signal
import sys
import tempfile
import threading
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import joblib
import numpy as np
import pytest

from audit.io.temporary import FOLDER, _leftovers
from audit.io.workers import KILLED, SAFE, UNSENT, Workers, _done, _unshielded, on_backend, packed, shielded
from tests.helpers import refused, refuses


def test_the_shield_is_there_while_workers_start_and_for_nothing_else(monkeypatch):
    for before in (None, "", "1"):
        if before is None:
            monkeypatch.delenv(SAFE, raising=False)
        else:
            monkeypatch.setenv(SAFE, before)
        with shielded():
            assert os.environ[SAFE] == "1"
        assert os.environ.get(SAFE) == before
        monkeypatch.setenv(SAFE, "1")  # as in a worker that has started
        assert _unshielded(lambda task: (task, os.environ.get(SAFE)), before, 1, "b") == (1, ("b", before))


def test_a_large_array_is_mapped_into_processes_and_not_sent_with_every_task():
    large = np.arange(1_000_000)
    done = Workers(lambda place: (int(large[place]), large.filename), 2).finished([7, 8, 9])
    results = [result for _, result in sorted(done)]
    assert [number for number, _ in results] == [7, 8, 9]
    for _, file in results:  # where what killed runs leave is looked for, and this one is alive
        folder = next(place for place in Path(file).parents if FOLDER.fullmatch(place.name))
        assert (str(folder.parent), folder.stat().st_mode & 0o777) == (tempfile.gettempdir(), 0o700)
        assert folder not in _leftovers(folder.parent)


@pytest.mark.parametrize("deaths", [1, pytest.param(99, marks=pytest.mark.slow)])
def test_a_killed_process_costs_what_it_was_at_and_killed_always_it_is_an_error(deaths, tmp_path):
    """Two processes are started twice, 2 s."""

    def deadly(task):
        if task == 3 and (tmp_path / "deaths").stat().st_size < deaths:
            with open(tmp_path / "deaths", "a") as file:
                file.write("1")
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    (tmp_path / "deaths").write_text("")
    done = Workers(deadly, 2).finished(range(4))
    if deaths == 99:
        refuses(ChildProcessError, KILLED, list, done)
    else:
        assert sorted(done) == [(task, task) for task in range(4)]


@pytest.mark.parametrize(("deaths", "results"), [((1, 3), 3), ((3, 4), 2)], ids=["between results", "twice over"])
def test_a_process_may_be_killed_once_for_each_result(deaths, results):
    """Workers die in some of the rounds that they begin; in the others they finish one task."""
    workers, rounds, done = Workers(abs, 2), itertools.count(1), []

    def work(missing):
        if next(rounds) in deaths:
            raise BrokenProcessPool
        yield min(missing), missing[min(missing)]

    workers.cluster = work
    with refused(ChildProcessError, KILLED) if results < 3 else nullcontext():
        for number_and_result in workers.finished("abc"):
            done.append(number_and_result)
    assert done == list(enumerate("abc"))[:results]


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("spark", "backend must be one of loky, threads, dask, ray, got 'spark'"),
        ("loky=auto", "an address goes with --backend dask or ray, got 'auto'"),
        ("dask", "--backend dask needs the extra dask: pip install 'plaudit[dask]'"),
        ("ray", "--backend ray needs the extra ray: pip install 'plaudit[ray]'"),
    ],
)
def test_what_there_is_not_is_refused(monkeypatch, backend, words):
    for missing in ("distributed", "ray"):
        monkeypatch.setitem(sys.modules, missing, None)
    with refused(ValueError, words), on_backend(backend, 2):
        pass


def test_nobody_at_an_address_is_one_line():
    pytest.importorskip("distributed")
    words = "address must be that of a dask cluster with plaudit on every worker, got 'nowhere': "
    with pytest.raises(ValueError, match=f"^{words}[^\n]+$"), on_backend("dask=nowhere", 2):
        pass


@pytest.mark.parametrize(("name", "shared"), [("", False), ("loky", False), ("threads", True)])
def test_a_backend_is_that_of_joblib(name, shared):
    with on_backend(name, 2):
        workers = Workers(abs, 2)
        assert (workers.number, workers.shared) == (2, shared)
        assert workers.cluster is None
    backend, _ = joblib.parallel.get_active_backend()
    assert type(backend).__name__ == "LokyBackend"


def test_work_is_unpacked_once_in_each_thread_and_is_its_own_there():
    made = []

    def work(task):
        made.append(task)
        return len(made)

    sent = packed(work)
    assert [_done(sent, task) for task in "abc"] == [1, 2, 3]  # what came over, which is not this list
    assert made == []
    other = []
    thread = threading.Thread(target=lambda: other.append(_done(sent, "d")))
    thread.start()
    thread.join()
    assert other == [1]
    assert _done(packed(work), "e") == 1


def test_what_cannot_be_sent_or_unpacked_is_refused(monkeypatch):
    lock = threading.Lock()
    refuses(ValueError, UNSENT, packed, lambda task: lock)
    module = ModuleType("onlyhere")
    exec("def work(task):\n    return task", vars(module))
    monkeypatch.setitem(sys.modules, "onlyhere", module)
    sent = packed(module.work)
    assert _done(sent, 3) == 3
    monkeypatch.delitem(sys.modules, "onlyhere")
    words = "workers must be able to import what the mechanism does, got No module named 'onlyhere'"
    refuses(ValueError, words, _done, ("another name", sent[1]), 3)
