"""``plaudit plan``: how many runs detect a violation, and which violations so many runs detect."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.exits import exit_code
from audit.cli.inputs.options import WHOLE, with_options
from audit.io.text import printable

if TYPE_CHECKING:
    from audit.claims import Claim

__all__: list[str] = []

SPANS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (0.0, "seconds"))
STEPS = {"add_remove": "one person is added or removed", "replace_one": "the data of one person are replaced"}
TOOLS = {"coins": "measure_loss", "outputs": "measure_loss_from_outputs", "one_run": "measure_loss_one_run"}


@dataclass(frozen=True)
class DesignOptions:
    """How the audit is made."""

    confidence: Annotated[float, "One-sided confidence of the audit."] = 0.95
    distance: Annotated[int, "Steps between the two databases."] = 1
    selection: Annotated[
        float | None,
        "Share of the runs that choose the event; 0 if it is fixed beforehand. Default: 0.3, or 0 with --share.",
    ] = None
    share: Annotated[float, "Share of the runs that meet an event fixed beforehand."] = 1.0
    design: Annotated[str, "coins (plaudit audit), outputs (of a mechanism that ran elsewhere) or one_run."] = "coins"


@with_options
def plan(
    claim: Annotated[
        str, typer.Argument(help="The promise: pure:EPSILON, approx:EPSILON,DELTA, zcdp:RHO or gaussian:MU.")
    ],
    *,
    violation: Annotated[float, "Ratio of true loss to promise, above 1."] = 1.1,
    power: Annotated[float, "Chance of detecting the violation, in (0, 1)."] = 0.8,
    relation: Annotated[str, "Neighbor relation of the claim."] = "add_remove",
    design: DesignOptions,
    runs: Annotated[int | None, WHOLE, "Instead say which violations this many runs detect, such as 1e6."] = None,
    seconds_per_run: Annotated[float | None, "Seconds of one run; adds the total time."] = None,
    out: Annotated[Path | None, "Figure of the runs needed: .svg, .png or .pdf."] = None,
    as_json: Annotated[bool, "--json", "Print JSON."] = False,
) -> int:
    """Say how many runs detect a violation, or which violations so many runs detect."""
    from audit.arguments import positive_number
    from audit.claims import check_relation, parse_claim
    from audit.io.files import check_replaceable
    from audit.planning import plan_table
    from audit.planning.table import SHOWN
    from audit.results import plain_number
    from audit.sampling.progress import progress_bar

    check_relation(relation)
    promise = parse_claim(claim, relation)  # type: ignore[arg-type]
    if seconds_per_run is not None:
        positive_number("seconds-per-run", seconds_per_run)
        if design.design == "one_run":
            raise ValueError("--seconds-per-run is for many runs, and one_run makes one")
    if out is not None:
        if runs is not None:
            raise ValueError("--out draws the runs needed: it does not go with --runs")
        from audit.results.plots import FIGURES

        if out.suffix.lower() not in FIGURES:
            raise ValueError(f"out must be a file that ends in {', '.join(FIGURES)}, got {out}")
        check_replaceable(out, FIGURES[out.suffix.lower()])
    if design.selection is None:
        design = replace(design, selection=0.3 if design.share == 1 else 0.0)
    options: dict[str, Any] = asdict(design)
    with progress_bar("plan", 1 + len(SHOWN), visible=not as_json, unit="violations") as advance:
        table = plan_table(promise, violations=(violation, *SHOWN), runs=runs, power=power, done=advance, **options)
    rows = [dict(row) for row in table.rows]
    plan: dict[str, Any] = {"claim": promise.to_dict(), "power": power, **options, "assumes": table.assumes}
    if table.smallest is None:
        detected = next(row for row in rows if row["violation"] == violation)["runs"] is not None
    else:
        detected = table.smallest < float("inf")
        plan |= {"runs": runs, "smallest_violation": plain_number(table.smallest)}
    if seconds_per_run is not None and runs is None:
        for row in rows:
            row["seconds"] = None if row["runs"] is None else row["runs"] * seconds_per_run
    plan["rows"] = rows
    if out is not None:
        _draw(promise, plan, out)
    if as_json:
        print(json.dumps(plan, indent=1, allow_nan=False))
    else:
        _show(promise, plan, violation, seconds_per_run)
        if out is not None:
            print(printable(f"Figure: {out}"))
    return exit_code([] if detected else ["no power"])


def _show(promise: Claim, plan: dict[str, Any], violation: float, seconds_per_run: float | None) -> None:
    from rich import box
    from rich.table import Table

    from audit.io.terminal import console
    from audit.results.formatting import percent

    reverse, one_run = "runs" in plan, plan["design"] == "one_run"
    what, tool = "canaries" if one_run else "runs", TOOLS[plan["design"]]
    at, power = f"at {percent(plan['confidence'])} confidence", f"with power {plan['power']:g}"
    steps = "1 step" if plan["distance"] == 1 else f"{plan['distance']} steps"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    titles = ["true loss", "times the\npromise", "called\nviolated" if reverse else f"{what}\nneeded"]
    for title in [*titles, *(["time"] if "seconds" in plan["rows"][0] else [])]:
        table.add_column(title, justify="right", no_wrap=True)
    for row in plan["rows"]:
        number = f"{100 * row['power']:.1f}%" if reverse else _count(row["runs"])
        cells = [f"{promise.parameter} {row[promise.parameter]:.4g}", f"{row['violation']:.6g}", number]
        cells += [_span(row["seconds"])] if "seconds" in row else []
        table.add_row(*cells, style="bold" if row["violation"] == violation else "")
    chosen = f"{100 * plan['selection']:.6g}% of them choose the event"
    chosen = chosen if plan["selection"] > 0 else "the event is registered beforehand"
    lines = [
        f"Promise: {promise}. Neighbors: {STEPS[promise.relation]}; the two databases are {steps} apart.",
        f"How often {tool} calls a mechanism violated with {plan['runs']:,} {what}, {at}:"
        if reverse
        else f"How many {what} {tool} needs to call a mechanism violated {power}, {at}:",
        table,
        "The rule is fixed before the one run." if one_run else f"Runs are over both databases; {chosen}.",
        plan["assumes"],
    ]
    if reverse:
        smallest, known = float(plan["smallest_violation"]), "none"
        if smallest < float("inf"):
            known = f"{smallest:.4g} times the promise, {promise.parameter} {smallest * promise.budget:.4g}"
        cost = f" So many runs take {_span(plan['runs'] * seconds_per_run)}." if seconds_per_run is not None else ""
        lines.insert(3, f"Smallest violation detected {power}: {known}.{cost}")
    terminal = console()
    for line in lines:
        terminal.print(line)


def _count(number: int | None) -> str:
    return "out of reach" if number is None else f"{number:,}"


def _span(seconds: float | None) -> str:
    """Return a duration in the largest unit that it fills, to two digits."""
    if seconds is None:
        return ""
    least, unit = next((least, unit) for least, unit in SPANS if seconds >= least)
    return f"{float(f'{seconds / max(least, 1.0):.2g}'):,g} {unit}"


def _draw(promise: Claim, plan: dict[str, Any], out: Path) -> None:
    from audit.results.plots import house_style, new_figure, plot_plan, save_figure

    sizes = [float("inf") if row["runs"] is None else row["runs"] for row in plan["rows"]]
    curve = (f"{promise}, power {plan['power']:g}", [row["violation"] for row in plan["rows"]], sizes)
    with house_style():
        figure, (ax,) = new_figure(5.4, 3.6)
        plot_plan([curve], ax, what="canaries" if plan["design"] == "one_run" else "runs")
    save_figure(figure, out)
