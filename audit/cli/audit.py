"""`plaudit audit`: measure mechanisms, or outputs from elsewhere, against their promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.inputs.options import (
    PERSONS,
    WHOLE,
    AsJson,
    Confidence,
    DatabaseOptions,
    Out,
    Seed,
    TargetOptions,
    WorkerOptions,
    known_names,
    refuse,
    with_options,
)
from audit.cli.run_audits import AuditTask, run_audits
from audit.cli.supervision import set_deadline

if TYPE_CHECKING:
    from audit.claims import Claim
    from audit.cli.inputs.targets import Target
    from audit.neighbors import NeighborPair
    from audit.results import AuditResult

__all__ = ["LIMITS", "audit"]

LIMITS = """\b
What no audit sees                         What to do
events that only few of the runs meet      more runs; Event, in Python
a pattern across three or more entries,
  except their sum, extremes and repeats   Statistic of your own, in Python
text inside words, other than numbers,
  length, and the first and last 8         no power, if no counted word was
  letters                                  seen in selection
differences beyond the ninth decimal,
  except the last bits of floats           Statistic of your own, in Python
the order of keys in a mapping             a list of (key, value), or a Statistic
types: 1, 1.0 and True; 0 and -0.0; names
  of classes, of rows of all runs; how
  many decimals numbers have               return them as words
