"""Where the work of a command runs."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Annotated

import typer

__all__ = ["Address", "Backend", "on_backend"]

BACKENDS = {"loky": "loky", "threads": "threading", "dask": "dask", "ray": "ray"}  # as joblib calls them
Backend = Annotated[
    str,
    typer.Option(
        help="Where the work runs: loky (processes of this machine), threads, dask or ray. Default: threads for "
        "mechanisms that can share them, loky for others."
    ),
]
Address = Annotated[
    str,
    typer.Option(
        help="Address of a dask scheduler, such as tcp://host:8786, or of a ray cluster, such as ray://host:10001. "
        "Default: a cluster of this machine, with --jobs workers, for this command alone."
    ),
]


@contextmanager
def on_backend(name: str, address: str, jobs: int) -> Iterator[None]:
    """Use a backend for all runs in the context; without an `address`, a cluster of this machine with so many jobs."""
    import joblib

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
            except Exception as error:  # of many kinds: of sockets, of names of hosts, of versions that differ
                at = f"address must be that of a {name} cluster with plaudit on every worker, got {address!r}"
                where = at if address else f"{name} must start"
                raise ValueError(f"{where}: {error}") from error
        if name:
            stack.enter_context(joblib.parallel_config(backend=BACKENDS[name]))
        yield


@contextmanager
def _dask(address: str, workers: int) -> Iterator[None]:
    from distributed import Client, LocalCluster

    from audit.io.workers import shielded

    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is told in one line, by us
    with ExitStack() as stack:
        if not address:
            with shielded():
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
            address = stack.enter_context(cluster).scheduler_address
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions of libraries differ, which need not matter
            client = stack.enter_context(Client(address, timeout=10))
        installed = client.run(lambda: find_spec("audit") is not None)
        if not all(installed.values()):
            raise ValueError(f"{list(installed.values()).count(False)} of {len(installed)} workers have none")
        yield


@contextmanager
def _ray(address: str, workers: int) -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # plaudit calls nobody
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
