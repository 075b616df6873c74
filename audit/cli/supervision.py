"""A command in a process of its own, watched by another: it has finished when it says so, not when it is gone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from audit.cli.exits import INTERRUPTED, USAGE, complain

__all__ = ["expect", "heed_endings", "supervised"]

GRACE = 3.0  # seconds that what was asked to end has for that
GLANCE = 0.02  # seconds between looks at whether it has
ENDINGS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

_watcher: list[int] = []  # where a command is watched: the process that does, and the pipe to it


def supervised(work: Callable[[], None], name: str) -> None:
    """Run a command, which leaves by `sys.exit`, in a child process, and leave with the exit code that it told.

    The code that a command runs may end its process in any way and with any code, or hang where nothing can be told to
    it. The watching process runs none of it. So whatever ends the child, 0, 1 and 3 are verdicts that it reached; and
    whatever ends the watcher ends the child, with all processes that it has started.

    Parameters
    ----------
    work : callable
        The command. Requests to end interrupt it once, and do not disturb how it cleans up.
    name : str
        What its errors begin with.
    """
    if not hasattr(os, "fork"):  # nothing is watched there
        work()
        return
    _open_standard_streams()
    watched = {signal.SIGCHLD, signal.SIGALRM, signal.SIGUSR1}
    watched |= {one for one in (*ENDINGS, signal.SIGTSTP) if signal.getsignal(one) != signal.SIG_IGN}  # as by nohup
    signal.signal(signal.SIGCHLD, lambda *_: None)  # some systems drop what would be ignored
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    guard, lifeline = _guard()
    watcher, (reading, writing) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()  # interrupts of a terminal come through the watcher, and once
        os.write(lifeline, str(os.getpid()).encode())  # here: the watcher may be killed before it could
        os.close(lifeline)
        heed_endings()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _watcher[:] = [watcher, writing]
        _finish(work)
    os.close(writing)
    os.set_blocking(reading, False)
    code = _watch(child, reading, watched, name)
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    sys.exit(code)


def _open_standard_streams() -> None:
    """Let what is closed of them lead nowhere: else the next pipe has its number, and gets what is written there."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115 - for as long as the process lives


def expect(seconds: float | None, advice: str) -> None:
    """Say by when the command must have ended, if so, and what to add where it ends before it has finished.

    Raises
    ------
    ValueError
        If there is no such time, or nobody who could end the command.
    """
    if seconds is not None and not 0 < seconds < float("inf"):
        raise ValueError(f"timeout must be positive and finite, got {seconds:g}")
    if seconds is not None and not _watcher:
        raise ValueError(f"timeout needs a system where processes watch each other, got {seconds:g}")
    _tell(seconds=seconds, advice=advice)


def heed_endings() -> None:
    """Let the first request to end interrupt the program, and none after it disturb how that cleans up."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        _ignore_endings()
        raise KeyboardInterrupt

    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


def _ignore_endings() -> None:
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)


def _finish(work: Callable[[], None]) -> NoReturn:
    """Run the command, and tell its exit code: that is the mark of having finished."""
    code: Any = USAGE
    try:
        work()
    except SystemExit as left:
        code = left.code
    except KeyboardInterrupt:  # in the last steps, when all is said
        code = INTERRUPTED
    _ignore_endings()
    _tell(code=code)
    sys.exit(code)


def _tell(**message: Any) -> None:
    """Send a message to the process that watches this one; a fork of this one is not watched."""
    if _watcher and os.getppid() == _watcher[0]:
        with contextlib.suppress(OSError):  # of a pipe closed by code that closes whatever it finds
            os.write(_watcher[1], json.dumps(message).encode() + b"\n")
            os.kill(_watcher[0], signal.SIGUSR1)


def _guard() -> tuple[int, int]:
    """Start a process that waits until this one is gone, and ends what it is told of; return it and the pipe to it."""
    reading, writing = os.pipe()
    guard = os.fork()
    if guard == 0:
        os.setsid()
        os.close(writing)
        told = b""
        while part := os.read(reading, 64):  # nothing once nobody is left who could write
            told += part
        for kill in (os.killpg, os.kill) if told else ():
            with contextlib.suppress(OSError):
                kill(int(told), signal.SIGKILL)
        os._exit(0)
    os.close(reading)
    return guard, writing


def _watch(child: int, reading: int, watched: set[signal.Signals], name: str) -> int:
    """Pass on what the child is asked, stop it when time is up, and return its exit code, or say why it has none."""
    told: dict[str, Any] = {"advice": ""}
    asked: float | None = None
    status, reason = None, ""
    while status is None and not reason:
        number = signal.sigwait(watched)
        told |= _messages(reading)
        if seconds := told.pop("seconds", None):
            told["limit"] = seconds
            signal.setitimer(signal.ITIMER_REAL, seconds)
        if number == signal.SIGUSR1:
            continue
        if number == signal.SIGCHLD:
            ended, found = os.waitpid(child, os.WNOHANG)
            status = found if ended else None
        elif number == signal.SIGALRM:
            reason = f"the command must end within {told['limit']:g} s, and did not: it was stopped"
        elif number == signal.SIGTSTP:
            _send(os.killpg, child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            _send(os.killpg, child, signal.SIGCONT)
        elif asked is None:
            asked = time.monotonic()
            _send(os.kill, child, number)
        elif time.monotonic() - asked > GRACE:
            reason = "stopped where it did not end"
    if status is None:
        _send(os.kill, child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    told |= _messages(reading)
    _end_group(child, patient="code" not in told)
    if "code" in told:
        return int(told["code"])
    if asked is not None:
        complain(f"{name}: interrupted before it had cleaned up{told['advice']}")
        return INTERRUPTED
    if not reason:
        code = os.waitstatus_to_exitcode(status)
        by = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code} by code that it runs"
        reason = f"the command was ended {by}, before it had finished"
    complain(f"{name}: error: {reason}{told['advice']}")
    return USAGE


def _messages(reading: int) -> dict[str, Any]:
    """Return what the child has told since the last look."""
    told: dict[str, Any] = {}
    with contextlib.suppress(BlockingIOError):
        for line in os.read(reading, 2**16).splitlines():
            told |= json.loads(line)
    return told


def _send(kill: Callable[[int, int], None], to: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(to, number)


def _end_group(child: int, *, patient: bool) -> None:
    """End what is left of what a child has started; give it time to clean up where the child has not."""
    until = time.monotonic() + GRACE
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGTERM)
        while patient:
            time.sleep(GLANCE)
            os.killpg(child, 0 if time.monotonic() < until else signal.SIGKILL)
            patient = time.monotonic() < until
