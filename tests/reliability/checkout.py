"""A copy of the sources whose files may be changed, and what its tests say."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_COPIED = (".*", "__pycache__", "build", "dist")
MOST_MEMORY = 8 << 30  # bytes that tests may ask for: a fault in an exponent may ask for all there is


def copied(folder: Path, root: Path = ROOT) -> Path:
    """Copy the sources into a folder that is not there yet; return it."""
    return shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))


@contextmanager
def with_text(path: Path, text: str) -> Iterator[None]:
    """Let a file have another text for a while."""
    source = path.read_text("utf-8")
    path.write_text(text, "utf-8")
    try:
        yield
    finally:
        path.write_text(source, "utf-8")


def run_tests(folder: Path, *words: str, limit: float | None = None) -> tuple[int | None, str]:
    """Run tests of a copy until one fails; return pytest's exit code, None beyond so many seconds, and what it prints.

    Nothing that was compiled is kept: two texts of one file may have the same size and the same second.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-x", "--numprocesses", "0", *words],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)),
    ) as tests:
        try:
            printed, _ = tests.communicate(timeout=limit)
            return tests.returncode, printed
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(tests.pid, signal.SIGKILL)  # with whatever the tests have left running
