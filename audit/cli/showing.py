"""Audits printed on a terminal, and the exit code that a script reads."""

from __future__ import annotations

import json

from rich.console import Console

from audit.results import AuditResult, printable, scale_of

__all__ = ["NO_POWER", "USAGE", "VIOLATION", "WITHIN", "exit_code", "show"]

WITHIN, VIOLATION, USAGE, NO_POWER = 0, 1, 2, 3
ROOMY = 110  # columns of a terminal from which events fit into the table


def exit_code(results: list[AuditResult]) -> int:
    """Return what verdicts are as one number.

    Parameters
    ----------
    results : list of AuditResult
        Of one command.

    Returns
    -------
    int
        0 if all are within their claims, 1 if one is violated, 3 if none is and one had no power.
    """
    verdicts = {result.verdict for result in results}
    return VIOLATION if "violated" in verdicts else NO_POWER if "no power" in verdicts else WITHIN


def show(results: list[tuple[str, AuditResult]], as_json: bool) -> None:
    """Print audits with their names, as a table with a legend or as JSON.

    Parameters
    ----------
    results : list of (str, AuditResult)
        At least one.
    as_json : bool
        Whether a program reads on.
    """
    if as_json:
        print(json.dumps({name: result.to_dict() for name, result in results}, indent=1, allow_nan=False))
        return
    from audit.report.tables import audit_table
    from audit.results.formatting import percent

    audits = [audit for _, audit in results]
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=150)
    if secret := sum(result.confidential for result in audits):
        number = "these audits are" if secret == len(audits) else f"{secret} of these audits are"
        words = (
            f"CONFIDENTIAL: {number} of confidential data; `plaudit report --public` leaves out what discloses them."
        )
        console.print(words, markup=False)
    for pair in dict.fromkeys(printable(result.pair) for result in audits):
        console.print(f"Neighboring databases x and y: {pair}.", markup=False)
    roomy = console.width >= ROOMY
    console.print(audit_table(results, events=roomy))
    if not roomy:
        for name, result in results:
            console.print(printable(f"{name}: {result.event}{result.witness}"), markup=False)
        console.print()
    scales = ", ".join(sorted({scale_of(result.claim) for result in audits}))
    levels = ", ".join(sorted({percent(result.confidence) for result in audits}))
    console.print(
        f"Losses are {scales}, for one step between neighboring databases. With {levels} confidence the true loss is "
        "at least the lower bound. A pass is no proof: a loss below the minimum detectable loss (power 0.8), or in "
        "events of another kind, may stay hidden.",
        markup=False,
    )
