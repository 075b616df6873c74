"""Tables of audits, replays and comparisons for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from audit.io.text import printable
from audit.report.formats import RIGHT, Named
from audit.results import Verdict
from audit.results.formatting import COLUMNS, row

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from audit.replay.result import Replay
    from audit.review.compare import Change, Counted

__all__ = ["LOOK", "Fitted", "audit_table", "comparison_table", "replay_table"]

LONGEST = 60  # characters of the name of a query
LOOK: dict[str, Any] = {"box": box.SIMPLE_HEAD, "pad_edge": False, "collapse_padding": True, "show_edge": False}
STYLES: dict[Verdict, str] = {"violated": "bold red", "not refuted": "green", "no power": "yellow"}
ALWAYS = ("name", "promised", "measured", "detectable", "verdict")  # columns of audits; others only if they differ
FATES: dict[Counted, str] = {"changed": "bold", "missing": "bold red", "new": "bold"}


@dataclass(frozen=True)
class Fitted:
    """A table whose headings have more lines where the terminal is narrow, or a paragraph for each row."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        unbounded = options.update(max_width=sys.maxsize)  # else the terminal limits the width
        for spaces in (0, 1, -1):  # of a heading that become line breaks
            for column in self.table.columns:
                column.header = str(column.header).replace(" ", "\n", spaces)
            width = Measurement.get(console, unbounded, self.table).maximum
            if width <= options.max_width:
                break
        if width - sum(map(_folded, self.table.columns)) <= options.max_width:
            yield self.table
            return
        for cells in zip(*(column.cells for column in self.table.columns), strict=True):
            lines = [Text(str(cells[0]), overflow="fold")]
            for column, cell in list(zip(self.table.columns, cells, strict=True))[1:]:
                heading, value = (" ".join(str(text).split("\n")) for text in (column.header, cell))
                lines.append(Text.assemble(f"  {heading}: ", (value, getattr(cell, "style", "")), overflow="fold"))
            yield Group(*lines)


def _folded(column: Column) -> int:
    """Return by how many characters a column can be narrowed without breaking a word."""
    if column.no_wrap:
        return 0
    texts = [str(column.header), *map(str, column.cells)]
    lines = max(cell_len(line) for text in texts for line in text.split("\n"))
    return lines - max(cell_len(word) for text in texts for word in text.split() or [""])


def audit_table(audits: Named) -> Fitted:
    """Return a table with one row for each audit. Events are left out: their text is too long."""
    columns, rows = COLUMNS | {"name": "algorithm"}, [row(audit.summary(name)) for name, audit in audits]
    levels = {cells["confidence"] for cells in rows}
    columns["measured"] += f" ({levels.pop()})" if len(levels) == 1 else ""
    several = {key for key in ("neighbors", "confidence") if len({cells[key] for cells in rows}) > 1}
    keys = [key for key in columns if key in several or key in ALWAYS]
    table = Table(**LOOK)
    for key in keys:
        table.add_column(columns[key], no_wrap=key != "neighbors", justify="right" if key in RIGHT else "left")
    for cells, (_, audit) in zip(rows, audits, strict=True):
        cells["promised"] = cells["promised"].replace(", ", "\n")
        cells["verdict"] = "\n".join(filter(None, (cells["verdict"], cells["confidential"])))
        table.add_row(*(Text(cells[key], style=STYLES[audit.verdict] if key == "verdict" else "") for key in keys))
    return Fitted(table)


def replay_table(result: Replay) -> Fitted:
    """Return a table with one row for each query of a replay."""
    heads = ("query", "draws", "noise", "L1", "L2", "declared", "epsilon", "rho")
    table = Table(*(Column(name, no_wrap=name != "noise") for name in heads), **LOOK)
    for query in result.queries:
        name, numbers = printable(query.name), (query.l1_change, query.l2_change, query.epsilon, query.rho)
        cut = name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
        l1, l2, *losses = ("-" if value is None else f"{value:.5g}" for value in numbers)
        table.add_row(*map(Text, (cut, f"{query.draws:,}", query.law, l1, l2, str(query.declared or "-"), *losses)))
    return Fitted(table)


def comparison_table(changes: Sequence[Change]) -> Fitted:
    """Return a table with one row for each old or new audit, with both values if they differ."""
    columns = ["promised", "neighbors", "measured", "detectable", "verdict"]
    heads = ["audit", "counts", *(COLUMNS[key] for key in columns)]
    table = Table(*(Column(head, no_wrap=head != COLUMNS["neighbors"]) for head in heads), **LOOK)
    for change in changes:
        rows = [row(result.summary()) for result in (change.old, change.new) if result is not None]
        confidential = any(cells["confidential"] for cells in rows)
        counts = Text(change.counts + ("\nCONFIDENTIAL" if confidential else ""), style=FATES.get(change.counts, ""))
        values = (Text("\n-> ".join(dict.fromkeys(cells[key] for cells in rows))) for key in columns)
        table.add_row(Text(printable(change.name)), counts, *values)
    return Fitted(table)
