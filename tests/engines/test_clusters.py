"""Clusters of dask and ray: the counts of one process, also after a worker was killed; what fails is told."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import Invariant
from algorithms.topdown.estimation.splitting import split
from algorithms.topdown.release import release
from audit.claims import ZCDP, PureDP
from audit.io.workers import Workers, on_backend
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from tests.helpers import contents, refused, refused_like

pytestmark = pytest.mark.slow

PAIR = NeighborPair.add_people([120, 75], 0)
TASKS = 40


@pytest.fixture(scope="module", params=["dask", "ray"])
def cluster(request):
    """Two workers on this machine."""
    pytest.importorskip({"dask": "distributed"}.get(request.param, request.param), reason="the extra is not installed")
    with on_backend(request.param, 2):
        yield request.param


def task_and_process(task):
    time.sleep(0.02)
    return task, os.getpid()


def test_counts_are_those_of_one_process(cluster):
    """Of a mechanism that is a closure and a lambda."""
    scale = 1.0
    noisy = lambda data, size, rng: data + rng.laplace(scale=scale, size=(size, data.size))  # noqa: E731
    noisy.runs_per_block = 100
    together = measure_loss(noisy, PAIR, PureDP(1.0), size=3000, rng=3, n_jobs=2).counts
    with joblib.parallel_config(backend="sequential"):
        assert measure_loss(noisy, PAIR, PureDP(1.0), size=3000, rng=3).counts == together


def test_all_workers_take_part_and_the_work_is_sent_once(cluster):
    sent = []

    class Work:
        def __call__(self, task):
            return task_and_process(task)

        def __reduce__(self):
            sent.append(1)
            return (lambda: task_and_process, ())

    workers = Workers(Work(), 1)
    results = [pair for _ in range(2) for pair in workers.finished(range(TASKS))]
    assert sorted((place, task) for place, (task, _) in results) == sorted([(task, task) for task in range(TASKS)] * 2)
    pids = {pid for _, (_, pid) in results}
    assert (workers.number, len(pids), os.getpid() in pids, sent) == (2, 2, False, [1])


def test_a_killed_worker_costs_what_it_was_at(cluster):
    arriving = Workers(task_and_process, 2).finished(range(TASKS))
    first = [next(arriving) for _ in range(5)]
    os.kill(first[0][1][1], signal.SIGKILL)
    assert sorted(task for _, (task, _) in [*first, *arriving]) == list(range(TASKS))


def test_a_release_of_topdown_is_that_of_one_process_though_a_worker_is_killed(cluster, tmp_path, monkeypatch):
    """Seeded noise; the first family that any worker gets kills it."""
    schema, tree = Schema({"sex": ("female", "male"), "age": ("0-17", "18-64", "65+")}), Hierarchy.regular(3, 3)
    budget = Budget(ZCDP(0.5, "replace_one"), ["1/4"] * 4, [{"total": "1/2", "detailed": "1/2"}] * 4)
    topdown = TopDown(schema, tree, budget, n_jobs=2, invariants=[Invariant("total", 1)])
    histogram, caller, flag = np.random.default_rng(1).poisson(5, (27, 6)), os.getpid(), tmp_path / "killed"
    with joblib.parallel_config(backend="sequential"):
        release(topdown, histogram, out=tmp_path / "alone", rng=np.random.default_rng(2))

    def deadly_once(task):
        try:
            flag.touch(exist_ok=False)
        except FileExistsError:
            return split(*task)
        assert os.getpid() != caller
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(sys.modules["algorithms.topdown.estimate"], "_split_apart", deadly_once)
    release(topdown, histogram, out=tmp_path / "together", rng=np.random.default_rng(2))
    assert flag.exists()
    assert contents(tmp_path / "together") == contents(tmp_path / "alone")


def test_work_that_kills_its_workers_ends_in_an_error(cluster):
    def deadly(task):
        if task == 3:
            os._exit(1)
        return task

    with refused_like(ChildProcessError, "a worker process was killed twice over the same runs: fewer jobs need"):
        list(Workers(deadly, 2).finished(range(8)))
    assert dict(Workers(task_and_process, 2).finished([1, 2]))[1][0] == 2  # the cluster goes on


def test_what_was_sent_is_sent_again_where_the_only_worker_died(tmp_path):
    pytest.importorskip("distributed")

    def deadly_once(task):
        if task == 3 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os._exit(1)
        return task

    with on_backend("dask", 1):
        assert sorted(Workers(deadly_once, 1).finished(range(8))) == [(task, task) for task in range(8)]


def test_a_cluster_that_stops_is_told():
    """After the ten seconds in which it may come back."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as own,
        distributed.Client(own, timeout=2),
    ):
        with joblib.parallel_config(backend="dask"):
            arriving = Workers(task_and_process, 1).finished(range(TASKS))
        next(arriving)
        own.close()
        with refused_like(ConnectionError, "the dask cluster stopped: "):
            list(arriving)


