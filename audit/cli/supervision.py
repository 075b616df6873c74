"""A command in a child process: its exit code is the one that the child reported, even if it hangs afterwards.

The parent runs no foreign code. Without a reported code there is no verdict. If the parent dies, a guard ends the child
and all processes that it started, except those that left its process group on purpose, as `setsid` does.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from audit.cli.exits import INTERRUPTED, USAGE, complain

__all__ = ["install_signal_handlers", "set_deadline", "supervised"]

GRACE, TICK = 3.0, 0.05  # seconds: for what should end; between looks at whether it has
LONGEST = 1e9  # seconds that a command may have
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Report(ctypes.Structure):
    """What the child tells the parent, in shared memory: code of others may close any file."""

    _fields_ = (
        ("code", ctypes.c_int),  # exit code and 1; 0 before there is one
        ("deadline", ctypes.c_double),  # on the monotonic clock; 0 if there is none
        ("seconds", ctypes.c_double),  # from when it was set to the deadline
        ("advice", ctypes.c_char * 2**14),  # appended to the error message
    )


_reports: dict[int, _Report] = {}  # by the process that may write it: a fork of the child reports nothing


def supervised(work: Callable[[], None], name: str) -> None:
    """Run a command, which leaves by `sys.exit`, in a child process, and leave with the exit code that it reported."""
    # A core would hold the data; whatever the command starts inherits the limit.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _open_standard_streams()
    watched = {signal.SIGCHLD, signal.SIGALRM}
    watched |= {one for one in (*ENDINGS, signal.SIGTSTP) if signal.getsignal(one) != signal.SIG_IGN}  # as by nohup
    signal.signal(signal.SIGCHLD, lambda *_: None)  # some systems drop what would be ignored
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    report = _Report.from_buffer(mmap.mmap(-1, ctypes.sizeof(_Report)))
    reading, writing = os.pipe()
    if (guard := os.fork()) == 0:
        os.setsid()
        os.close(writing)
        child = int(os.read(reading, 32) or 0)
        os.read(reading, 1)  # returns when the parent is gone
        if child:
            _send(os.kill, child, signal.SIGKILL)
            _end_group(child, patient=True)  # the process that removes what workers share is among them
        os._exit(0)
    if (child := os.fork()) == 0:
        os.setsid()  # interrupts of a terminal come through the parent, and once
        os.write(writing, b"%d" % os.getpid())
        os.close(writing)
        os.close(reading)
        install_signal_handlers()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.register_at_fork(after_in_child=lambda: _handle_endings(signal.SIG_DFL))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _reports[os.getpid()] = report
        _run(work)
    code = _watch(child, report, watched, name)
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    sys.exit(code)


def _open_standard_streams() -> None:
    """Open closed standard streams on /dev/null: else the next file gets their number, and what is written there."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115 - for as long as the process lives


def set_deadline(seconds: float | None, advice: str) -> None:
    """Set the deadline, if there is one, and the advice shown if the command ends before its result."""
    if seconds is not None and not 0 < seconds <= LONGEST:
        raise ValueError(f"timeout must be positive and at most {LONGEST:g} seconds, got {seconds:g}")
    if seconds is not None and not _reports:
        raise ValueError(f"timeout needs a command in a process that another watches, got {seconds:g}")
    if (report := _reports.get(os.getpid())) is not None:
        report.advice = os.fsencode(advice)[: _Report.advice.size - 1]
        if seconds is not None:
            report.seconds, report.deadline = seconds, time.monotonic() + seconds


def install_signal_handlers() -> None:
    """Let the first signal interrupt the program, and ignore the others while it cleans up."""

    def interrupt(*_: object) -> None:
        _handle_endings(signal.SIG_IGN)
        raise KeyboardInterrupt

    _handle_endings(interrupt)


def _handle_endings(action: signal.Handlers | Callable[..., None]) -> None:
    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, action)


def _run(work: Callable[[], None]) -> NoReturn:
    """Run the command, and report its exit code; a fork of it reports nothing."""
    code: Any = USAGE
    try:
        work()
    except SystemExit as left:
        code = left.code
    except KeyboardInterrupt:  # in the last steps, when the result is saved
        code = INTERRUPTED
    finally:
        _handle_endings(signal.SIG_IGN)
        if (report := _reports.get(os.getpid())) is not None:
            report.code = 1 + code
    sys.exit(code)


def _watch(child: int, report: _Report, watched: set[signal.Signals], name: str) -> int:
    """Pass signals on to the child, stop it when time is up, and return its exit code, or say why it has none."""
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    asked_at, reported_at = float("inf"), float("inf")
    ended, late, ignored_second_signal = 0, False, False
    while not (ended or late or ignored_second_signal):
        number, now = signal.sigwait(watched), time.monotonic()
        if number == signal.SIGTSTP:
            _send(os.killpg, child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            _send(os.killpg, child, signal.SIGCONT)
        elif number in ENDINGS:
            ignored_second_signal = now > asked_at + GRACE
            asked_at = min(asked_at, now)
            _send(os.kill, child, number)
        reported_at = min(reported_at, now) if report.code else reported_at
        late = now > (reported_at + GRACE if report.code else report.deadline or now)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        _send(os.kill, child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    _end_group(child, patient=not report.code)
    if report.code:
        return int(report.code) - 1
    code, advice = os.waitstatus_to_exitcode(status), os.fsdecode(report.advice)
    if asked_at < float("inf"):
        complain(f"{name}: interrupted before it had cleaned up{advice}")
        return INTERRUPTED
    names = {number.value: number.name for number in signal.Signals}  # real-time signals have none
    by = f"by {names.get(-code, f'signal {-code}')}" if code < 0 else f"with exit code {code} by code that it runs"
    reason = f"the command was ended {by}, before it had finished"
    if late:
        reason = f"the command must end within {report.seconds:g} s, and did not: it was stopped"
    complain(f"{name}: error: {reason}{advice}")
    return USAGE


def _send(kill: Callable[[int, int], None], to: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(to, number)


def _end_group(child: int, *, patient: bool) -> None:
    """End the processes that a child has started; give them time if the child had none to clean up."""
    until = time.monotonic() + GRACE
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGTERM)
        while patient:
            time.sleep(TICK)
            os.killpg(child, 0 if time.monotonic() < until else signal.SIGKILL)
            patient = time.monotonic() < until
