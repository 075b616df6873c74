"""A progress bar for work that takes longer than two seconds; silent where nobody watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from audit.io.terminal import console

__all__ = ["progress_bar"]

PATIENCE = 2.0  # seconds


@contextmanager
def progress_bar(what: str, total: int, *, shown: bool = True, unit: str = "runs") -> Iterator[Callable[[int], None]]:
    """Yield a function that is told how many steps have just been finished; silent off a terminal."""
    shown_on = console(stderr=True)
    if not (shown and shown_on.is_terminal):
        yield lambda steps: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=shown_on, transient=True)
    task = bar.add_task(what, total=total)
    begun = time.monotonic()

    def advance(steps: int) -> None:
        bar.advance(task, steps)
        if not bar.live.is_started and time.monotonic() - begun > PATIENCE:
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:  # a dumb terminal would get an empty line
            bar.stop()
