"""`plaudit audit`: measure mechanisms, or outputs from elsewhere, against their promises."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.answering import Question, answer
from audit.cli.inputs.options import (
    OF_PERSONS,
    Areas,
    AsJson,
    Budget,
    Cell,
    ClaimText,
    Confidence,
    Config,
    Count,
    Data,
    Derive,
    Geo,
    Jobs,
    Out,
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
    known_names,
    refuse,
    whole_size,
)
from audit.cli.supervision import expect
from audit.io.backends import Address, Backend, on_backend

if TYPE_CHECKING:
    from audit.claims import Claim
    from audit.cli.inputs.targets import Target
    from audit.neighbors import NeighborPair
    from audit.results import AuditResult

__all__ = ["LIMITS", "audit"]

LIMITS = """\b
What no audit sees                         What to do
events that only few of the runs meet      more runs; Event, in Python
what only three entries or more tell, but
  for their sum, extremes and repeats      Statistic of your own, in Python
what is inside words, but for numbers,
  length, first and last 8 letters         no power is said, if all are new
differences beyond the ninth decimal,
  but for the last bits of floats          Statistic of your own, in Python
the order of keys in a mapping             a list of (key, value), or a Statistic
types: 1, 1.0 and True; 0 and -0.0; names
  of classes, of rows of all runs; how
  many decimals numbers have               return them as words
