"""Run a command in a child process. Its exit code is the one that the child reported, even if it hangs afterwards.

The parent runs no foreign code. Without a reported code there is no verdict. If the parent dies, a guard process kills
the child and all processes that it started, except those that left its process group, for example by `setsid`.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from audit.cli.exits import INTERRUPTED, USAGE, complain

__all__ = ["install_signal_handlers", "set_deadline", "supervised"]

GRACE, TICK = 3.0, 0.05  # seconds: for a process to end; between checks whether it has
LONGEST = 1e9  # largest timeout in seconds
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Report(ctypes.Structure):
    """Report of the child to the parent, in shared memory, because foreign code may close any file."""

    _fields_ = (
        ("child", ctypes.c_int),  # the only process that may write; its forks report nothing
        ("code", ctypes.c_int),  # exit code + 1; 0 before there is one
        ("deadline", ctypes.c_double),  # on the monotonic clock; 0 if there is none
        ("seconds", ctypes.c_double),  # the timeout that the user gave
        ("advice", ctypes.c_char * 2**14),  # appended to the error message
    )


_report = _Report()  # replaced where a command is supervised


def supervised(work: Callable[[], None], name: str) -> None:
    """Run `work`, which ends by `sys.exit`, in a child process, and exit with the code that the child reported."""
    global _report
    # No core dumps: they would contain the data. Child processes inherit the limit.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # Closed standard streams are opened on /dev/null; else the next opened file would get their output.
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - stays open
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 - stays open
    watched = {signal.SIGCHLD, signal.SIGALRM}
    watched |= {number for number in (*ENDINGS, signal.SIGTSTP) if signal.getsignal(number) != signal.SIG_IGN}
    signal.signal(signal.SIGCHLD, lambda *_: None)  # some systems discard ignored signals even if blocked
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    _report = _Report.from_buffer(mmap.mmap(-1, ctypes.sizeof(_Report)))
    reading, writing = os.pipe()
    if (guard := os.fork()) == 0:
        os.setsid()
        os.close(writing)
        os.read(reading, 1)  # end of file: the parent is gone, and the child has stored its id
        if _report.child:
            _send(os.kill, _report.child, signal.SIGKILL)
            _end_group(_report.child, patient=True)  # the group may have a process that removes shared files
        os._exit(0)
    if (child := os.fork()) == 0:
        os.setsid()  # the parent forwards Ctrl-C, which would otherwise arrive twice
        _report.child = os.getpid()
        os.close(writing)
        os.close(reading)
        install_signal_handlers()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.register_at_fork(after_in_child=lambda: install_signal_handlers(signal.SIG_DFL))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code: Any = USAGE
        try:
            work()
        except SystemExit as left:
            code = left.code
        except KeyboardInterrupt:  # a signal in the last steps, after the result was saved
            code = INTERRUPTED
        finally:
            install_signal_handlers(signal.SIG_IGN)
            if _report.child == os.getpid():  # not a fork of the child
                _report.code = 1 + code
        sys.exit(code)
    code = _watch(child, watched, name)
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    sys.exit(code)


def set_deadline(seconds: float | None, advice: str) -> None:
    """Set the deadline, if there is one, and the advice shown if the command ends before its result."""
    if seconds is not None and not 0 < seconds <= LONGEST:
        raise ValueError(f"timeout must be positive and at most {LONGEST:g} seconds, got {seconds:g}")
    if seconds is not None and not _report.child:
        raise ValueError(f"timeout needs a command in a process that another watches, got {seconds:g}")
    if _report.child == os.getpid():
        _report.advice = os.fsencode(advice)[: _Report.advice.size - 1]
        if seconds is not None:
            _report.seconds, _report.deadline = seconds, time.monotonic() + seconds


def _interrupt(*_: object) -> None:
    install_signal_handlers(signal.SIG_IGN)
    raise KeyboardInterrupt


def install_signal_handlers(action: signal.Handlers | Callable[..., None] = _interrupt) -> None:
    """Let the first signal interrupt the program, and ignore the others while it cleans up."""
    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:  # ignored by nohup, for example
            signal.signal(number, action)


def _watch(child: int, watched: set[signal.Signals], name: str) -> int:
    """Forward signals to the child, kill it at the deadline, and return its exit code or print why it has none."""
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    interrupted_at = reported_at = math.inf
    ended, status, late = 0, 0, False
    while not ended:
        number, now = signal.sigwait(watched), time.monotonic()
        if number == signal.SIGTSTP:
            _send(os.killpg, child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            _send(os.killpg, child, signal.SIGCONT)
        elif number in ENDINGS:
            _send(os.kill, child, signal.SIGKILL if now > interrupted_at + GRACE else number)
            interrupted_at = min(interrupted_at, now)
        reported_at = min(reported_at, now) if _report.code else reported_at
        late = now > (reported_at + GRACE if _report.code else _report.deadline or now)
        if late:
            _send(os.kill, child, signal.SIGKILL)
        ended, status = os.waitpid(child, os.WNOHANG)
    _end_group(child, patient=not _report.code)
    if _report.code:
        return int(_report.code) - 1
    advice = os.fsdecode(_report.advice)
    if interrupted_at < math.inf:
        complain(f"{name}: interrupted before it had cleaned up{advice}")
        return INTERRUPTED
    code, names = os.waitstatus_to_exitcode(status), {number.value: number.name for number in signal.Signals}
    cause = f"by {names.get(-code, f'signal {-code}')}" if code < 0 else f"with exit code {code} by code that it runs"
    reason = f"the command was ended {cause}, before it had finished"
    if late:
        reason = f"the command must end within {_report.seconds:g} s, and did not: it was stopped"
    complain(f"{name}: error: {reason}{advice}")
    return USAGE


def _send(kill: Callable[[int, int], None], to: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(to, number)


def _end_group(child: int, *, patient: bool) -> None:
    """Terminate the process group of a child; if `patient`, let it clean up before it is killed."""
    until = time.monotonic() + GRACE
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGTERM)
        while patient:
            time.sleep(TICK)
            os.killpg(child, 0 if time.monotonic() < until else signal.SIGKILL)
            patient = time.monotonic() < until
