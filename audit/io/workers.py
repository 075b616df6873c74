"""Parallel work in threads, in processes, or on a cluster of dask or ray.

To a cluster work is sent once, then tasks one by one, by its own library: joblib's way to dask waits for ever where the
scheduler has given up a task; its way to ray sends everything again with every task.
"""

from __future__ import annotations

import atexit
import os
import pickle  # noqa: TID251  of this very program, for workers that run its code anyway
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import joblib

from audit.io.temporary import SPILLED, temporary_folder

__all__ = ["OnDask", "OnRay", "Workers", "packed", "shielded"]

SAFE = "PYTHONSAFEPATH"  # as `python -P`
KILLED = "a worker process was killed twice over the same runs: fewer jobs need less memory"
UNSENT = "the mechanism cannot be sent to another process: per_run(factory=...) builds it there, or n_jobs=1"
Packed = tuple[str, bytes]  # a name of its own, and the work
_here = threading.local()  # of a worker: what it has unpacked; threads share nothing that work may write into


@contextmanager
def shielded() -> Iterator[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """Keep worker processes that are started meanwhile from importing what lies in the current folder.

    They start as ``python -m``, which looks there first. Yields a function that prepares work to be sent to them, as
    work may start processes of its own.
    """
    before = os.environ.get(SAFE)
    _set("1")
    try:
        yield lambda work: partial(_as_before, work, before)
    finally:
        _set(before)


@cache
def _share_in_own_folder(process: int) -> None:
    """Let joblib put large arrays into a temporary folder of this process, until it ends.

    Its default, memory in /dev/shm, is under names that nobody looks for: if all processes are killed, it stays.
    """
    stack = ExitStack()
    own = os.environ.get("JOBLIB_TEMP_FOLDER")  # a larger disk, say
    os.environ["JOBLIB_TEMP_FOLDER"] = str(stack.enter_context(temporary_folder(SPILLED, Path(own) if own else None)))
    atexit.register(lambda: stack.close() if os.getpid() == process else None)


def _as_before(work: Callable[..., Any], setting: str | None, *arguments: Any) -> Any:
    """Do work in a shielded worker process whose own children are not shielded."""
    _set(setting)
    return work(*arguments)


class Workers:
    """Workers for one function: this process, its threads or processes, or a cluster of dask or ray.

    ``joblib.parallel_config`` chooses. All workers of a cluster take part, whatever `n_jobs` says. `number` tasks are
    worked on at the same time, on `shared` work in threads.
    """

    def __init__(self, work: Callable[[Any], Any], n_jobs: int, *, threads: bool = False) -> None:
        self.work, self.n_jobs, self.prefer = work, n_jobs, "threads" if threads else "processes"
        backend, _ = joblib.parallel.get_active_backend(prefer=self.prefer)
        self.shared = bool(getattr(backend, "uses_threads", False))
        self.cluster: OnDask | OnRay | None = None
        if type(backend).__name__ == "DaskDistributedBackend":
            self.cluster = OnDask(backend.client, packed(work))
        elif type(backend).__name__ == "RayBackend":
            self.cluster = OnRay(packed(work))
        self.number = self.cluster.number if self.cluster else int(joblib.effective_n_jobs(n_jobs))

    def finished(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the place of each task and what the work returned, as they are finished.

        A worker process killed twice over the same work is a ChildProcessError; work that cannot be sent, a ValueError.
        """
        if self.cluster:
            yield from self.cluster.finished(tasks)
        elif self.number == 1 or len(tasks) == 1:
            yield from ((number, self.work(task)) for number, task in enumerate(tasks))
        else:
            yield from self._here(dict(enumerate(tasks)))

    def _here(self, missing: dict[int, Any]) -> Iterator[tuple[int, Any]]:
        """Work in threads or processes; do again what a killed worker process has lost."""
        deaths = 0
        if not self.shared:
            _share_in_own_folder(os.getpid())
        while missing:
            try:
                with (
                    shielded() as as_before,
                    joblib.Parallel(
                        n_jobs=self.n_jobs, prefer=self.prefer, return_as="generator_unordered"
                    ) as parallel,
                ):
                    one = joblib.delayed(partial(_numbered, self.work if self.shared else as_before(self.work)))
                    for number, result in parallel([one(*pair) for pair in missing.items()]):
                        del missing[number]
                        deaths = 0
                        yield number, result
            except BrokenProcessPool:
                deaths += 1
                if deaths > 1:
                    raise ChildProcessError(KILLED) from None
            except Exception as error:
                if type(error).__name__ != "PicklingError":
                    raise
                raise ValueError(UNSENT) from error


def _numbered(work: Callable[[Any], Any], number: int, task: Any) -> tuple[int, Any]:
    return number, work(task)


def _set(setting: str | None) -> None:
    if setting is None:
        os.environ.pop(SAFE, None)
    else:
        os.environ[SAFE] = setting


def packed(work: Any) -> Packed:
    """Return work, closures and lambdas too, as it is sent to `OnDask`, `OnRay` and new processes."""
    try:
        return uuid.uuid4().hex, pickle.dumps(joblib.wrap_non_picklable_objects(work, keep_wrapper=False))
    except Exception as error:  # whatever what it holds raises
        raise ValueError(UNSENT) from error


class OnDask:
    """Workers of a dask cluster."""

    def __init__(self, client: Any, work: Packed) -> None:
        self.client, self.work = client, work
        self._sent: Any = None

    @property
    def number(self) -> int:
        """How many tasks run at the same time."""
        return max(1, int(sum(self.client.ncores().values())))

    def finished(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the number of each task and what came of it, as they are finished."""
        from distributed import KilledWorker

        missing, lost = dict(enumerate(tasks)), 0
        while missing:
            try:
                for number, result in self._once(missing):
                    del missing[number]
                    yield number, result
            except (KilledWorker, CancelledError) as error:
                # The scheduler allows some deaths by itself; what was sent dies with the last worker that had it.
                self._sent, lost = None, lost + 1
                if lost > 1 or isinstance(error, KilledWorker):
                    raise ChildProcessError(KILLED) from None

    def _once(self, tasks: dict[int, Any]) -> Iterator[tuple[int, Any]]:
        from distributed import as_completed

        if self._sent is None:
            try:
                (self._sent,) = self.client.scatter([self.work], broadcast=True, hash=False)
            except Exception as error:  # of many kinds
                raise ConnectionError(f"the dask cluster stopped: {error}") from error
        futures = {self.client.submit(_done, self._sent, task, pure=False): number for number, task in tasks.items()}
        try:
            for future in as_completed(list(futures)):
                yield futures[future], future.result()
        finally:
            if self.client.status == "running":
                self.client.cancel([future for future in futures if not future.done()])


class OnRay:
    """Workers of a ray cluster that the program is connected to."""

    def __init__(self, work: Packed) -> None:
        self.work = work
        self._sent: Any = None

    @property
    def number(self) -> int:
        """How many tasks run at the same time."""
        import ray

        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def finished(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the number of each task and what came of it, as they are finished."""
        import ray

        if self._sent is None:
            self._sent = ray.put(self.work)
        again_once = ray.remote(max_retries=1)(_done)
        pending = {again_once.remote(self._sent, task): number for number, task in enumerate(tasks)}
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


def _done(work: Packed, task: Any) -> Any:
    name, content = work
    if getattr(_here, "name", None) != name:
        try:
            _here.work, _here.name = pickle.loads(content), name
        except ImportError as error:
            raise ValueError(f"workers must be able to import what the mechanism does, got {error}") from error
    return _here.work(task)
