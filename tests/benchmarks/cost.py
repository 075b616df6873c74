"""The cost beside the runs, in processor time of whole processes: `make bench`. Nothing is asserted.

Each process is followed by another with what it does without: imports, or an empty cache of compiled functions. Ratios
are medians over such pairs.
"""

import os
import resource
import runpy
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT, PAIRS = Path(__file__).resolve().parents[2], 5
AUDIT = """
import audit, numpy as np
def noisy(data, size, rng):
    return data + rng.laplace(size=(size, {entries}))
def records(data, size, rng):
    return list(zip(rng.integers(9, size=size).tolist(), (data[0] + rng.laplace(size=size)).round(2).tolist()))
audit.measure_loss({name}, audit.NeighborPair.declared([0], [1], "add_remove"), audit.PureDP(1), size={size}, rng=1)
"""
COMMAND = "from audit.cli import main; main({!r}.split())"
FILES = "--spec survey.json --data survey.csv --areas region,district --geo districts.csv"
STATS, COLD = "import scipy.stats, scipy.optimize\n", "# an empty cache\n"
CASES = {
    "first audit, 1 entry": (AUDIT.format(name="noisy", entries=1, size=20_000), STATS),
    "first audit, 5 entries": (AUDIT.format(name="noisy", entries=5, size=20_000), STATS),
    "audit of records": (AUDIT.format(name="records", entries=1, size=200_000), STATS),
    "audit gdpc": (
        COMMAND.format("audit gdpc --seed 1"),
        "import matplotlib.figure, algorithms.systems; algorithms.systems.systems()\n",
    ),
    "--version": (COMMAND.format("--version"), "import audit.cli.app\n"),
    "secure noise": ("from algorithms.systems import secure_noise; secure_noise()", "import opendp.prelude\n"),
    "release topdown": (COMMAND.format(f"release topdown {FILES} --seed 1 --out release"), COLD),
}


def seconds(code: str) -> float:
    """Return the processor seconds of a new process and its workers; compiled functions are in the folder `cache`."""
    if code.startswith(COLD):
        shutil.rmtree("cache", ignore_errors=True)
    shutil.rmtree("release", ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": "cache"}
    subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    table = Table("process", "seconds", "with", "seconds", "ratio", title="The cost beside the runs")
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder, chdir(folder):
        runpy.run_path(str(ROOT / "examples" / "survey.py"))
        shutil.copy(ROOT / "examples" / "survey.json", ".")
        for name, (code, burden) in CASES.items():
            pairs = [(seconds(code), seconds(burden + code)) for _ in range(PAIRS + 1)][1:]  # the first fills caches
            own, others = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(one / other for one, other in pairs)
            table.add_row(name, f"{own:.2f}", burden.strip(), f"{others:.2f}", f"{ratio:.2f}")
    Console().print(table)
