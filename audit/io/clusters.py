"""Work on a cluster of dask or ray: sent to each worker once, then tasks one by one, as its own library does it.

joblib's own way to dask waits for ever where the scheduler has given up a task; its way to ray sends everything again
with every task.
"""

from __future__ import annotations

import pickle  # noqa: TID251  of this very program, for workers that run its code anyway
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

import joblib

__all__ = ["KILLED", "UNSENT", "OnDask", "OnRay", "packed"]

KILLED = "a worker process was killed twice over the same runs: fewer jobs need less memory"
UNSENT = "the mechanism cannot be sent to another process: per_run(factory=...) builds it there, or n_jobs=1"
Packed = tuple[str, bytes]  # a name of its own, and the work
_here = threading.local()  # of a worker: what it has unpacked; threads share nothing that work may write into


def packed(work: Callable[[Any], Any]) -> Packed:
    """Return work, closures and lambdas too, as it is sent to `OnDask` and `OnRay`."""
    try:
        return uuid.uuid4().hex, pickle.dumps(joblib.wrap_non_picklable_objects(work))
    except Exception as error:  # whatever what it holds raises
        raise ValueError(UNSENT) from error


class OnDask:
    """Workers of a dask cluster."""

    def __init__(self, client: Any, work: Packed) -> None:
        self.client, self.work = client, work
        self._sent: Any = None

    @property
    def number(self) -> int:
        """How many tasks they work on at the same time."""
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
        """How many tasks they work on at the same time."""
        import ray

        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def finished(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the number of each task and what came of it, as they are finished."""
        import ray

        if self._sent is None:
            self._sent = ray.put(self.work)
        again_once = ray.remote(max_retries=1)(_done)
        left = {again_once.remote(self._sent, task): number for number, task in enumerate(tasks)}
        try:
            while left:
                (first,), _ = ray.wait(list(left))
                yield left.pop(first), ray.get(first)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
            raise ChildProcessError(KILLED) from None
        except ray.exceptions.RayError as error:
            raise ConnectionError(f"the ray cluster stopped: {str(error).splitlines()[0]}") from error


def _done(work: Packed, task: Any) -> Any:
    """Do a task, on a worker that unpacks the work once."""
    name, content = work
    if getattr(_here, "name", None) != name:
        try:
            _here.work, _here.name = pickle.loads(content), name
        except ImportError as error:
            raise ValueError(f"workers must be able to import what the mechanism does, got {error}") from error
    return _here.work(task)