why a run raised, what it warned of        return it as a word
other databases and relations              --cells; search_loss, in Python
how long a run takes, what else it does    audit.replay, in Python
"""

FROM_ELSEWHERE = (  # options that outputs from elsewhere have not
    f"data {OF_PERSONS} cell cells people move_to add_row replace_row epsilon rho preset stage pair size jobs backend "
    "early store one_run share"
)
OF_RUNS = (
    "cell cells move_to add_row replace_row size selection attack early jobs backend store"  # that one run has not
)


def audit(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=known_names,
            help="Names from `plaudit list` (rdpc needs bundled data), or module:object for a mechanism of your own, "
            "callable as (data, size, rng).",
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
    cells: Annotated[
        str, typer.Option(help="Areas by their counts, as many as you name: smallest,largest,empty.")
    ] = "",
    people: Annotated[int, typer.Option(help="People by whom they differ; the loss is divided by it.")] = 1,
    move_to: Annotated[
        int | None, typer.Option(help="Move the people to this area instead of adding them (replace_one).")
    ] = None,
    add_row: Annotated[
        str | None,
        typer.Option(help="Record that is added, as a JSON object or as values in the order of the columns."),
    ] = None,
    replace_row: Annotated[
        tuple[int, str] | None,
        typer.Option(metavar="INDEX VALUES", help="Number of the record that is replaced, from 0, and by which one."),
    ] = None,
    outputs_x: Annotated[
        Path | None,
        typer.Option(
            help="Outputs of a mechanism that ran elsewhere, one run a line: numbers, words or both; words need a line "
            "of names."
        ),
    ] = None,
    outputs_y: Annotated[Path | None, typer.Option(help="The same on the neighboring database.")] = None,
    distance: Annotated[int, typer.Option(help="With --outputs-x: steps between the two databases.")] = 1,
    one_run: Annotated[
        bool,
        typer.Option("--one-run", help="Run once: in every cell a person (or --people) is in or out by a secret coin."),
    ] = False,
    share: Annotated[
        float | None, typer.Option(help="With --one-run: share of the cells that are guessed. Default: by the promise.")
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            parser=whole_size,
            metavar="RUNS",
            help="Runs in all, over both databases, such as 1e6. Default: 200,000, of a slow system fewer.",
        ),
    ] = None,
    selection: Annotated[float, typer.Option(help="Share of them that chooses the event.")] = 0.3,
    confidence: Confidence = 0.95,
    attack: Annotated[str, typer.Option(help="Where to look: auto, or an attack; a wrong name lists all.")] = "auto",
    early: Annotated[
        bool, typer.Option("--early", help="Stop as soon as the answer is clear; --size is then the most runs.")
    ] = False,
    seed: Seed = None,
    jobs: Jobs = -1,
    backend: Backend = "",
    address: Address = "",
    out: Out = None,
    name: Annotated[
        str, typer.Option(help="What to call the result; of several mechanisms, how their names begin.")
    ] = "",
    store: Annotated[
        Path | None, typer.Option(help="Folder for finished runs: an audit that was stopped goes on from them.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which everything is stopped.")] = None,
    public_data: PublicData = False,
    as_json: AsJson = False,
) -> int:
    """Audit mechanisms against their promises."""
    from audit.arguments import fraction
    from audit.cli.inputs.targets import promise_of, targets_asked
    from audit.results.formatting import percent

    expect(timeout, _advice(store))
    check_numbers(context)
    common: dict[str, Any] = {"attack": attack, "selection": selection, "confidence": confidence, "rng": seed}
    notes: list[str] = []
    if outputs_x is not None or outputs_y is not None:
        if outputs_x is None or outputs_y is None or targets:
            raise ValueError("--outputs-x and --outputs-y go together, and without the name of a mechanism")
        refuse(context, FROM_ELSEWHERE, "has no effect on outputs from elsewhere")
        common |= {"relation": relation, "distance": distance, "confidential": not public_data}
        questions = [_of_outputs(name or "outputs", outputs_x, outputs_y, claim, common)]
    elif not targets:
        raise ValueError("name at least one mechanism (see `plaudit list`), or give --outputs-x and --outputs-y")
    else:
        refuse(context, "distance", "is for outputs from elsewhere: give --people")
        if one_run:
            refuse(context, OF_RUNS, "is for many runs, and --one-run is one")
            common = {"share": share, "confidence": confidence, "rng": seed}
        else:
            refuse(context, "share", "goes with --one-run")
            common |= {"n_jobs": jobs, "stop": "early" if early else "fixed", "store": store}
        made = targets_asked(context, targets)
        context.with_resource(on_backend(backend, address, jobs))  # whose processes find what was imported
        together = len(made[0].pairs)
        if together > 1:  # an equal share of the error probability for each
            common["confidence"] = alone = 1 - (1 - fraction("confidence", confidence)) / together
            notes.append(
                f"Each of the {together} pairs of databases is audited at {percent(alone)} confidence: together their "
                f"lower bounds hold at {percent(confidence)}."
            )
        questions = []
        for target in made:
            called = "-".join(filter(None, (name, target.name if len(made) > 1 else "")))
            promised = promise_of(target, claim, notes)
            if one_run:
                questions.append(_in_one_run(target, called, promised, people, common))
            else:
                runs = target.runs if size is None else size
                questions += _of_target(target, called, promised, common | {"size": runs})
    if notes and not as_json:
        print("\n".join(dict.fromkeys(notes)))
    return answer(questions, out, as_json, context)


def _of_outputs(name: str, outputs_x: Path, outputs_y: Path, claim: str, options: dict[str, Any]) -> Question:
    from audit.claims import parse_claim
    from audit.cli.inputs.tables import read_outputs
    from audit.measure.loss import measure_loss_from_outputs

    if not claim or not options["relation"]:
        raise ValueError(
            "outputs from elsewhere need --claim, such as pure:1, and --relation add_remove or replace_one"
        )
    promise = parse_claim(claim, options["relation"])
    x, y = read_outputs(outputs_x, outputs_y)
    label = f"outputs in {outputs_x.name} and {outputs_y.name}"
    return Question(name, lambda: measure_loss_from_outputs(x, y, promise, label=label, **options))


def _of_target(target: Target, called: str, promised: Claim, options: dict[str, Any]) -> Iterator[Question]:
    """Yield one audit a pair."""
    from audit.cli.inputs.mechanisms import blaming
    from audit.measure.loss import measure_loss

    def measured(pair: NeighborPair) -> AuditResult:
        with blaming(target.name):
            return measure_loss(target.mechanism, pair, promised, progress=True, **options)

    for words, pair, alone in target.pairs:
        name = " ".join(filter(None, (called or target.name, words)))
        only = alone | ({"confidence": options["confidence"]} if len(target.pairs) > 1 else {})
        yield Question(name, partial(measured, pair), target.name, only, len(target.pairs))


def _in_one_run(target: Target, called: str, promised: Claim, people: int, options: dict[str, Any]) -> Question:
    """Return the audit of one run, with people in or out of every cell of the first database."""
    from audit.cli.inputs.mechanisms import blaming
    from audit.measure.one_run import Canaries, measure_loss_one_run

    words, pair, chosen = target.pairs[0]

    def measured() -> AuditResult:
        with blaming(target.name):
            if pair.adjacency != "verified" or pair.unit != "person":  # a person more in any cell must be a neighbor
                raise ValueError(f"an audit of one run needs counts of people, and its databases are {pair.label!r}")
            canaries = Canaries(pair.x, people=people)
            return measure_loss_one_run(target.mechanism, canaries, promised, confidential=pair.confidential, **options)

    shown = " ".join(filter(None, (called or target.name, "" if chosen else words, "one run")))
    return Question(shown, measured, target.name)


def _advice(store: Path | None) -> str:
    if store is None:
        return "; with --store, finished runs would have been kept"
    return f"; finished runs are in {store}, and the same command goes on from them"
