"""Work on several things at the same time: in threads, in other processes, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib

from audit.io.clusters import KILLED, UNSENT, OnDask, OnRay, packed

__all__ = ["AsBefore", "Workers", "shielded"]

SAFE = "PYTHONSAFEPATH"  # as `python -P`


@dataclass(frozen=True)
class AsBefore:
    """Work that a shielded worker process does as if it were none: what it starts itself is not shielded."""

    work: Callable[..., Any]
    setting: str | None

    def __call__(self, *arguments: Any) -> Any:
        """Call the work, after the worker process has been started."""
        _set(self.setting)
        return self.work(*arguments)


@contextmanager
def shielded() -> Iterator[Callable[[Callable[..., Any]], AsBefore]]:
    """Keep worker processes that are started meanwhile from importing what lies in the current folder.

    They start as ``python -m``, which looks there first. Once started they look where this process does. Yields what
    makes of work what is to be sent to them, where it may start processes of its own.
    """
    before = os.environ.get(SAFE)
    _set("1")
    try:
        yield lambda work: AsBefore(work, before)
    finally:
        _set(before)


class Workers:
    """All that do the same work: this program alone, threads or processes of it, or a cluster of dask or ray.

    ``joblib.parallel_config`` chooses. The work is sent to each worker of a cluster once, and all of them take part,
    whatever `n_jobs` says. `number` tasks are worked on at the same time, on `shared` work in threads.
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
        """Begin again with what a killed worker process has taken along."""
        deaths = 0
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
