"""A command in a process of its own: it has finished when it has reported its exit code, not when it is gone.

The parent runs no code of others, and holds three rules. Where no code was reported, there is no verdict. Where one
was, the child has a grace of seconds to end. Where the parent is gone, the child ends with all that it has started.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from audit.cli.exits import INTERRUPTED, USAGE, complain

__all__ = ["expect", "heed_endings", "supervised"]

GRACE, TICK = 3.0, 0.05  # seconds: that what should end has for that; between looks at whether it has
LONGEST = 1e9  # seconds that a command may have
ENDINGS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
GUARDED, CODE, WRITTEN, TERMS, SIZE = 0, 1, 2, 3, 2**16  # bytes of a report: flag, exit code and 1, flag, JSON; all

_reporting: list[tuple[int, mmap.mmap]] = []  # the child, and its report: memory, since code may close any file


def supervised(work: Callable[[], None], name: str) -> None:
    """Run a command, which leaves by `sys.exit`, in a child process, and leave with the exit code that it reported."""
    if not hasattr(os, "fork"):  # nothing is watched there
        work()
        return
    _open_standard_streams()
    watched = {signal.SIGCHLD, signal.SIGALRM}
    watched |= {one for one in (*ENDINGS, signal.SIGTSTP) if signal.getsignal(one) != signal.SIG_IGN}  # as by nohup
    signal.signal(signal.SIGCHLD, lambda *_: None)  # some systems drop what would be ignored
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    parent, report = os.getpid(), mmap.mmap(-1, SIZE)
    if (child := os.fork()) == 0:
        os.setsid()  # interrupts of a terminal come through the parent, and once
        heed_endings()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.register_at_fork(after_in_child=lambda: _answer_endings(signal.SIG_DFL))  # without a word
        while not report[GUARDED]:
            if os.getppid() != parent:
                os._exit(USAGE)
            time.sleep(0.001)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _reporting[:] = [(os.getpid(), report)]
        _finish(work)
    if (guard := os.fork()) == 0:
        os.setsid()
        report[GUARDED] = 1
        while os.getppid() == parent:
            time.sleep(TICK)
        for kill in (os.killpg, os.kill):
            _send(kill, child, signal.SIGKILL)
        os._exit(0)
    code = _watch(child, report, watched, name)
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
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
    if seconds is not None and not _reporting:
        raise ValueError(f"timeout needs a system where processes watch each other, got {seconds:g}")
    for child, report in _reporting:
        until = None if seconds is None else time.monotonic() + seconds
        terms = json.dumps({"seconds": seconds, "until": until, "advice": advice}).encode() + b"\n"
        if os.getpid() == child and len(terms) <= SIZE - TERMS:
            report[TERMS : TERMS + len(terms)] = terms
            report[WRITTEN] = 1


def heed_endings() -> None:
    """Let the first request to end interrupt the program, and none after it disturb how that cleans up."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        _answer_endings(signal.SIG_IGN)
        raise KeyboardInterrupt

    _answer_endings(interrupt)


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
    _answer_endings(signal.SIG_IGN)
    for child, report in _reporting:
        if os.getpid() == child:
            report[CODE] = 1 + code
    sys.exit(code)


def _watch(child: int, report: mmap.mmap, watched: set[signal.Signals], name: str) -> int:
    """Pass on what the child is asked, stop it when time is up, and return its exit code, or say why it has none."""
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    asked, reported = float("inf"), float("inf")
    ended, late, deaf = 0, False, False
    while not (ended or late or deaf):
        number, now = signal.sigwait(watched), time.monotonic()
        if number == signal.SIGTSTP:
            _send(os.killpg, child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            _send(os.killpg, child, signal.SIGCONT)
        elif number in ENDINGS:
            deaf = now > asked + GRACE
            asked = min(asked, now)
            _send(os.kill, child, number)
        reported = min(reported, now) if report[CODE] else reported
        late = now > (reported + GRACE if report[CODE] else _terms(report)["until"] or now)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        _send(os.kill, child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    terms = _terms(report)
    _end_group(child, patient=not report[CODE])
    if report[CODE]:
        return report[CODE] - 1
    if asked < float("inf"):
        complain(f"{name}: interrupted before it had cleaned up{terms['advice']}")
        return INTERRUPTED
    code = os.waitstatus_to_exitcode(status)
    names = {number.value: number.name for number in signal.Signals}  # real-time signals have none
    by = f"by {names.get(-code, f'signal {-code}')}" if code < 0 else f"with exit code {code} by code that it runs"
    reason = f"the command was ended {by}, before it had finished"
    if late:
        reason = f"the command must end within {terms['seconds']:g} s, and did not: it was stopped"
    complain(f"{name}: error: {reason}{terms['advice']}")
    return USAGE


def _terms(report: mmap.mmap) -> dict[str, Any]:
    """Return what the child is to hold, once all of that is written."""
    if not report[WRITTEN]:
        return {"until": None, "advice": ""}
    return dict(json.loads(report[TERMS:].partition(b"\n")[0]))


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
