"""What benchmarks measure with: processes of their own, with their time and memory."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def in_a_process(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call a function in a process of its own; return its seconds, processor seconds, peak memory, and what it returns.

    Importing is not timed. What a function itself returns by these names goes before.
    """
    module = sys.modules[function.__module__].__spec__.name  # not __main__, as a benchmark that is run is called
    words = [sys.executable, "-m", __name__, module, function.__name__, json.dumps(arguments, default=str)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def main() -> None:
    """Call the function that is named."""
    module, name, arguments = sys.argv[1:]
    function = getattr(importlib.import_module(module), name)
    begun, work = time.perf_counter(), time.process_time()
    returned = function(*json.loads(arguments))
    measured = {"seconds": time.perf_counter() - begun, "processor": time.process_time() - work}
    # What `resource` tells of memory begins with that of the parent.
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({**measured, "gigabytes": int(line.split()[1]) / 2**20, **returned}))


if __name__ == "__main__":
    main()
