"""How far work is that takes long: a bar on a terminal, and a line a minute where there is none."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from audit.io.terminal import console, has_room
from audit.io.text import printable

__all__ = ["progress_bar"]

PATIENCE = 5.0  # seconds until there is a bar
EVERY = 60.0  # seconds between lines


@contextmanager
def progress_bar(
    what: str, total: int, *, visible: bool | None = True, unit: str = "runs"
) -> Iterator[Callable[[int], None]]:
    """Yield a function that is called with the number of finished steps.

    On a terminal there is a bar after five seconds, elsewhere a line a minute on standard error. None means a bar only,
    and none in worker processes.
    """
    output = console(stderr=True)
    if visible is None:
        visible = output.is_terminal and multiprocessing.current_process().name == "MainProcess"
    if not visible:
        yield lambda steps: None
        return
    if not output.is_terminal:
        with _lines(what, total, unit) as count:
            yield count
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=output, transient=True)
    task = bar.add_task(what, total=total)
    begun = time.monotonic()

    def advance(steps: int) -> None:
        bar.advance(task, steps)
        if not bar.live.is_started and time.monotonic() - begun > PATIENCE and has_room():
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:  # a dumb terminal would get an empty line
            bar.stop()


@contextmanager
def _lines(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Print every minute how much is done, even during a single long step."""
    done, begun, ended = 0, time.monotonic(), threading.Event()

    def advance(steps: int) -> None:
        nonlocal done
        done += steps

    def tell() -> None:
        while not ended.wait(EVERY):
            minutes = (time.monotonic() - begun) / 60
            line = f"plaudit: {what}: {done:,} of {total:,} {unit} after {minutes:.0f} min"
            with suppress(OSError, ValueError):  # closed: nobody to tell
                print(printable(line), file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, name="plaudit-progress", daemon=True)
    if has_room():
        with suppress(RuntimeError):  # as many threads as there may be
            teller.start()
    try:
        yield advance
    finally:
        ended.set()
        if teller.is_alive():
            teller.join()
