"""Progress of long work: a bar on a terminal, and elsewhere a line a minute."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from audit.io.terminal import console, has_room
from audit.io.text import printable

__all__ = ["progress_bar"]

PATIENCE = 5.0  # seconds until there is a bar
EVERY = 60.0  # seconds between lines, at least


@contextmanager
def progress_bar(
    what: str, total: int, *, visible: bool | None = True, unit: str = "runs"
) -> Iterator[Callable[..., None]]:
    """Yield a function that takes finished steps, and what is known so far.

    `visible` None: show only a bar, and none in a worker process.
    """
    output, begun, subject = console(stderr=True), time.monotonic(), what
    if visible is None:
        visible = output.is_terminal and multiprocessing.current_process().name == "MainProcess"
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    words = TextColumn("{task.description}", markup=False)
    bar = Progress(words, *columns, console=output, transient=True)
    task, lines = bar.add_task(what, total=total), 0

    def advance(steps: int, known: str = "") -> None:
        nonlocal lines, what
        if known:
            what = f"{subject}: {known}"
            bar.update(task, description=what)
        bar.advance(task, steps)
        seconds = time.monotonic() - begun
        if output.is_terminal and seconds > PATIENCE and not bar.live.is_started and has_room():
            bar.start()
        elif not output.is_terminal and seconds > EVERY * (lines + 1):
            lines = int(seconds / EVERY)
            line = f"plaudit: {what}: {bar.tasks[0].completed:,.0f} of {total:,} {unit} after {seconds / 60:.0f} min"
            with suppress(OSError, ValueError):  # standard error is closed
                print(printable(line), file=sys.stderr, flush=True)

    try:
        yield advance if visible else lambda steps, known="": None
    finally:
        if bar.live.is_started:  # a dumb terminal would get an empty line
            bar.stop()
