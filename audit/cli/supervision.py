"""A command that must end in time, whatever the code that it runs does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from types import FrameType

__all__ = ["run_within"]

GRACE = 3.0  # seconds that an interrupted audit has to say so


def run_within(arguments: list[str], seconds: float, advice: str) -> int:
    """Run the command in a process group of its own, and end the whole group when time is up.

    A thread that hangs cannot be stopped from within, and code that holds the interpreter's lock not even be told.
    """
    if not 0 < seconds < float("inf"):
        raise ValueError(f"timeout must be positive and finite, got {seconds:g}")
    # -P: a folder called audit beside the user is not this one.
    child = subprocess.Popen([sys.executable, "-P", "-m", "plaudit", *arguments], start_new_session=True)
    endings = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, _as_interrupt) for number in endings}
    try:
        code = child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the audit must end within {seconds:g} s, and did not: it was stopped{advice}") from None
    except KeyboardInterrupt:
        os.killpg(child.pid, signal.SIGINT)  # it says what it has finished
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=GRACE)
        raise
    finally:
        _end(child)
        for number, handler in before.items():
            signal.signal(number, handler)
    if code < 0:
        raise ChildProcessError(f"the audit was ended by {signal.Signals(-code).name}{advice}")
    return code


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end(child: subprocess.Popen[bytes]) -> None:
    """End what is left of the group: worker processes outlive a parent that was killed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