why a run raised, what it warned of        return it as a word
other databases and relations              --cells; search_loss, in Python
how long a run takes, what else it does    audit.replay, in Python
"""

NOT_OF_OUTPUTS = (  # options that outputs from elsewhere have not
    f"data {PERSONS} set cell cells people move_to add_row at replace_row epsilon rho preset stage pair size jobs "
    "backend early store one_run"
)
NOT_OF_ONE_RUN = "cell cells move_to add_row replace_row size attack early jobs backend store"  # that one run has not


@dataclass(frozen=True)
class OutputOptions:
    """Outputs of a mechanism that ran elsewhere."""

    outputs_x: Annotated[
        Path | None,
        "File of outputs from elsewhere, one run per line: numbers, words or both. Words need a first line of names.",
    ] = None
    outputs_y: Annotated[Path | None, "The same on the neighboring database."] = None
    distance: Annotated[int, "With --outputs-x: steps between the two databases."] = 1


@dataclass(frozen=True)
class RunOptions:
    """How many runs there are, and how they are used."""

    one_run: Annotated[bool, "Run once. A secret coin per cell decides whether one person (or --people) is added."] = (
        False
    )
    size: Annotated[
        int | None,
        "--size",
        "--runs",
        WHOLE,
        "Total runs over both databases, such as 1e6. Default: 200,000; fewer for a slow system.",
    ] = None
    confidence: Confidence = 0.95
    attack: Annotated[str, "Attack to use: auto, or a name. A wrong name lists all."] = "auto"
    early: Annotated[bool, "Stop as soon as the verdict is clear; --size is then the maximum."] = False
    seed: Seed = None


@with_options
def audit(
    context: typer.Context,
    *,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=known_names,
            help="Names from `plaudit list` (rdpc needs bundled data or --areas), or module:object for a mechanism of "
            "your own, callable as (data, size, rng).",
        ),
    ] = None,
    options: TargetOptions,
    databases: DatabaseOptions,
    outputs: OutputOptions,
    runs: RunOptions,
    workers: WorkerOptions,
    out: Out = None,
    store: Annotated[Path | None, "Folder for finished runs. Repeat the command after a stop to continue."] = None,
    timeout: Annotated[float | None, "Seconds after which the command stops everything."] = None,
    as_json: AsJson = False,
) -> int:
    """Audit mechanisms against their promises."""
    from audit.arguments import fraction
    from audit.cli.inputs.targets import promise_of, select_targets
    from audit.results.formatting import percent

    stored = f"are in {store}, and the same command goes on from them"
    set_deadline(
        timeout, f"; finished runs {stored}" if store else "; with --store, finished runs would have been kept"
    )
    common: dict[str, Any] = {"confidence": runs.confidence, "rng": runs.seed}
    x, y = outputs.outputs_x, outputs.outputs_y
    if x is not None or y is not None:
        if x is None or y is None or targets:
            raise ValueError("--outputs-x and --outputs-y go together, and without the name of a mechanism")
        refuse(context, NOT_OF_OUTPUTS, "has no effect on outputs from elsewhere")
        common |= {"attack": runs.attack, "distance": outputs.distance}
        common["confidential"] = not options.public_data
        return run_audits([_of_outputs(x, y, options, common)], out, as_json, context)
    if not targets:
        raise ValueError("name at least one mechanism (see `plaudit list`), or give --outputs-x and --outputs-y")
    refuse(context, "distance", "is for outputs from elsewhere: give --people")
    if runs.one_run:
        refuse(context, NOT_OF_ONE_RUN, "is for many runs, and --one-run is one")
    else:
        common |= {"attack": runs.attack, "n_jobs": workers.jobs, "store": store}
        common["stop"] = "early" if runs.early else "fixed"
    selected = select_targets(context, targets, options, databases, workers)
    notes: list[str] = []
    together = len(selected[0].pairs)
    if together > 1:  # an equal share of the error probability for each
        error = 1 - Decimal(str(fraction("confidence", runs.confidence)))  # as it is written, so that no digits come in
        common["confidence"] = each = float(1 - error / together)
        notes.append(
            f"Each of the {together} pairs of databases is audited at {percent(each)} confidence: together their "
            f"lower bounds hold at {percent(runs.confidence)}."
        )
    tasks = []
    for target in selected:
        promised = promise_of(target, options.claim, notes)
        if runs.one_run:
            tasks.append(_in_one_run(target, promised, databases.people, common))
        else:
            size = target.runs if runs.size is None else runs.size
            tasks += _of_target(target, promised, common | {"size": size})
    if notes and not as_json:
        print("\n".join(dict.fromkeys(notes)))
    return run_audits(tasks, out, as_json, context)


def _of_outputs(x: Path, y: Path, options: TargetOptions, common: dict[str, Any]) -> AuditTask:
    from audit.claims import parse_claim
    from audit.cli.inputs.tables import read_outputs
    from audit.measure.loss import measure_loss_from_outputs

    if not options.claim or not options.relation:
        raise ValueError(
            "outputs from elsewhere need --claim, such as pure:1, and --relation add_remove or replace_one"
        )
    relation: Any = options.relation
    promise = parse_claim(options.claim, relation)
    outputs, columns = read_outputs(x, y)
    common |= {"relation": relation, "label": f"outputs in {x.name} and {y.name}", "columns": columns}
    return AuditTask("outputs", partial(measure_loss_from_outputs, outputs[0], outputs[1], promise, **common))


def _of_target(target: Target, promised: Claim, common: dict[str, Any]) -> Iterator[AuditTask]:
    from audit.cli.inputs.mechanisms import blaming
    from audit.measure.loss import measure_loss

    def measured(pair: NeighborPair) -> AuditResult:
        with blaming(target.name):
            return measure_loss(target.mechanism, pair, promised, progress=True, **common)

    for words, pair, options, commands in target.pairs:
        own_options = options | ({"confidence": common["confidence"]} if len(target.pairs) > 1 else {})
        name = " ".join(filter(None, (target.label, words)))
        yield AuditTask(
            name, partial(measured, pair), target.name, own_options, len(target.pairs), next_commands=commands
        )


def _in_one_run(target: Target, promised: Claim, people: int, common: dict[str, Any]) -> AuditTask:
    from audit.cli.inputs.mechanisms import blaming
    from audit.measure.one_run import Canaries, measure_loss_one_run

    words, pair, own_options, _ = target.pairs[0]

    def measured() -> AuditResult:
        with blaming(target.name):
            if pair.adjacency != "verified" or pair.unit != "person":  # a person more in any cell must be a neighbor
                raise ValueError(f"an audit of one run needs counts of people, and its databases are {pair.label!r}")
            canaries = Canaries(pair.x, people=people)
            return measure_loss_one_run(target.mechanism, canaries, promised, confidential=pair.confidential, **common)

    name = " ".join(filter(None, (target.label, "" if own_options else words, "one run")))
    return AuditTask(name, measured, target.name)
