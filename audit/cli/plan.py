"""``plaudit plan``: the number of runs that detect a violation, or the violations that a number of runs detects."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.claims.families import claim_forms
from audit.cli.exits import exit_code
from audit.cli.inputs.options import WHOLE, with_options

if TYPE_CHECKING:
    from audit.planning.table import PlanTable

__all__: list[str] = []

SPANS = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


@dataclass(frozen=True)
class DesignOptions:
    """Design of the audit."""

    confidence: Annotated[float, "One-sided confidence of the audit."] = 0.95
    distance: Annotated[int, "Steps between the two databases."] = 1
    selection: Annotated[
        float | None, "Share of the runs that choose the event (0: it is fixed); by default 0.3, or 0 with --share."
    ] = None
    share: Annotated[float, "Share of the runs that meet an event fixed beforehand."] = 1.0
    design: Annotated[str, "coins (plaudit audit), outputs (of a mechanism that ran elsewhere) or one_run."] = "coins"


@with_options
def plan(
    claim: Annotated[str, typer.Argument(help=f"The promise: {claim_forms()}.")],
    *,
    violation: Annotated[float, "Ratio of true loss to promise, above 1."] = 1.1,
    power: Annotated[float, "Chance of detecting the violation, in (0, 1)."] = 0.8,
    relation: Annotated[str, "Neighbor relation of the promise."] = "add_remove",
    design: DesignOptions,
    runs: Annotated[int | None, WHOLE, "Instead say which violations this many runs detect, such as 1e6."] = None,
    seconds_per_run: Annotated[float | None, "Seconds of one run; adds the total time."] = None,
    out: Annotated[Path | None, {"metavar": "FILE"}, "Figure of the runs needed: .svg, .png or .pdf."] = None,
    as_json: Annotated[bool, "--json", "Print JSON."] = False,
) -> int:
    """Say how many runs detect a violation, or what so many runs detect."""
    from audit.arguments import positive_number
    from audit.claims import parse_claim
    from audit.io.files import check_replaceable
    from audit.io.terminal import say
    from audit.planning.table import SHOWN, plan_table
    from audit.results import plain_number
    from audit.sampling.progress import progress_bar

    promise = parse_claim(claim, relation)  # type: ignore[arg-type]
    if seconds_per_run is not None:
        positive_number("seconds-per-run", seconds_per_run)
        if design.design == "one_run":
            raise ValueError("--seconds-per-run is for many runs, and one_run makes one")
    if out is not None:
        if runs is not None:
            raise ValueError("--out draws the runs needed: it does not go with --runs")
        from audit.results.plots import FIGURES, house_style, new_figure, save_figure

        if out.suffix.lower() not in FIGURES:
            raise ValueError(f"out must be a file that ends in {', '.join(FIGURES)}, got {out}")
        check_replaceable(out, FIGURES[out.suffix.lower()])
    usual = 0.3 if design.share == 1 else 0.0
    options: dict[str, Any] = asdict(replace(design, selection=usual if design.selection is None else design.selection))
    with progress_bar("plan", 1 + len(SHOWN), visible=not as_json, unit="violations") as advance:
        table = plan_table(promise, violations=(violation, *SHOWN), runs=runs, power=power, done=advance, **options)
    rows = [dict(row) for row in table.rows]
    values: dict[str, Any] = {"claim": promise.to_dict(), "power": power, **options, "assumes": table.assumes}
    if table.smallest is not None:
        values |= {"runs": runs, "smallest_violation": plain_number(table.smallest)}
    elif seconds_per_run is not None:
        for row in rows:
            row["seconds"] = None if row["runs"] is None else row["runs"] * seconds_per_run
    values["rows"] = rows
    if out is not None:
        with house_style():
            figure, (ax,) = new_figure(5.4, 3.6)
            table.plot(ax).set_title(f"power {power:g}")
        save_figure(figure, out)
    if as_json:
        print(json.dumps(values, indent=1, allow_nan=False))
    else:
        _show(table, rows, violation, seconds_per_run)
        if out is not None:
            say(f"Figure: {out}")
    detected = any(row["violation"] == violation and row["runs"] is not None for row in rows if runs is None)
    return exit_code([] if detected or (table.smallest or math.inf) < math.inf else ["no power"])


def _show(table: PlanTable, rows: list[dict[str, Any]], violation: float, seconds_per_run: float | None) -> None:
    from rich.table import Table

    from audit.io.terminal import console, say
    from audit.report.tables import LOOK, Fitted
    from audit.results.formatting import NEIGHBORS, number_of, percent

    promise, audit, runs, power = table.claim, table.audit, table.runs, f"with power {table.power:g}"
    shown, answers = Table(**LOOK), list(table.titles)
    answers[1:1] = ["their time"] if "seconds" in rows[0] else []
    for title in ["true loss", "times the promise", *answers]:
        shown.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        cells = [f"{promise.parameter} {row[promise.parameter]:.4g}", f"{row['violation']:.6g}", *table.answers(row)]
        cells[3:3] = [_span(row["seconds"])] if "seconds" in row else []
        shown.add_row(*cells, style="bold" if row["violation"] == violation else "")
    question = f"How many {table.what} detect a violation {power}"
    if runs is not None:
        question = f"How often {runs:,} {table.what} detect a violation"
    steps = f"one {NEIGHBORS[promise.relation].format('person')}; {number_of(audit['distance'], 'step')} apart"
    say(f"{question}, at {percent(audit['confidence'])} confidence.", f"Promise: {promise}. Neighbors: {steps}.")
    console().print(Fitted(shown))
    if runs is not None:
        smallest, known = table.smallest or math.inf, "none"
        if smallest < math.inf:
            known = f"{smallest:.4g} times the promise, {promise.parameter} {smallest * promise.budget:.4g}"
        cost = f" So many runs take {_span(runs * seconds_per_run)}." if seconds_per_run is not None else ""
        say(f"Smallest violation detected {power}: {known}.{cost}")
    chosen = f"{100 * audit['selection']:.6g}% of them choose the event" if audit["selection"] else "the event is fixed"
    used = (
        f"Runs are over both databases; {chosen}." if table.what == "runs" else "The rule is fixed before the one run."
    )
    say(f"{used} {table.assumes}")
    if len(table.titles) > 1:
        say(
            "Early: half, and 80%, of audits with --early find it in so many runs. They need no plan: the larger the "
            "loss, the sooner they end. Without a loss they end when they would have found 1.1 times the promise."
        )


def _span(seconds: float | None) -> str:
    """Return a duration with two digits, in the largest unit of which it has at least one."""
    if seconds is None:
        return ""
    size, unit = next((one for one in SPANS if seconds >= one[0]), SPANS[-1])
    return f"{float(f'{seconds / size:.2g}'):,g} {unit}"
