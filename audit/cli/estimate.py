"""`plaudit estimate`: what the errors of a release, or counts on two databases, suggest; never a verdict."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.answering import command_of
from audit.cli.exits import WITHIN
from audit.cli.inputs.options import (
    AsJson,
    Budget,
    Cell,
    ClaimText,
    Data,
    Pair,
    RelationName,
    Rho,
    Seed,
    Stage,
    check_numbers,
    refuse,
)

if TYPE_CHECKING:
    from audit.claims import Claim
    from audit.cli.inputs.targets import Target
    from audit.results import LossEstimate

__all__: list[str] = []

DIRECT, RESIDUAL = "direct", "residual"
KINDS = {"lag-tail": "lag_tail", "histogram": "histogram", "kde": "kde"}  # of residual estimates
OF_RUNS = "data epsilon rho stage pair cell runs event"  # options that errors from elsewhere do not have
OF_CURVES = "bandwidth percentile multiplier"


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
            help="direct (counts of an event on two databases); or from the errors of one release: lag-tail, histogram "
            "or kde. residual is lag-tail, or kde where one of its settings is given."
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
    epsilon: Budget = None,
    rho: Rho = None,
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
    confidence: Annotated[float, typer.Option(help="Two-sided, of each interval by itself.")] = 0.95,
    seed: Seed = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the estimate as JSON, and its figure; what is there stays.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Estimate a privacy loss: no bound, and never a verdict."""
    from audit.results.files import check_writable
    from audit.sampling.streams import seed_sequence

    check_numbers(context)
    settings = {"bandwidth": bandwidth, "percentile": percentile, "multiplier": multiplier}
    options: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    kind = _kind(method, bool(options))
    if kind == DIRECT:
        refuse(context, OF_CURVES, "is for estimates from residuals, got --method direct")
        options["event"] = event
    else:
        refuse(context, "event cell", "is for --method direct: residuals are those of all entries")
        options["method"] = kind
    if (residuals is None) != bool(name):
        raise ValueError("name one mechanism (see `plaudit list`), or give --residuals")
    root = seed_sequence(seed)
    options |= {"confidence": confidence, "rng": root}
    if out is not None:
        check_writable(out)
    if residuals is not None:
        refuse(context, f"{OF_RUNS} relation", "has no effect on residuals from elsewhere")
        called, found, promise = _of_file(residuals, claim, options)
    else:
        called, found, promise = _of_mechanism(context, name, kind, options | ({} if runs is None else {"runs": runs}))
    command = command_of(context, ["estimate", name], {}, root.entropy)
    told = {"promise": str(promise or ""), "seed": root.entropy, "command": command}
    found = replace(found, settings=found.settings | told)
    return _answered(f"{called} {kind}", found, promise, out, as_json)


def _kind(method: str, curves: bool) -> str:
    """Return the estimator that is meant."""
    if method == RESIDUAL:
        return "kde" if curves else "lag_tail"
    if method != DIRECT and method not in KINDS:
        raise ValueError(f"method must be one of {', '.join((DIRECT, RESIDUAL, *KINDS))}, got {method!r}")
    return KINDS.get(method, method)


def _of_file(path: Path, claim: str, options: dict[str, Any]) -> tuple[str, LossEstimate, Claim | None]:
    """Estimate from errors of a published table."""
    from audit.claims import parse_claim
    from audit.cli.inputs.tables import read_errors
    from audit.estimates.residuals import residual_loss

    if options.pop("event", None):
        raise ValueError("--method direct needs runs on two databases, and --residuals are of one release")
    promise = parse_claim(claim, "add_remove") if claim else None
    errors = read_errors(path)
    try:
        return path.name, residual_loss(errors, **options), promise
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _of_mechanism(
    context: typer.Context, name: str, kind: str, options: dict[str, Any]
) -> tuple[str, LossEstimate, Claim | None]:
    """Run a mechanism, or the first stage of it that has an exact output, and estimate."""
    from audit.cli.inputs.mechanisms import blaming
    from audit.cli.inputs.targets import promise_of
    from audit.estimates.running import estimate_direct, estimate_residuals

    target = _with_truth(context, name)
    if len(target.pairs) > 1:
        raise ValueError(f"--cell must be given once for an estimate, got {len(target.pairs)} times")
    ((words, pair, _),) = target.pairs
    has_claim = context.params["claim"] or hasattr(target.mechanism, "claim")
    promise = promise_of(target, context.params["claim"], []) if has_claim else None
    data = pair if kind == DIRECT else pair.x
    run: Any = estimate_direct if kind == DIRECT else estimate_residuals
    with blaming(name):
        found: LossEstimate = run(target.mechanism, data, progress=True, **options)
    of_pair = {"pair": pair.label, "stage": context.params["stage"]}
    return " ".join(filter(None, (name, words))), replace(found, settings=found.settings | of_pair), promise


def _with_truth(context: typer.Context, name: str) -> Target:
    """Return what is named; of a system whose release has no exact output, the first stage that has one."""
    from audit.cli.inputs.targets import targets_asked
    from audit.installed import offered

    (target,) = targets_asked(context, [name])
    known = None if ":" in name or context.params["stage"] else offered("systems").systems()[name]
    for stage in known.stages if known else ():
        if hasattr(target.mechanism, "exact"):
            break
        context.params["stage"] = stage
        (target,) = targets_asked(context, [name])
    return target


def _answered(called: str, found: LossEstimate, promise: Claim | None, out: Path | None, as_json: bool) -> int:
    """Save an estimate and its figure, and show it."""
    from audit.results import printable
    from audit.results.folder import save_result
    from audit.results.formatting import percent

    if out is not None:
        saved = save_result(found, out, called)
        _draw(called, found, promise, saved.with_suffix(".png"))
    if as_json:
        print(json.dumps({called: found.to_dict()}, indent=1, allow_nan=False))
        return WITHIN
    low, high = found.interval
    print(
        printable(f"{called}: {found.statistic} {found.value:.4g}, interval {low:.4g} to {high:.4g}"),
        f"({percent(found.confidence)}, of chance alone), in nats for one person. An estimate, not a bound.",
    )
    print(f"Promise: {promise or 'none stated'}.")
    if stage := found.settings.get("stage"):
        print(f"Stage: {stage}.")
    what = "errors"
    if "entry" in found.settings:
        what = f"outputs, by entry {found.settings['entry']}, the first of those that the pair changes most"
        print(f"The pair changes {found.settings['entries_changed']:,} entries.")
    print(f"From {found.size:,} x {found.areas:,} {what}. It means a loss if:")
    for words in found.assumptions:
        print(f"- {words}")
    if out is not None:
        print(printable(f"Saved in {out}/: {saved.name} and {saved.with_suffix('.png').name}."))
    return WITHIN


def _draw(called: str, found: LossEstimate, promise: Claim | None, path: Path) -> None:
    """Draw the curve, and the promise if it is one number of nats."""
    from audit.results.plots import BLACK, house_style, new_figure, plot_estimate, save_figure

    with house_style():
        figure, (ax,) = new_figure(6.0, 3.6)
        plot_estimate(found, ax)
        if promise is not None and math.isfinite(most := promise.epsilon_at(0.0)):
            ax.axhline(most, color=BLACK, linewidth=1.2, label=f"promise: {promise}")
        ax.set_title(f"{called}: an estimate, not a bound", parse_math=False)
        ax.legend(loc="best")
    save_figure(figure, path)