def test_a_ray_cluster_that_stops_is_told(cluster, monkeypatch):
    if cluster != "ray":
        pytest.skip("of ray")
    import ray

    def stopped(futures):
        raise ray.exceptions.RaySystemError("gone\nsee the logs")

    monkeypatch.setattr(ray, "wait", stopped)
    with refused_like(ConnectionError, "the ray cluster stopped: System error: gone$"):
        list(Workers(task_and_process, 2).finished([1, 2]))


def test_errors_are_those_of_the_work(cluster):
    def failing(task):
        raise ValueError("no such area", 17)

    with pytest.raises(ValueError, match="no such area") as caught:
        list(Workers(failing, 2).finished([1]))
    assert caught.value.args == ("no such area", 17)


MINE = """
import numpy as np

def noisy(data, size, rng):
    return data + rng.laplace(size=(size, data.size))

noisy.runs_per_block = 100
"""
COMMANDS = {
    "a system": "audit gdpc --size 2000",
    "a mechanism of one's own": "audit own:noisy --claim pure:1 --size 2000",
    "an estimate": "estimate gdpc --method direct --runs 6000000",  # two blocks a side
}


@pytest.mark.parametrize("backend", ["loky", "threads", "dask", "ray"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_the_numbers_of_one_process(command, backend, tmp_path):
    """In a process of its own, with a cluster for the command alone."""
    if backend in ("dask", "ray"):
        pytest.importorskip({"dask": "distributed"}.get(backend, backend), reason="the extra is not installed")
    if (command, backend) == ("a mechanism of one's own", "threads"):
        pytest.skip("it is not made for threads")
    (tmp_path / "c.csv").write_text("n\n120\n75\n")
    (tmp_path / "own.py").write_text(MINE)
    where = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def numbers(*more):
        words = ["-m", "plaudit", *COMMANDS[command].split(), "--data", "c.csv", "--seed", "1", "--json", *more]
        done = subprocess.run([sys.executable, "-P", *words], cwd=tmp_path, env=where, capture_output=True, text=True)
        (result,) = json.loads(done.stdout).values()
        keys = ("at", "loss", "low", "high", "value", "interval") if command == "an estimate" else ("counts", "event")
        return done.returncode, [result[key] for key in keys]

    assert numbers("--backend", backend, "--jobs", "2") == numbers("--jobs", "1")


def test_workers_without_plaudit_are_told_before_anything_runs():
    distributed = pytest.importorskip("distributed", reason="the extra is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options) as there, distributed.Client(there) as client:
        address = there.scheduler_address
        client.run(lambda: sys.modules.update(audit=None), workers=[next(iter(client.scheduler_info()["workers"]))])
        words = f"address must be that of a dask cluster with plaudit on every worker, got {address!r}: "
        with refused(ValueError, f"{words}1 of 2 workers have none"), on_backend(f"dask={address}", 2):
            pass
