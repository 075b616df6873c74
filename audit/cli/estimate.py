"""`plaudit estimate`: estimate a loss from the errors of a release, or from counts on two databases; no verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from audit.cli.exits import WITHIN
from audit.cli.inputs.groups import AsJson, DatabaseOptions, Seed, TargetOptions, WorkerOptions
from audit.cli.inputs.options import PERSONS, refuse, with_options
from audit.cli.run_audits import check_out, command_of

if TYPE_CHECKING:
    from audit.claims import Claim
    from audit.results import LossEstimate

__all__: list[str] = []

DIRECT, RESIDUAL = "direct", "residual"
NAME = (
    "A name from `plaudit list`, or module:object for a mechanism of your own. Its method exact(data) returns the "
    "output without noise."
)
# Options of estimates from residuals, then options that do not apply to errors read from a file:
OF_CURVES = "bandwidth percentile multiplier change"
OF_CELLS = "cell cells people move_to"
OF_RECORDS = "add_row at replace_row"
OF_RUNS = f"data {PERSONS} set epsilon rho preset stage pair {OF_CELLS} {OF_RECORDS} runs event jobs backend"


@dataclass(frozen=True)
class MethodOptions:
    """Settings of the method."""

    runs: Annotated[
        int | None, "For direct: runs, by default 20,000; for others: releases, by default enough for 10,000 errors."
    ] = None
    event: Annotated[str, "For direct: at_least (an error of k people or more), or equal (of k people)."] = "at_least"
    bandwidth: Annotated[str | None, "For kde: width in standard deviations, or robust; by default 0.15."] = None
    percentile: Annotated[float | None, "For histogram, kde: percentile of errors; by default 95."] = None
    multiplier: Annotated[float | None, "For histogram, kde: window, as a multiple of it; by default 2."] = None
    change: Annotated[float | None, "For slope: change of an entry by one person; by default 1, or the pair's."] = None


@with_options
def estimate(
    context: typer.Context,
    *,
    name: Annotated[str, typer.Argument(help=NAME)] = "",
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
    from audit.cli.inputs.targets import blaming, source_of
    from audit.io.terminal import say
    from audit.results.folder import name_in_files, save_result
    from audit.sampling.streams import seed_sequence

    direct = method == DIRECT
    if direct:
        refuse(context, OF_CURVES, "is for estimates from residuals, got --method direct")
    else:
        refuse(context, f"event {OF_CELLS}", "is for --method direct: residuals are those of all entries")
    if (residuals is None) != bool(name):
        raise ValueError("name one mechanism (see `plaudit list`), or give --residuals")
    if residuals is not None:
        if direct:
            raise ValueError("--method direct needs runs on two databases, and --residuals are of one release")
        refuse(context, OF_RUNS, "has no effect on residuals from elsewhere")
    root = seed_sequence(seed)
    settings = {key: value for key, value in asdict(tuning).items() if value is not None and key != "event"}
    if tuning.bandwidth not in (None, "robust"):
        try:
            settings["bandwidth"] = float(settings["bandwidth"])
        except ValueError:
            raise ValueError(f"bandwidth must be a number or robust, got {tuning.bandwidth!r}") from None
    if residuals is None:
        source = _of_mechanism(context, name, options, databases, workers)
    else:
        source = _of_errors(residuals, options)
    settings["method"] = kind = DIRECT if direct else _kind(method, settings, source.promise)
    label = f"{source.label} {kind}"
    check_out(out, f"{name_in_files(label)}.png")
    with blaming(name or str(residuals)), workers.started():  # after the imports, so that workers can repeat them
        settings |= {"confidence": confidence, "rng": root} | ({"event": tuning.event} if direct else {})
        result = source.estimate(**settings)
    command = command_of(context, ["estimate", name], {}, root.entropy)
    details = {"promise": str(source.promise or ""), "seed": root.entropy, "command": command}
    result = replace(result, settings=result.settings | source.details | details | source_of(name))
    saved: list[str] = []
    if out is not None:
        path = save_result(result, out, label)
        _draw(label, result, source.promise, path.with_suffix(".png"))
        saved = [f"Saved in {out}/: {path.name} and {path.with_suffix('.png').name}."]
    if as_json:
        print(json.dumps({label: result.to_dict()}, indent=1, allow_nan=False))
    else:
        say(*_lines(label, result, source.promise), *saved)
    return WITHIN


class Source(NamedTuple):
    """The source of an estimate: its label, its promise or None, the function to call, and details for the result."""

    label: str
    promise: Claim | None
    estimate: Callable[..., LossEstimate]
    details: dict[str, Any]


def _of_errors(residuals: Path, options: TargetOptions) -> Source:
    from audit.claims import check_relation, parse_claim
    from audit.cli.inputs.tables import read_errors
    from audit.estimates.residuals import residual_loss

    relation: Any = options.relation or "add_remove"
    check_relation(relation)
    promise = parse_claim(options.claim, relation) if options.claim else None
    estimate = partial(residual_loss, read_errors(residuals))
    return Source(residuals.name, promise, estimate, {"confidential": not options.public_data})


def _of_mechanism(
    context: typer.Context, name: str, options: TargetOptions, databases: DatabaseOptions, workers: WorkerOptions
) -> Source:
    """Return a mechanism; if a system's release has no exact output, use the first stage that has one."""
    from audit.cli.inputs.targets import promise_of, select_targets
    from audit.estimates.running import estimate_loss

    (target,), stage = select_targets(context, [name], options, databases), options.stage
    for other in target.system.stages if target.system and not stage else ():
        if hasattr(target.mechanism, "exact"):
            break
        (target,), stage = select_targets(context, [name], replace(options, stage=other), databases), other
    if len(target.pairs) > 1:
        raise ValueError(f"an estimate is of one cell, got {len(target.pairs)}")
    ((words, pair, *_),) = target.pairs
    promise = promise_of(target, options.claim) if options.claim or hasattr(target.mechanism, "claim") else None
    estimate = partial(estimate_loss, target.mechanism, pair, n_jobs=workers.jobs, progress=True)
    details = {"confidential": pair.confidential, "pair": pair.label, "stage": stage}
    return Source(target.named(words), promise, estimate, details)


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


def _lines(label: str, result: LossEstimate, promise: Claim | None) -> Iterator[str]:
    from audit.results.formatting import percent

    (low, high), settings, what = result.interval, result.settings, "errors"
    unit = " nats" if result.unit == "nats" else ""
    if result.confidential:
        yield "CONFIDENTIAL: this estimate is of confidential data."
    yield (
        f"{label}: {result.statistic} {result.value:.4g}{unit}, interval {low:.4g} to {high:.4g} "
        f"({percent(result.confidence)}, of chance alone), for one person. An estimate, not a bound."
    )
    yield f"Promise: {promise or 'none stated'}."
    if settings.get("stage"):
        yield f"Stage: {settings['stage']}."
    if "entry" in settings:
        what = f"outputs, by entry {settings['entry']}, the first of those that the pair changes most"
        yield f"Entries that the pair changes: {settings['entries_changed']:,}."
    if components := settings.get("components"):
        yield f"The sum of {components:,} components that the pair changes, each of one law of noise."
    yield f"From {result.size:,} x {result.areas:,} {what}. It means a loss if:"
    yield from (f"- {words}" for words in result.assumptions)
    yield from (f"Note: {words}." for words in result.notes)


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
