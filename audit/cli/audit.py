"""`plaudit audit`: measure mechanisms, or outputs of another program, and compare them with their promises."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.inputs import EVENTS
from audit.cli.inputs.groups import Confidence, DatabaseOptions, ResultOptions, Seed, TargetOptions, WorkerOptions
from audit.cli.inputs.options import PERSONS, WHOLE, known_names, refuse, with_options
from audit.cli.run_audits import AuditTask, run_audits
from audit.cli.supervision import set_deadline

if TYPE_CHECKING:
    from audit.claims import Claim
    from audit.cli.inputs.targets import Target
    from audit.results import AuditResult

__all__ = ["audit"]

NOT_OF_OUTPUTS = (  # options that do not apply to outputs of another program
    f"data {PERSONS} set cell cells people move_to add_row at replace_row epsilon rho preset stage pair size jobs "
    "backend store one_run"
)
NOT_OF_ONE_RUN = (
    "cell cells move_to add_row replace_row size attack event early jobs backend store"  # not with --one-run
)
TARGETS = (
    "Names from `plaudit list` (rdpc needs bundled data or --areas), or module:object for a mechanism of your own, "
    "callable as (data, size, rng)."
)
ONE_RUN = "Run once. A secret coin per cell decides whether one person (or --people) is added."
TOTAL = "Total runs over both databases; by default 200,000, or fewer for a slow system."


@dataclass(frozen=True)
class OutputOptions:
    """Outputs of another program."""

    outputs_x: Annotated[
        Path | None,
        "File of outputs from elsewhere, one run per line: numbers, words or both. Words need a first line of names.",
    ] = None
    outputs_y: Annotated[Path | None, "The same on the neighboring database."] = None
    distance: Annotated[int, "With --outputs-x: steps between the two databases."] = 1


@dataclass(frozen=True)
class RunOptions:
    """Runs and time."""

    one_run: Annotated[bool, ONE_RUN] = False
    size: Annotated[int | None, "--size", "--runs", WHOLE, TOTAL] = None
    confidence: Confidence = 0.95
    attack: Annotated[str, "Attack to use: auto, or a name. An unknown name prints the list."] = "auto"
    event: Annotated[
        str | None,
        f"Count one event, fixed before you saw these runs; this saves the runs that choose: {EVENTS}. A column's name "
        "may stand for output[3].",
    ] = None
    early: Annotated[
        bool,
        "Stop as soon as the verdict is clear; --size is then the maximum. Files of outputs may be audited again and "
        "again while they grow.",
    ] = False
    seed: Seed = None
    store: Annotated[Path | None, "Folder for finished runs. Repeat the command after a stop to continue."] = None
    timeout: Annotated[float | None, "Seconds after which the command stops everything."] = None


@with_options
def audit(
    context: typer.Context,
    *,
    targets: Annotated[list[str] | None, typer.Argument(autocompletion=known_names, help=TARGETS)] = None,
    options: TargetOptions,
    databases: DatabaseOptions,
    outputs: OutputOptions,
    runs: RunOptions,
    workers: WorkerOptions,
    result_options: ResultOptions,
) -> int:
    """Audit mechanisms against their promises."""
    from audit.cli.inputs.events import parse_event
    from audit.cli.inputs.targets import promise_of, select_targets

    advice = f"; finished runs are in {runs.store}, and the same command goes on from them"
    set_deadline(runs.timeout, advice if runs.store else "; with --store, finished runs would have been kept")
    if outputs.outputs_x is not None or outputs.outputs_y is not None:
        if targets:
            raise ValueError("--outputs-x and --outputs-y go together, and without the name of a mechanism")
        refuse(context, NOT_OF_OUTPUTS, "has no effect on outputs from elsewhere")
        return run_audits([_of_outputs(outputs, options, runs)], result_options, context)
    if not targets:
        raise ValueError("name at least one mechanism (see `plaudit list`), or give --outputs-x and --outputs-y")
    refuse(context, "distance", "is for outputs from elsewhere: give --people")
    if runs.one_run:
        refuse(context, NOT_OF_ONE_RUN, "is for many runs, and --one-run is one")
    selected = select_targets(context, targets, options, databases, workers)
    notes: list[str] = []
    common: dict[str, Any] = {"confidence": _each(runs.confidence, len(selected[0].pairs), notes), "rng": runs.seed}
    if not runs.one_run:
        common["event"] = None if runs.event is None else parse_event(runs.event)
        common |= {"attack": runs.attack, "n_jobs": workers.jobs, "store": runs.store, "progress": True}
        common["stop"] = "early" if runs.early else "fixed"
    tasks = []
    for target in selected:
        promise = promise_of(target, options.claim, notes)
        if runs.one_run:
            tasks.append(_in_one_run(target, promise, databases.people, common))
        else:
            from audit.measure.loss import measure_loss

            settings = common | {"size": target.runs if runs.size is None else runs.size}
            together = len(target.pairs)
            for words, pair, own, command in target.pairs:
                work = partial(measure_loss, target.mechanism, pair, promise, **settings)
                own = own | ({"confidence": common["confidence"]} if together > 1 else {})
                tasks.append(AuditTask(target.named(words), work, target.name, own, together, next_command=command))
    if notes and not result_options.as_json:
        print("\n".join(dict.fromkeys(notes)))
    return run_audits(tasks, result_options, context)


def _each(confidence: float, together: int, notes: list[str]) -> float:
    """Return the confidence of each of several pairs: an equal share of the error probability."""
    from audit.arguments import fraction
    from audit.results.formatting import percent

    if together == 1:
        return confidence
    error = 1 - Decimal(str(fraction("confidence", confidence)))  # decimal arithmetic: a float would add digits
    each = float(1 - error / together)
    joint = f"together their lower bounds hold at {percent(confidence)}"
    notes.append(f"Each of the {together} pairs of databases is audited at {percent(each)} confidence: {joint}.")
    return each


def _of_outputs(outputs: OutputOptions, options: TargetOptions, runs: RunOptions) -> AuditTask:
    from audit.claims import parse_claim
    from audit.cli.inputs.events import parse_event
    from audit.cli.inputs.tables import read_outputs
    from audit.measure.loss import LOOKED_AT, measure_loss_from_outputs

    x, y = outputs.outputs_x, outputs.outputs_y
    if x is None or y is None:
        raise ValueError("--outputs-x and --outputs-y go together, and without the name of a mechanism")
    if not options.claim or not options.relation:
        needed = "--claim, such as pure:1, and --relation add_remove or replace_one"
        raise ValueError(f"outputs from elsewhere need {needed}")
    relation: Any = options.relation
    promise = parse_claim(options.claim, relation)
    (outputs_x, outputs_y), columns = read_outputs(x, y, first=LOOKED_AT if runs.early else 0)
    about: dict[str, Any] = {"relation": relation, "distance": outputs.distance, "columns": columns}
    about |= {"label": f"outputs in {x.name} and {y.name}", "confidential": not options.public_data}
    event = None if runs.event is None else parse_event(runs.event, columns)
    settings: dict[str, Any] = {"attack": runs.attack, "event": event, "confidence": runs.confidence, "rng": runs.seed}
    settings["stop"] = "early" if runs.early else "fixed"

    def audit() -> AuditResult:
        result = measure_loss_from_outputs(outputs_x, outputs_y, promise, **about, **settings)
        if runs.early:
            given = len(outputs_x) + len(outputs_y)
            print(f"plaudit: {result.size:,} of {given:,} runs: {result.notes[-1]}", file=sys.stderr)
        return result

    return AuditTask("outputs", audit)


def _in_one_run(target: Target, promise: Claim, people: int, common: dict[str, Any]) -> AuditTask:
    from audit.measure.one_run import Canaries, measure_loss_one_run

    words, pair, own_options, _ = target.pairs[0]

    def audit() -> AuditResult:
        if pair.adjacency != "verified" or pair.unit != "person":  # one more person in any cell must give a neighbor
            raise ValueError(f"an audit of one run needs counts of people, and its databases are {pair.label!r}")
        canaries = Canaries(pair.x, people=people)
        return measure_loss_one_run(target.mechanism, canaries, promise, confidential=pair.confidential, **common)

    return AuditTask(target.named("" if own_options else words, "one run"), audit, target.name)
