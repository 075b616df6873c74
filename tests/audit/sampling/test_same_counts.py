"""The same counts from any number of jobs, blocks, processes and settings of the machine."""

from __future__ import annotations

import importlib.util
from concurrent.futures.process import BrokenProcessPool

import joblib
import pytest
import threadpoolctl

from audit.mechanism import per_run
from audit.sampling import blocks as sampling
from tests.audit.sampling.cases import ALONE, asked, in_a_process, noting, same

WORKER = """
import json, os, signal, sys
from pathlib import Path
import joblib
import numpy as np
from audit import NeighborPair, PureDP, measure_loss

folder = Path(sys.argv[1]).parent
log, flag = folder / "log", folder / "killed"

def noisy(data, size, rng):
    state = rng.bit_generator.state["state"]["state"]
    with open(log, "a") as file:
        file.write(f"{state} {size}\\n")
    if size == 9 and state % 97 == 0 and not flag.exists():  # a 256th of the runs that count on a database
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return data + rng.laplace(size=(size, data.size))

noisy.runs_per_block = 100
pair = NeighborPair.add_people([120, 75], 0)
options = {"size": 6000, "rng": 3}
with joblib.parallel_config(backend="loky"):
    survived = measure_loss(noisy, pair, PureDP(1.0), n_jobs=2, **options).counts
again = log.read_text().split("\\n")
print(json.dumps([flag.exists(), survived == measure_loss(noisy, pair, PureDP(1.0), **options).counts, again]))
"""


@pytest.mark.slow
def test_a_killed_worker_costs_its_blocks_only(tmp_path):
    killed, equal, log = in_a_process(WORKER, tmp_path)
    assert killed
    assert equal
    seen = [line for line in log if line.endswith(" 9")]
    twice = len(seen) - len(set(seen))
    assert 1 <= twice <= sampling.WAVE * 2 * 12  # calls of the blocks that were at work, a dozen each, of 466
    assert len(seen) > 50


def test_a_worker_that_dies_of_every_block_is_an_error(monkeypatch):
    class Broken:
        def __init__(self, **options):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def __call__(self, tasks):
            raise BrokenProcessPool("killed")
            yield

    monkeypatch.setattr(joblib, "Parallel", Broken)
    with pytest.raises(ChildProcessError, match=r"^a worker process was killed twice over the same runs: fewer jobs"):
        asked(n_jobs=2)


def on(backend, n_jobs):
    with joblib.parallel_config(backend=backend):
        return asked(n_jobs=n_jobs)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2, 3, 4])
def test_counts_are_the_same_in_processes(n_jobs):
    assert same(on("loky", n_jobs), ALONE())


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs the extra dask")
@pytest.mark.parametrize("n_jobs", [1, 2, 3, 4])
@pytest.mark.filterwarnings("ignore")  # what dask warns of is not ours
def test_counts_are_the_same_on_dask(n_jobs):
    from distributed import Client

    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        assert same(on("dask", n_jobs), ALONE())


@pytest.mark.parametrize("wave", [3, *(pytest.param(wave, marks=pytest.mark.slow) for wave in (1, 2, 5, 100))])
def test_counts_do_not_depend_on_chunks(wave, monkeypatch, record_property):
    record_property("tried", 2)
    monkeypatch.setattr(sampling, "WAVE", wave)
    assert same(asked(n_jobs=2), ALONE())
    with joblib.parallel_config(backend="threading"):
        assert same(asked(n_jobs=2), ALONE())


@pytest.mark.slow
def test_counts_of_classifiers_do_not_depend_on_threads():
    with threadpoolctl.threadpool_limits(1):
        one = asked(attack="trained", size=6000)
    with threadpoolctl.threadpool_limits(4):
        assert same(asked(attack="trained", size=6000), one)


def test_slow_functions_come_in_small_blocks():
    sizes = []
    mechanism = noting(sizes, per_run(lambda data, rng: data + rng.laplace(size=data.size)))
    assert per_run(len).runs_per_block == 256
    mechanism.runs_per_block = 256
    asked(mechanism, size=20_000)
    assert max(sizes) == 256
    mechanism.runs_per_block = 0
    with pytest.raises(ValueError, match="runs_per_block must be at least 1, got 0"):
        asked(mechanism, size=2000)
