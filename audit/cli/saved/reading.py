"""Reading of saved results; those that a command is not for are left out, with a line that says so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.io.text import printable

if TYPE_CHECKING:
    from audit.results.folder import Results

__all__ = ["Saved", "audits_in", "leave_out", "with_progress"]

Saved = Annotated[
    list[Path], typer.Argument(help="Saved results (*.json), folders of them, or reports of pytest --audit-report.")
]


def audits_in(path: Path) -> Results:
    """Read saved audits, at least one, and say in one line how many other results are left out."""
    from audit.results.folder import read_results

    saved = read_results(path, needed=("audits",), through=with_progress("reading"))
    leave_out([path], estimates=len(saved.estimates), replays=len(saved.replays))
    return saved


def with_progress(what: str) -> Callable[[Collection[Any]], Iterator[Any]]:
    """Return a function that shows progress while it passes results on."""
    from audit.sampling.progress import progress_bar

    def one_by_one(results: Collection[Any]) -> Iterator[Any]:
        with progress_bar(what, len(results), unit="results") as advance:
            for result in results:
                yield result
                advance(1)

    return one_by_one


def leave_out(paths: list[Path], **numbers: int) -> None:
    """Print in one line how many results of which kind are left out, if any are."""
    from audit.results.formatting import number_of

    counts = [number_of(number, kind.removesuffix("s")) for kind, number in numbers.items() if number]
    if counts:
        print(f"plaudit: {' and '.join(counts)} in {printable(', '.join(map(str, paths)))} left out", file=sys.stderr)
