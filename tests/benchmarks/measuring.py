"""What benchmarks measure with: processes of their own, with their time and memory."""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any


def in_a_process(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call a function in a new process; return its seconds, processor seconds, peak memory in GiB, and what it returns.

    Importing is not timed. What a function itself returns by these names goes before.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_measured, function, arguments).result()


def _measured(function: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    begun, work = time.perf_counter(), time.process_time()
    returned = function(*arguments)
    measured = {"seconds": time.perf_counter() - begun, "processor": time.process_time() - work}
    # `resource` counts the parent's peak, too.
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return {**measured, "gigabytes": int(line.split()[1]) / 2**20, **returned}
