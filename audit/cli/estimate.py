"""`plaudit estimate`: what the errors of a release, or counts on two databases, suggest; never a verdict."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.answering import check_out, command_of
from audit.cli.exits import WITHIN
from audit.cli.inputs.options import (
    OF_PERSONS,
    Areas,
    AsJson,
    Budget,
    Cell,
    ClaimText,
    Config,
    Count,
    Data,
    Derive,
    Geo,
    Jobs,
    Pair,
    Preset,
    Public,
    PublicData,
    RelationName,
    Rho,
    Seed,
    Spec,
    Stage,
    Units,
    check_numbers,
    refuse,
)
from audit.io.backends import Address, Backend, on_backend

if TYPE_CHECKING:
    from audit.claims import Claim
    from audit.cli.inputs.targets import Target
    from audit.results import LossEstimate

__all__: list[str] = []

DIRECT, RESIDUAL = "direct", "residual"
# What errors from elsewhere have not:
OF_RUNS = f"data {OF_PERSONS} epsilon rho preset stage pair cell runs event jobs backend address"
OF_CURVES = "bandwidth percentile multiplier change"


def estimate(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            help="A name from `plaudit list`, or module:object for a mechanism of your own, which has a method "
            "exact(data): what an output would be without noise."
        ),
    ] = "",
    method: Annotated[
        str,
        typer.Option(
            help="direct (counts of an event on two databases); or from the errors of one release: lag-tail, "
            "histogram, kde, or slope for rho. residual is lag-tail; kde where one of its settings is given; slope "
            "where rho is promised."
        ),
    ] = RESIDUAL,
    residuals: Annotated[
        Path | None,
        typer.Option(
            help="Errors of your own in place of a name, released minus true counts in people: .csv with one a line, "
            "or .npy."
        ),
    ] = None,
    data: Data = None,
    areas: Areas = None,
    spec: Spec = None,
    geo: Geo = None,
    count: Count = None,
    public: Public = None,
    units: Units = None,
    config: Config = None,
    derive: Derive = None,
    epsilon: Budget = None,
    rho: Rho = None,
    preset: Preset = "",
    stage: Stage = "",
    pair: Pair = "",
    claim: ClaimText = "",
    relation: RelationName = "",
    cell: Cell = None,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Releases; or runs over both databases. Default: one release, or of a small one as many as have "
            "10,000 errors; 20,000 runs."
        ),
    ] = None,
    event: Annotated[
        str, typer.Option(help="Of direct estimates: at_least (an error of k people or more), or equal (of k people).")
    ] = "at_least",
    bandwidth: Annotated[
        float | None, typer.Option(help="Of kde: width of the kernel in standard deviations. Default: 0.15.")
    ] = None,
    percentile: Annotated[
        float | None, typer.Option(help="Of histogram and kde: percentile of errors for the window. Default: 95.")
    ] = None,
    multiplier: Annotated[
        float | None, typer.Option(help="Of histogram and kde: the window in units of that percentile. Default: 2.")
    ] = None,
    change: Annotated[
        float | None,
        typer.Option(help="Of slope: people by whom one person changes an entry. Default: 1, or by the pair."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Two-sided, of each interval by itself.")] = 0.95,
    jobs: Jobs = -1,
    backend: Backend = "",
    address: Address = "",
    seed: Seed = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the estimate as JSON, and its figure; what is there stays.")
    ] = None,
    public_data: PublicData = False,
    as_json: AsJson = False,
) -> int:
    """Estimate a privacy loss: no bound, and never a verdict."""
    from audit.claims import parse_claim
    from audit.cli.inputs.mechanisms import blaming, source_of
    from audit.cli.inputs.tables import read_errors
    from audit.estimates.residuals import residual_loss
    from audit.estimates.running import estimate_loss
    from audit.sampling.streams import seed_sequence

    check_numbers(context)
    direct = method == DIRECT
    if direct:
        refuse(context, OF_CURVES, "is for estimates from residuals, got --method direct")
    else:
        refuse(context, "event cell", "is for --method direct: residuals are those of all entries")
    if (residuals is None) != bool(name):
        raise ValueError("name one mechanism (see `plaudit list`), or give --residuals")
    if residuals is not None and direct:
        raise ValueError("--method direct needs runs on two databases, and --residuals are of one release")
    root = seed_sequence(seed)
    given = {"bandwidth": bandwidth, "percentile": percentile, "multiplier": multiplier, "change": change, "runs": runs}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    options |= {"confidence": confidence, "rng": root}
    if residuals is not None:
        refuse(context, OF_RUNS, "has no effect on residuals from elsewhere")
        called = residuals.name
        promise = parse_claim(claim, relation or "add_remove") if claim else None  # type: ignore[arg-type]
        errors = read_errors(residuals)
        check_out(out)
        options["method"] = kind = _kind(method, options, promise)
        with blaming(str(residuals)):
            found = residual_loss(errors, **options)
        secret = not public_data
    else:
        called, target, promise = _target(context, name)
        check_out(out)
        ((_, databases, _),) = target.pairs
        kind = DIRECT if direct else _kind(method, options, promise)
        context.with_resource(on_backend(backend, address, jobs))  # whose processes find what was imported
        with blaming(name):
            options |= {"method": kind, "n_jobs": jobs, "progress": True} | ({"event": event} if direct else {})
            found = estimate_loss(target.mechanism, databases, **options)
        secret = databases.confidential
        found = replace(found, settings=found.settings | {"pair": databases.label, "stage": context.params["stage"]})
    command = command_of(context, ["estimate", name], {}, root.entropy)
    told = {"promise": str(promise or ""), "seed": root.entropy, "command": command, "confidential": secret}
    found = replace(found, settings=found.settings | told | source_of(name))
    return _answered(f"{called} {kind}", found, promise, out, as_json)


def _kind(method: str, options: dict[str, Any], promise: Claim | None) -> str:
    """Return the estimator from residuals that is meant."""
    from audit.estimates.curves import CURVES

    kinds = {name.replace("_", "-"): name for name in CURVES}
    if method in kinds:
        return kinds[method]
    if method != RESIDUAL:
        raise ValueError(f"method must be one of {', '.join((DIRECT, RESIDUAL, *kinds))}, got {method!r}")
    if options.keys() & {"bandwidth", "percentile", "multiplier"}:
        return "kde"
    return "slope" if "change" in options or (promise is not None and promise.parameter == "rho") else "lag_tail"


def _target(context: typer.Context, name: str) -> tuple[str, Target, Claim | None]:
    """Return what is named on one pair of databases: its name with pair and stage, itself, and what it promises."""
    from audit.cli.inputs.targets import promise_of

    target = _with_truth(context, name)
    if len(target.pairs) > 1:
        raise ValueError(f"--cell must be given once for an estimate, got {len(target.pairs)} times")
    claim = context.params["claim"]
    promise = promise_of(target, claim, []) if claim or hasattr(target.mechanism, "claim") else None
    return " ".join(filter(None, (name, target.pairs[0].words))), target, promise


def _with_truth(context: typer.Context, name: str) -> Target:
    """Return what is named; of a system whose release has no exact output, the first stage that has one."""
    from audit.cli.inputs.targets import targets_asked

    (target,) = targets_asked(context, [name])
    for stage in target.system.stages if target.system and not context.params["stage"] else ():
        if hasattr(target.mechanism, "exact"):
            break
        context.params["stage"] = stage
        (target,) = targets_asked(context, [name])
    return target


def _answered(called: str, found: LossEstimate, promise: Claim | None, out: Path | None, as_json: bool) -> int:
    """Save an estimate and its figure, and show it."""
    from audit.io.text import printable
    from audit.results.folder import save_result
    from audit.results.formatting import percent

    if out is not None:
        saved = save_result(found, out, called)
        _draw(called, found, promise, saved.with_suffix(".png"))
    if as_json:
        print(json.dumps({called: found.to_dict()}, indent=1, allow_nan=False))
        return WITHIN
    if found.confidential:
        print("CONFIDENTIAL: this estimate is of confidential data.")
    low, high = found.interval
    unit = " nats" if found.unit == "nats" else ""
    print(
        printable(f"{called}: {found.statistic} {found.value:.4g}{unit}, interval {low:.4g} to {high:.4g}"),
        f"({percent(found.confidence)}, of chance alone), for one person. An estimate, not a bound.",
    )
    print(f"Promise: {promise or 'none stated'}.")
    if stage := found.settings.get("stage"):
        print(f"Stage: {stage}.")
    what = "errors"
    if "entry" in found.settings:
        what = f"outputs, by entry {found.settings['entry']}, the first of those that the pair changes most"
        print(f"The pair changes {found.settings['entries_changed']:,} entries.")
    if components := found.settings.get("components"):
        print(f"The sum of {components:,} components that the pair changes, each of one law of noise.")
    print(f"From {found.size:,} x {found.areas:,} {what}. It means a loss if:")
    for words in found.assumptions:
        print(f"- {words}")
    if out is not None:
        print(printable(f"Saved in {out}/: {saved.name} and {saved.with_suffix('.png').name}."))
    return WITHIN


def _draw(called: str, found: LossEstimate, promise: Claim | None, path: Path) -> None:
    """Draw the curve, and the promise if it is one number of nats."""
    from audit.results.plots import BLACK, house_style, label_of, new_figure, plot_estimate, save_figure

    with house_style():
        figure, (ax,) = new_figure(6.0, 3.6)
        plot_estimate(found, ax)
        if promise is not None and math.isfinite(most := promise.epsilon_at(0.0)):
            ax.axhline(most, color=BLACK, linewidth=1.2, label=f"promise: {promise}")
        ax.set_title(f"{label_of(called)}: an estimate, not a bound")
        ax.legend(loc="best")
    save_figure(figure, path, private=found.confidential)
