"""Runs of the command in a folder of their own, each in a process that can be ended and that nothing outlives."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import multiprocessing.process
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from audit import cli
from tests.fuzz import holding
from tests.fuzz.answers import named_results
from tests.fuzz.cases import Case
from tests.fuzz.holding import Outcome, asked_for, tree

GRACE = 20.0  # seconds for what was killed to be gone
MOST_MEMORY = 8 * 2**30
BROWSER = "true"  # the program that ends at once: `explore --open` shows its page to nobody
HEAVY = ("duckdb", "opendp.prelude", "pandas", "pyarrow.parquet", "rich.status", "rich.table", "sklearn.ensemble")
HEAVY += ("sklearn.linear_model", "matplotlib.backends.backend_svg", "matplotlib.backends.backend_agg", "scipy.stats")
HEAVY += ("jinja2", "joblib", "sklearn.tree", "scipy.optimize", "scipy.sparse", "numba", "piqp")

Command = Callable[[list[str]], None]


def warm() -> None:
    """Import all that a command may need, once for all runs."""
    import algorithms
    import audit

    for package in (audit, algorithms):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "__main__" not in module.name and ".data." not in module.name:
                importlib.import_module(module.name)
    for name in HEAVY:
        with suppress(ImportError):
            importlib.import_module(name)
    atexit.register(gc.unfreeze)
    gc.freeze()  # else the first collection of every copy of this process would touch all of its memory


def run(case: Case, desk: Path, command: Command = cli.main) -> Outcome:
    """Run a case on a copy of the desk, and return what it leaves."""
    with tempfile.TemporaryDirectory() as above:
        folder, spill = Path(above, "desk"), Path(above, "spill")
        shutil.copytree(desk, folder, symlinks=True)
        spill.mkdir()
        for path, content in case.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        before, written = tree(folder), asked_for(case.arguments, folder)
        changed = set() if case.kind == "settings" else {(folder / path).resolve() for path in case.files}
        read = [(path not in changed, body) for path, body in named_results(case.arguments, folder)]
        with open(Path(above, "out"), "w+b") as out, open(Path(above, "err"), "w+b") as err:
            streams = (out.fileno(), err.fileno())
            process = multiprocessing.get_context("fork").Process(
                target=_child, args=(case, folder, spill, streams, command)
            )
            with warnings.catch_warnings():  # of a process with threads: the child has none of them and needs none
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            code = _ended(process)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "backslashreplace"))
        return Outcome(code, *texts, before, tree(folder), sorted(os.listdir(spill)), written, read)


def _child(case: Case, folder: Path, spill: Path, files: tuple[int, int], command: Command) -> None:
    """Run a case in a copy of the process that has imported everything, or as a shell does."""
    settle(folder, spill, files)
    if case.alone:
        os.environ["PYTHONPATH"] = str(Path(cli.__file__).parents[2])
        os.execv(sys.executable, [sys.executable, "-P", "-m", "plaudit", *case.arguments])
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    command(list(case.arguments))


def settle(folder: Path, spill: Path, files: tuple[int, int]) -> None:
    """Make a copy of this process what a shell starts: with a session, standard streams and a folder of its own."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, file in enumerate(files, 1):
        os.dup2(file, number)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(number, "w", closefd=False)) for number in (1, 2))
    tempfile.tempdir = os.environ["TMPDIR"] = str(spill)
    os.environ["BROWSER"] = BROWSER
    os.chdir(folder)
    warnings.resetwarnings()
    warnings.simplefilter("default")
    sys.path[:] = [str(folder) if entry == "" else entry for entry in sys.path]


def _ended(process: multiprocessing.process.BaseProcess) -> int:
    """Wait for a process, kill it if that takes too long, end whatever it leaves running, and return its code."""

    def wait(seconds: float) -> None:
        deadline = time.monotonic() + seconds  # `join` waits without one for a process that became another
        while process.exitcode is None and time.monotonic() < deadline:
            time.sleep(0.005)

    assert process.pid is not None
    wait(holding.LIMIT)
    if process.exitcode is None:
        os.kill(process.pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    wait(GRACE)
    return -signal.SIGKILL if process.exitcode is None else process.exitcode
