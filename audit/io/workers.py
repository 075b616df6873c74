"""Parallel work in threads, in processes, or on a cluster of dask or ray.

A cluster gets the work once and then single tasks, through its own library. joblib is not used: its backend for dask
waits forever if the scheduler gives up a task, and its backend for ray sends the work again with every task.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle  # noqa: TID251  only own data, for workers that run our code anyway
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib

from audit.io.temporary import SPILLED, temporary_folder

__all__ = ["Workers", "on_backend", "packed", "shielded"]

BACKENDS = {"loky": "loky", "threads": "threading", "dask": "dask", "ray": "ray"}  # names of backends in joblib
SAFE = "PYTHONSAFEPATH"  # the environment variable of `python -P`
KILLED = "a worker process was killed twice over the same runs: fewer jobs need less memory"
UNSENT = "the mechanism cannot be sent to another process: per_run(factory=...) builds it there, or n_jobs=1"
Packed = tuple[str, bytes]  # a unique id, and the pickled work
_here = threading.local()  # unpacked work of a worker; one copy a thread, since work may have state


@contextmanager
def shielded() -> Iterator[None]:
    """Prevent worker processes started in the context from importing modules of the current folder."""
    # They start as ``python -m``, which searches the current folder first.
    before = os.environ.get(SAFE)
    _set("1")
    try:
        yield
    finally:
        _set(before)


@cache
def _share_in_own_folder(process: int) -> None:
    """Make joblib put large arrays into a temporary folder of this process, removed at its exit."""
    # joblib's default is /dev/shm. If all processes are killed, those files stay, and `doctor --clean` would miss them.
    stack = ExitStack()
    own = os.environ.get("JOBLIB_TEMP_FOLDER")  # the user may have chosen a larger disk
    os.environ["JOBLIB_TEMP_FOLDER"] = str(stack.enter_context(temporary_folder(SPILLED, Path(own) if own else None)))
    atexit.register(lambda: stack.close() if os.getpid() == process else None)


def _unshielded(work: Callable[[Any], Any], setting: str | None, number: int, task: Any) -> tuple[int, Any]:
    """Do a task in a shielded worker process, and leave its child processes unshielded."""
    _set(setting)
    return number, work(task)


def _set(setting: str | None) -> None:
    if setting is None:
        os.environ.pop(SAFE, None)
    else:
        os.environ[SAFE] = setting


class Workers:
    """Workers for one function: this process, its threads or processes, or a cluster of dask or ray."""

    # ``joblib.parallel_config`` chooses the backend. A cluster uses all its workers, whatever `n_jobs` is. `number`
    # tasks run at the same time; `shared` means that they are threads, which share the work.

    def __init__(self, work: Callable[[Any], Any], n_jobs: int, *, threads: bool = False) -> None:
        self.work, self.n_jobs, self.prefer = work, n_jobs, "threads" if threads else "processes"
        backend, _ = joblib.parallel.get_active_backend(prefer=self.prefer)
        self.shared = bool(getattr(backend, "uses_threads", False))
        self.cluster: Callable[[dict[int, Any]], Iterator[tuple[int, Any]]] | None = None
        if type(backend).__name__ == "DaskDistributedBackend":
            self.cluster = partial(self._on_dask, backend.client)
        elif type(backend).__name__ == "RayBackend":
            self.cluster = self._on_ray
        self.number = max(1, int(joblib.effective_n_jobs(-1 if self.cluster else n_jobs)))
        self._packed = packed(work) if self.cluster else None
        self._sent: Any = None  # reference to the work on the cluster

    def finished(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the index of each task and the result of the work, in the order in which they finish."""
        # Raises ChildProcessError if a worker process is killed twice over the same work, and ValueError if the work
        # cannot be pickled.
        if not self.cluster and (self.number == 1 or len(tasks) == 1):
            yield from ((number, self.work(task)) for number, task in enumerate(tasks))
            return
        missing, deaths = dict(enumerate(tasks)), 0
        while missing:
            try:
                for number, result in (self.cluster or self._here)(missing):
                    del missing[number]
                    deaths = 0
                    yield number, result
            except BrokenProcessPool:  # repeat the tasks that the killed worker process lost
                deaths += 1
                if deaths > 1:
                    raise ChildProcessError(KILLED) from None

    def _here(self, tasks: dict[int, Any]) -> Iterator[tuple[int, Any]]:
        """Do the tasks in threads or processes of this machine."""
        if not self.shared:
            _share_in_own_folder(os.getpid())
        one = joblib.delayed(partial(_unshielded, self.work, os.environ.get(SAFE)))
        parallel = joblib.Parallel(n_jobs=self.n_jobs, prefer=self.prefer, return_as="generator_unordered")
        try:
            with shielded(), parallel:
                yield from parallel([one(*task) for task in tasks.items()])
        except Exception as error:
            if type(error).__name__ != "PicklingError":
                raise
            raise ValueError(UNSENT) from error

    def _on_dask(self, client: Any, tasks: dict[int, Any]) -> Iterator[tuple[int, Any]]:
        from distributed import KilledWorker, as_completed

        if self._sent is None:
            try:
                (self._sent,) = client.scatter([self._packed], broadcast=True, hash=False)
            except Exception as error:  # dask raises many types
                raise ConnectionError(f"the dask cluster stopped: {error}") from error
        futures = {client.submit(_done, self._sent, task, pure=False): number for number, task in tasks.items()}
        try:
            for future in as_completed(list(futures)):
                yield futures[future], future.result()
        except KilledWorker:  # the scheduler itself retries after the first deaths
            raise ChildProcessError(KILLED) from None
        except CancelledError:  # the sent work is lost with the last worker that held it
            self._sent = None
            raise BrokenProcessPool from None
        finally:
            if client.status == "running":
                client.cancel([future for future in futures if not future.done()])

    def _on_ray(self, tasks: dict[int, Any]) -> Iterator[tuple[int, Any]]:
        import ray

        if self._sent is None:
            self._sent = ray.put(self._packed)
        again_once = ray.remote(max_retries=1)(_done)
        pending = {again_once.remote(self._sent, task): number for number, task in tasks.items()}
        try:
            while pending:
                (first,), _ = ray.wait(list(pending))
                yield pending.pop(first), ray.get(first)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
            raise ChildProcessError(KILLED) from None
        except ray.exceptions.RayError as error:
            raise ConnectionError(f"the ray cluster stopped: {str(error).splitlines()[0]}") from error


