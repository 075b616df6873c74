"""Audits printed on a terminal."""

from __future__ import annotations

import json

from audit.io.terminal import console
from audit.io.text import printable
from audit.results import AuditResult, scale_of

__all__ = ["show"]


def show(results: list[tuple[str, AuditResult]], as_json: bool) -> None:
    """Print audits with their names, as a table with a legend or as JSON."""
    if as_json:
        print(json.dumps({name: result.to_dict() for name, result in results}, indent=1, allow_nan=False))
        return
    from audit.report.tables import audit_table
    from audit.report.words import remedy
    from audit.results.formatting import percent

    audits = [audit for _, audit in results]
    shown = console()
    if secret := sum(result.confidential for result in audits):
        number = "these audits are" if secret == len(audits) else f"{secret} of these audits are"
        words = (
            f"CONFIDENTIAL: {number} of confidential data; `plaudit report --public` leaves out what discloses them."
        )
        shown.print(words)
    for pair in dict.fromkeys(printable(result.pair) for result in audits):
        shown.print(f"Neighboring databases x and y: {pair}.")
    shown.print(audit_table(results))
    shown.print("Event by which a release is guessed to come from x or from y:")
    for name, result in results:
        shown.print(printable(f"{name}: {result.event}{result.witness}"))
    for name, result in results:
        for sentence in result.power:
            shown.print(printable(f"{name}: {sentence}."))
    for name, result in results:
        if advice := remedy(result, "--size"):
            shown.print(printable(f"{name} has no power. What would help: {advice}."))
    shown.print()
    scales = ", ".join(sorted({scale_of(result.claim) for result in audits}))
    levels = ", ".join(sorted({percent(result.confidence) for result in audits}))
    shown.print(
        f"Losses are {scales}, for one step between neighboring databases. With {levels} confidence the true loss is "
        "at least the lower bound. A pass is no proof: a loss below the minimum detectable loss (power 0.8), or in "
        "events of another kind, may stay hidden."
    )
