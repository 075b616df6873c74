"""Output to the terminal, without the control characters of hostile text."""

from __future__ import annotations

import io
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

from audit.io.text import printable, shown

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["at_work", "console", "guarded", "has_room", "say"]

WIDTH = 150  # columns, if the output is no terminal
THREAD = 2**26  # bytes of address space: more than a thread needs


@contextmanager
def guarded() -> Iterator[None]:
    """Remove control characters from standard output and standard error, except the colors of `console`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_Guarded, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def console(*, stderr: bool = False) -> Console:
    """Return a console without markup for tables and progress; it has 150 columns if there is no terminal."""
    from rich.console import Console, ConsoleOptions, RenderableType  # slow to import
    from rich.segment import Segment

    class Plain(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=shown(segment.text))

    stream = sys.stderr if stderr else sys.stdout
    terminal = Plain(file=getattr(stream, "unguarded", stream), highlight=False, markup=False, emoji=False)
    if not terminal.is_terminal:
        terminal.width = WIDTH
    return terminal


def say(*lines: str, style: str = "") -> None:
    """Print lines, of which a terminal wraps each between words."""
    output = console()
    if lines:  # one call, since there may be thousands
        output.print("\n".join(map(printable, lines)), style=style, soft_wrap=not output.is_terminal)


@contextmanager
def at_work(words: str) -> Iterator[None]:
    """Show a status line on a terminal during the context."""
    output = console(stderr=True)
    with output.status(words) if output.is_terminal and has_room() else nullcontext():
        yield


def has_room() -> bool:
    """Return whether memory is left for a thread; without it `Thread.start` waits forever (CPython #140746)."""
    try:
        mmap.mmap(-1, THREAD).close()
    except OSError:
        return False
    return True


class _Guarded:
    """A stream that replaces control characters of the text written to it by spaces."""

    def __init__(self, unguarded: TextIO) -> None:
        self.unguarded = unguarded
        if isinstance(unguarded, io.TextIOWrapper):  # else an unencodable name would cost the verdict
            unguarded.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        self.unguarded.write(shown(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)