def packed(work: Any) -> Packed:
    """Pickle work, including closures and lambdas, for a cluster or a new process."""
    try:
        return uuid.uuid4().hex, pickle.dumps(joblib.wrap_non_picklable_objects(work, keep_wrapper=False))
    except Exception as error:  # any type: objects may have their own pickling
        raise ValueError(UNSENT) from error


def _done(work: Packed, task: Any) -> Any:
    name, content = work
    if getattr(_here, "name", None) != name:
        try:
            _here.work, _here.name = pickle.loads(content), name
        except ImportError as error:
            raise ValueError(f"workers must be able to import what the mechanism does, got {error}") from error
    return _here.work(task)


@contextmanager
def on_backend(backend: str, jobs: int) -> Iterator[None]:
    """Use a backend, or one at an address, for all runs in the context; if it is empty, that of the mechanism."""
    # Without an address, a cluster with `jobs` workers (-1: one for each core) of this machine is started and stopped.
    name, _, address = backend.partition("=")
    if jobs < 1 and jobs != -1:
        raise ValueError(f"jobs must be a positive number, or -1 for all cores, got {jobs}")
    if name and name not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {name!r}")
    if address and name not in CLUSTERS:
        raise ValueError(f"an address goes with --backend dask or ray, got {address!r}")
    with ExitStack() as stack:
        if name in CLUSTERS:
            try:
                stack.enter_context(CLUSTERS[name](address, joblib.cpu_count() if jobs == -1 else jobs))
            except ModuleNotFoundError as error:
                raise ValueError(f"--backend {name} needs the extra {name}: pip install 'plaudit[{name}]'") from error
            except Exception as error:  # of sockets, host names or differing versions
                at = f"address must be that of a {name} cluster with plaudit on every worker, got {address!r}"
                where = at if address else f"{name} must start"
                raise ValueError(f"{where}: {error}") from error
        if name:
            stack.enter_context(joblib.parallel_config(backend=BACKENDS[name]))
        yield


@contextmanager
def _dask(address: str, workers: int) -> Iterator[None]:
    from distributed import Client

    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # we report an error in one line
    where: dict[str, Any] = {"address": address, "timeout": 10}
    if not address:
        where = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
        where["silence_logs"] = logging.CRITICAL
    with shielded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about differing versions of libraries, mostly harmless
        client = Client(**where)
    with client:
        installed = client.run(lambda: find_spec("audit") is not None)
        if not all(installed.values()):
            raise ValueError(f"{list(installed.values()).count(False)} of {len(installed)} workers have none")
        yield


@contextmanager
def _ray(address: str, workers: int) -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    import ray
    from ray.util.joblib import register_ray

    options = {"address": address} if address else {"num_cpus": workers, "include_dashboard": False}
    ray.init(**options, log_to_driver=False, logging_level=logging.CRITICAL)
    try:
        register_ray()
        yield
    finally:
        ray.shutdown()


CLUSTERS = {"dask": _dask, "ray": _ray}
