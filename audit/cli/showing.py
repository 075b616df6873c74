"""Audits printed on a terminal."""

from __future__ import annotations

import json

from rich.console import Console

from audit.results import AuditResult, printable, scale_of

__all__ = ["ROOMY", "console", "show"]

ROOMY = 110  # columns of a terminal from which events fit into the table


def console() -> Console:
    """Return the terminal, or where there is none, lines of 150 columns."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=150)


def show(results: list[tuple[str, AuditResult]], as_json: bool) -> None:
    """Print audits with their names, as a table with a legend or as JSON."""
    if as_json:
        print(json.dumps({name: result.to_dict() for name, result in results}, indent=1, allow_nan=False))
        return
    from audit.report.tables import audit_table
    from audit.results.formatting import percent

    audits = [audit for _, audit in results]
    terminal = console()
    if secret := sum(result.confidential for result in audits):
        number = "these audits are" if secret == len(audits) else f"{secret} of these audits are"
        words = (
            f"CONFIDENTIAL: {number} of confidential data; `plaudit report --public` leaves out what discloses them."
        )
        terminal.print(words, markup=False)
    for pair in dict.fromkeys(printable(result.pair) for result in audits):
        terminal.print(f"Neighboring databases x and y: {pair}.", markup=False)
    roomy = terminal.width >= ROOMY
    terminal.print(audit_table(results, events=roomy))
    if not roomy:
        for name, result in results:
            terminal.print(printable(f"{name}: {result.event}{result.witness}"), markup=False)
        terminal.print()
    scales = ", ".join(sorted({scale_of(result.claim) for result in audits}))
    levels = ", ".join(sorted({percent(result.confidence) for result in audits}))
    terminal.print(
        f"Losses are {scales}, for one step between neighboring databases. With {levels} confidence the true loss is "
        "at least the lower bound. A pass is no proof: a loss below the minimum detectable loss (power 0.8), or in "
        "events of another kind, may stay hidden.",
        markup=False,
    )
