"""A command in a process of its own: it has finished when it has reported its exit code, not when it is gone.

The parent runs no code of others, and holds three rules. Where no code was reported, there is no verdict. Where one
was, the child has a grace of seconds to end. Where the parent is gone, the child ends with all that it has started, but
for what has left its process group on purpose, as `setsid` does: no process can follow that everywhere.
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
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from audit.cli.exits import INTERRUPTED, USAGE, complain
from audit.io.temporary import hooks, look_for_left, take_left

__all__ = ["expect", "heed_endings", "supervised"]

GRACE, TICK = 3.0, 0.05  # seconds: that what should end has for that; between looks at whether it has
LONGEST = 1e9  # seconds that a command may have
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Report(ctypes.Structure):
    """What the child tells the parent, in memory that both have: code of others may close any file."""

    _fields_ = (
        ("code", ctypes.c_int),  # exit code and 1; 0 before there is one
        ("deadline", ctypes.c_double),  # on the monotonic clock; 0 if there is none
        ("seconds", ctypes.c_double),  # from when it was set to the deadline
        ("advice", ctypes.c_char * 2**14),  # to whoever is told that the command ended before it had finished
        ("folders", ctypes.c_char * 2**14),  # a line each: where it may leave what is temporary
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
    if (guard := os.fork()) == 0:  # ends the child, and all that it has started, once the parent is gone
        os.setsid()
        os.close(writing)
        child = int(os.read(reading, 32) or 0)
        os.read(reading, 1)  # returns when nobody can write any more
        if child:
            _send(os.kill, child, signal.SIGKILL)
            _end_group(child, patient=True)  # the process that removes what workers share is among them
        os._exit(0)
    if (child := os.fork()) == 0:
        os.setsid()  # interrupts of a terminal come through the parent, and once
        os.write(writing, b"%d" % os.getpid())
        os.close(writing)
        os.close(reading)
        heed_endings()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.register_at_fork(after_in_child=lambda: _answer_endings(signal.SIG_DFL))  # without a word
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _reports[os.getpid()] = report
        hooks.append(lambda folder: _note(report, folder))
        _finish(work)
    code = _watch(child, report, watched, name)
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    if not report.code:
        for folder in os.fsdecode(report.folders).split("\n")[:-1]:
            look_for_left(Path(folder))
        for words in take_left():
            complain(f"{name}: {words}")
    sys.exit(code)


def _open_standard_streams() -> None:
    """Let what is closed of them lead nowhere: else the next file has its number, and gets what is written there."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115 - for as long as the process lives


def expect(seconds: float | None, advice: str) -> None:
    """Say by when the command must have ended, if so, and what to add where it ends before it has finished."""
    if seconds is not None and not 0 < seconds <= LONGEST:
        raise ValueError(f"timeout must be positive and at most {LONGEST:g} seconds, got {seconds:g}")
    if seconds is not None and not _reports:
        raise ValueError(f"timeout needs a command in a process that another watches, got {seconds:g}")
    if (report := _reports.get(os.getpid())) is not None:
        report.advice = os.fsencode(advice)[: _Report.advice.size - 1]
        if seconds is not None:
            report.seconds, report.deadline = seconds, time.monotonic() + seconds


def heed_endings() -> None:
    """Let the first request to end interrupt the program, and none after it disturb how that cleans up."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        _answer_endings(signal.SIG_IGN)
        raise KeyboardInterrupt

    _answer_endings(interrupt)


def _note(report: _Report, folder: Path) -> None:
    """Tell the parent of a folder that is written into, if there is room."""
    folders = report.folders + os.fsencode(folder) + b"\n"
    if len(folders) < _Report.folders.size:
        report.folders = folders


def _answer_endings(action: signal.Handlers | Callable[[int, FrameType | None], None]) -> None:
    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, action)


def _finish(work: Callable[[], None]) -> NoReturn:
    """Run the command, and report its exit code; a fork of it reports nothing."""
    code: Any = USAGE
    try:
        work()
    except SystemExit as left:
        code = left.code
    except KeyboardInterrupt:  # in the last steps, when all is said
        code = INTERRUPTED
    finally:
        _answer_endings(signal.SIG_IGN)
        if (report := _reports.get(os.getpid())) is not None:
            report.code = 1 + code
    sys.exit(code)


def _watch(child: int, report: _Report, watched: set[signal.Signals], name: str) -> int:
    """Pass on what the child is asked, stop it when time is up, and return its exit code, or say why it has none."""
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    asked_at, reported_at = float("inf"), float("inf")
    ended, late, deaf = 0, False, False
    while not (ended or late or deaf):
        number, now = signal.sigwait(watched), time.monotonic()
        if number == signal.SIGTSTP:
            _send(os.killpg, child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            _send(os.killpg, child, signal.SIGCONT)
        elif number in ENDINGS:
            deaf = now > asked_at + GRACE
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
    advice = os.fsdecode(report.advice)
    if asked_at < float("inf"):
        complain(f"{name}: interrupted before it had cleaned up{advice}")
        return INTERRUPTED
    code = os.waitstatus_to_exitcode(status)
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
    """End what is left of what a child has started; give it time to clean up where the child has not."""
    until = time.monotonic() + GRACE
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGTERM)
        while patient:
            time.sleep(TICK)
            os.killpg(child, 0 if time.monotonic() < until else signal.SIGKILL)
            patient = time.monotonic() < until
