"""Progress of long work: a bar on a terminal, and elsewhere a line a minute."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from audit.io.terminal import console, has_room
from audit.io.text import printable

__all__ = ["progress_bar"]

PATIENCE = 5.0  # seconds until there is a bar, or a first line that says what is known
EVERY = 60.0  # seconds between other lines, at least


class _Bar(Progress):
    """A bar with a line of words below it."""

    below = ""

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar and the words."""
        yield from super().get_renderables()
        if self.below:
            yield Text(self.below)


@contextmanager
def progress_bar(
    what: str, total: int, *, visible: bool | None = True, unit: str = "runs"
) -> Iterator[Callable[..., None]]:
    """Yield a function that takes finished steps, and words on what they show so far.

    `visible` None: show only a bar, and none in a worker process.
    """
    output, begun, words = console(stderr=True), time.monotonic(), ""
    if visible is None:
        visible = output.is_terminal and multiprocessing.current_process().name == "MainProcess"
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    bar = _Bar(TextColumn("{task.description}", markup=False), *columns, console=output, transient=True)
    task, due, shown = bar.add_task(what, total=total), EVERY, False

    def advance(steps: int, new_words: str = "") -> None:
        nonlocal due, words, shown
        words = new_words or words
        bar.advance(task, steps)
        done, seconds = bar.tasks[0].completed, time.monotonic() - begun
        bar.below = f"{words}; at most {total - done:,.0f} {unit} are left" if words else ""
        if output.is_terminal and seconds > PATIENCE and not bar.live.is_started and has_room():
            bar.start()
        elif not output.is_terminal and seconds > (PATIENCE if words and not shown else due):
            due, shown = seconds + EVERY, bool(words)
            duration = f"{seconds:.0f} s" if seconds < EVERY else f"{seconds / 60:.0f} min"
            line = f"plaudit: {what}: {done:,.0f} of {'at most ' if words else ''}{total:,} {unit} after {duration}"
            with suppress(OSError, ValueError):  # standard error is closed
                print(printable(f"{line}: {words}" if words else line), file=sys.stderr, flush=True)

    try:
        yield advance if visible else lambda steps, new_words="": None
    finally:
        if bar.live.is_started:  # a dumb terminal would get an empty line
            bar.stop()
