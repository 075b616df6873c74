"""`plaudit estimate`: what the errors of a release, or counts on two databases, suggest; never a verdict."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.exits import WITHIN
from audit.cli.inputs.options import (
    PERSONS,
    AsJson,
    DatabaseOptions,
    Seed,
    TargetOptions,
    WorkerOptions,
    refuse,
    with_options,
)
from audit.cli.run_audits import check_out, command_of
from audit.io.text import printable

if TYPE_CHECKING:
    from audit.claims import Claim
    from audit.cli.inputs.targets import Target
    from audit.results import LossEstimate

__all__: list[str] = []

DIRECT, RESIDUAL = "direct", "residual"
# Settings of estimates from residuals; what errors from elsewhere have not:
OF_CURVES = "bandwidth percentile multiplier change"
OF_CELLS = "cell cells people move_to"
OF_RECORDS = "add_row at replace_row"
OF_RUNS = f"data {PERSONS} set epsilon rho preset stage pair {OF_CELLS} {OF_RECORDS} runs event jobs backend"


@dataclass(frozen=True)
class MethodOptions:
    """Settings of methods: of direct estimates, and of those from the errors of one release."""

    runs: Annotated[
        int | None,
        "For direct: runs over both databases; default 20,000. For others: releases; default one, or enough for 10,000 "
        "errors.",
    ] = None
    event: Annotated[str, "For direct: at_least (an error of k people or more), or equal (of exactly k people)."] = (
        "at_least"
    )
    bandwidth: Annotated[
        str | None,
        "For kde: kernel width in standard deviations, or robust for errors with heavy tails. Default: 0.15.",
    ] = None
    percentile: Annotated[float | None, "For histogram, kde: percentile of errors for the window. Default: 95."] = None
    multiplier: Annotated[float | None, "For histogram, kde: window as a multiple of the percentile. Default: 2."] = (
        None
    )
    change: Annotated[
        float | None, "For slope: change of an entry by one person, in people. Default: 1, or from the pair."
    ] = None


@with_options
def estimate(
    context: typer.Context,
    *,
    name: Annotated[
        str,
        typer.Argument(
            help="A name from `plaudit list`, or module:object for a mechanism of your own. Its method exact(data) "
            "returns the output without noise."
        ),
    ] = "",
    method: Annotated[
        str,
        "direct counts an event on two databases. lag-tail, histogram, kde and slope (for rho) use the errors of one "
        "release. residual is lag-tail, or kde if one of its settings is given, or slope if rho is promised.",
    ] = RESIDUAL,
    residuals: Annotated[
        Path | None,
        "Errors (released minus true counts, in people) instead of a name: .csv with one per line, or .npy.",
    ] = None,
    options: TargetOptions,
    databases: DatabaseOptions,
    tuning: MethodOptions,
    confidence: Annotated[float, "Two-sided, for each interval alone."] = 0.95,
    workers: WorkerOptions,
    seed: Seed = None,
    out: Annotated[Path | None, "Folder for the estimate (JSON) and its figure. Existing results stay."] = None,
    as_json: AsJson = False,
) -> int:
    """Estimate a privacy loss. An estimate is neither a bound nor a verdict."""
    from audit.claims import parse_claim
    from audit.cli.inputs.mechanisms import blaming, source_of
    from audit.cli.inputs.tables import read_errors
    from audit.cli.inputs.targets import promise_of
    from audit.estimates.residuals import residual_loss
    from audit.estimates.running import estimate_loss
    from audit.results.folder import name_in_files
    from audit.sampling.streams import seed_sequence

    direct = method == DIRECT
    if direct:
        refuse(context, OF_CURVES, "is for estimates from residuals, got --method direct")
    else:
        refuse(context, f"event {OF_CELLS}", "is for --method direct: residuals are those of all entries")
    if (residuals is None) != bool(name):
        raise ValueError("name one mechanism (see `plaudit list`), or give --residuals")
    if residuals is not None and direct:
        raise ValueError("--method direct needs runs on two databases, and --residuals are of one release")
    root = seed_sequence(seed)
    settings: dict[str, Any] = {
        key: value for key, value in asdict(tuning).items() if value is not None and key != "event"
    }
    if tuning.bandwidth not in (None, "robust"):
        settings["bandwidth"] = _number("bandwidth", str(tuning.bandwidth))
    settings |= {"confidence": confidence, "rng": root}
    if residuals is not None:
        refuse(context, OF_RUNS, "has no effect on residuals from elsewhere")
        label, relation = residuals.name, options.relation or "add_remove"
        promise = parse_claim(options.claim, relation) if options.claim else None  # type: ignore[arg-type]
        errors = read_errors(residuals)
        settings["method"] = kind = _kind(method, settings, promise)
        check_out(out, f"{name_in_files(f'{label} {kind}')}.png")
        with blaming(str(residuals)):
            result = residual_loss(errors, **settings)
        confidential = not options.public_data
    else:
        target, stage = _with_truth(context, name, options, databases)
        if len(target.pairs) > 1:
            raise ValueError(f"an estimate is of one cell, got {len(target.pairs)}")
        ((words, pair, *_),) = target.pairs
        label = " ".join(filter(None, (target.label, words)))
        known = options.claim or hasattr(target.mechanism, "claim")
        promise = promise_of(target, options.claim, []) if known else None
        settings["method"] = kind = DIRECT if direct else _kind(method, settings, promise)
        check_out(out, f"{name_in_files(f'{label} {kind}')}.png")
        context.with_resource(workers.started())  # whose processes find what was imported
        settings |= {"n_jobs": workers.jobs, "progress": True} | ({"event": tuning.event} if direct else {})
        with blaming(name):
            result = estimate_loss(target.mechanism, pair, **settings)
        confidential = pair.confidential
        result = replace(result, settings=result.settings | {"pair": pair.label, "stage": stage})
    command = command_of(context, ["estimate", name], {}, root.entropy)
    details = {"promise": str(promise or ""), "seed": root.entropy, "command": command, "confidential": confidential}
    result = replace(result, settings=result.settings | details | source_of(name))
    return _answered(f"{label} {kind}", result, promise, out, as_json)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number or robust, got {text!r}") from None


def _kind(method: str, options: dict[str, Any], promise: Claim | None) -> str:
    from audit.estimates.curves import CURVES

    kinds = {name.replace("_", "-"): name for name in CURVES}
    if method in kinds:
        return kinds[method]
    if method != RESIDUAL:
        raise ValueError(f"method must be one of {', '.join((DIRECT, RESIDUAL, *kinds))}, got {method!r}")
    if options.keys() & {"bandwidth", "percentile", "multiplier"}:
        return "kde"
    return "slope" if "change" in options or (promise is not None and promise.parameter == "rho") else "lag_tail"


def _with_truth(
    context: typer.Context, name: str, options: TargetOptions, databases: DatabaseOptions
) -> tuple[Target, str]:
    """Return the named mechanism and its stage: the first stage with an exact output, if the release has none."""
    from audit.cli.inputs.targets import select_targets

    (target,), stage = select_targets(context, [name], options, databases), options.stage
    for other in target.system.stages if target.system and not stage else ():
        if hasattr(target.mechanism, "exact"):
            break
        (target,), stage = select_targets(context, [name], replace(options, stage=other), databases), other
    return target, stage


def _answered(label: str, result: LossEstimate, promise: Claim | None, out: Path | None, as_json: bool) -> int:
    from audit.results.folder import save_result
    from audit.results.formatting import percent

    if out is not None:
        saved = save_result(result, out, label)
        _draw(label, result, promise, saved.with_suffix(".png"))
    if as_json:
        print(json.dumps({label: result.to_dict()}, indent=1, allow_nan=False))
        return WITHIN
    (low, high), settings, what = result.interval, result.settings, "errors"
    unit = " nats" if result.unit == "nats" else ""
    lines = ["CONFIDENTIAL: this estimate is of confidential data."] if result.confidential else []
    lines += [
        f"{label}: {result.statistic} {result.value:.4g}{unit}, interval {low:.4g} to {high:.4g} "
        f"({percent(result.confidence)}, of chance alone), for one person. An estimate, not a bound.",
        f"Promise: {promise or 'none stated'}.",
    ]
    if settings.get("stage"):
        lines.append(f"Stage: {settings['stage']}.")
    if "entry" in settings:
        what = f"outputs, by entry {settings['entry']}, the first of those that the pair changes most"
        lines.append(f"The pair changes {settings['entries_changed']:,} entries.")
    if components := settings.get("components"):
        lines.append(f"The sum of {components:,} components that the pair changes, each of one law of noise.")
    lines.append(f"From {result.size:,} x {result.areas:,} {what}. It means a loss if:")
    lines += [f"- {words}" for words in result.assumptions]
    lines += [f"Note: {words}." for words in result.notes]
    if out is not None:
        lines.append(f"Saved in {out}/: {saved.name} and {saved.with_suffix('.png').name}.")
    for line in lines:
        print(printable(line))
    return WITHIN


def _draw(label: str, result: LossEstimate, promise: Claim | None, path: Path) -> None:
    from audit.results.plots import BLACK, house_style, label_of, new_figure, plot_estimate, save_figure

    with house_style():
        figure, (ax,) = new_figure(6.0, 3.6)
        plot_estimate(result, ax)
        if promise is not None and math.isfinite(most := promise.epsilon_at(0.0)):
            ax.axhline(most, color=BLACK, linewidth=1.2, label=f"promise: {promise}")
        ax.set_title(f"{label_of(label)}: an estimate, not a bound")
        ax.legend(loc="best")
    save_figure(figure, path, private=result.confidential)
