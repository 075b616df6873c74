"""`plaudit audit`: measure mechanisms, or outputs from elsewhere, against their promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.answering import Question, answer
from audit.cli.inputs import HEADER

if TYPE_CHECKING:
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

DEFAULT = "morocco"  # of the bundled data
OF_DATABASES = "data cell cells people move_to add_row replace_row"  # options
OF_SYSTEMS = "epsilon rho stage pair"


def audit(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names from `plaudit list` (rdpc needs bundled data), or module:object for a mechanism of your own, "
            "callable as (data, size, rng)."
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="morocco, midwest or brazil (bundled), or a file of counts: .npy, or .csv with one count a line; "
            f"{HEADER}. With --add-row or --replace-row: a .csv or .parquet file of records. Default: morocco; a "
            "mechanism of your own needs data."
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Budget that a system of `plaudit list` promises, in nats. Default: its own.")
    ] = None,
    rho: Annotated[
        float | None, typer.Option(help="Budget of a system that promises zero-concentrated privacy.")
    ] = None,
    stage: Annotated[
        str,
        typer.Option(
            help="Audit a stage of a system instead of its release, such as measurements; `plaudit list` names stages."
        ),
    ] = "",
    pair: Annotated[
        str, typer.Option(help="Which of its bundled pairs of databases a system runs on; `plaudit list` names them.")
    ] = "",
    claim: Annotated[
        str,
        typer.Option(
            help="The promise, pure:EPSILON, approx:EPSILON,DELTA, zcdp:RHO or gaussian:MU. Default: its own."
        ),
    ] = "",
    relation: Annotated[
        str, typer.Option(help="Neighbor relation of --claim, or of a bundled pair: add_remove or replace_one.")
    ] = "",
    cell: Annotated[
        list[int] | None,
        typer.Option(
            help="Area whose count differs between the two databases; default: 0. Given several times, each is "
            "audited, and the confidence is that of all of them together."
        ),
    ] = None,
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
    size: Annotated[int, typer.Option(help="Runs in all, over both databases.")] = 200_000,
    selection: Annotated[float, typer.Option(help="Share of them that chooses the event.")] = 0.3,
    confidence: Annotated[
        float, typer.Option(help="One-sided confidence of each audit, or of all pairs of a mechanism together.")
    ] = 0.95,
    attack: Annotated[str, typer.Option(help="Where to look: auto, or an attack; a wrong name lists all.")] = "auto",
    early: Annotated[
        bool, typer.Option("--early", help="Stop as soon as the answer is clear; --size is then the most runs.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Seed; default: fresh entropy, recorded in the result.")] = None,
    jobs: Annotated[int, typer.Option(help="Blocks of runs at work at the same time; -1 for all cores.")] = -1,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the JSON results and a figure; what is there stays.")
    ] = None,
    name: Annotated[
        str, typer.Option(help="What to call the result; of several mechanisms, how their names begin.")
    ] = "",
    store: Annotated[
        Path | None, typer.Option(help="Folder for finished runs: an audit that was stopped goes on from them.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which everything is stopped.")] = None,
    public_data: Annotated[
        bool, typer.Option("--public-data", help="The data are no secret: results of files are else confidential.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> int:
    """Audit mechanisms against their promises."""
    from audit.arguments import fraction
    from audit.claims import check_relation
    from audit.cli.inputs.databases import Asked
    from audit.cli.inputs.targets import Wanted, of_no_counts, targets_of

    if timeout is not None:
        from audit.cli.supervision import run_within

        return run_within(_without_timeout(context.obj), timeout, _advice(store))
    if relation:
        check_relation(relation)
    if seed is not None and seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    if jobs < 1 and jobs != -1:
        raise ValueError(f"jobs must be a positive number, or -1 for all cores, got {jobs}")
    common: dict[str, Any] = {"attack": attack, "selection": selection, "confidence": confidence, "rng": seed}
    notes: list[str] = []
    if outputs_x is not None or outputs_y is not None:
        if outputs_x is None or outputs_y is None or targets:
            raise ValueError("--outputs-x and --outputs-y go together, and without the name of a mechanism")
        _refuse(
            context, f"{OF_DATABASES} {OF_SYSTEMS} size jobs early store", "has no effect on outputs from elsewhere"
        )
        common |= {"relation": relation, "distance": distance, "confidential": not public_data}
        questions = [_of_outputs(name or "outputs", outputs_x, outputs_y, claim, common)]
    elif not targets:
        raise ValueError("name at least one mechanism (see `plaudit list`), or give --outputs-x and --outputs-y")
    else:
        _refuse(context, "distance", "is for outputs from elsewhere: give --people")
        if add_row is not None or replace_row is not None:
            _refuse(context, "cell cells people move_to", "is for counts, and --add-row and --replace-row for records")
        _check_targets(context, targets, data)
        asked = (cell or [], cells, people, move_to, add_row, replace_row, relation, public_data)
        budgets = {"epsilon": epsilon, "rho": rho}
        wanted = Wanted(stage, pair, {key: value for key, value in budgets.items() if value is not None})
        if of_no_counts(targets):
            _refuse(context, f"{OF_DATABASES} public_data", "is for counts: give --pair, as `plaudit list` names them")
        else:
            _refuse(context, "pair", "is for systems that are not for counts: give --data and --cell")
        made = targets_of(targets, Asked(DEFAULT if data is None else data, *asked), wanted)
        common |= {"size": size, "n_jobs": jobs, "stop": "early" if early else "fixed", "store": store}
        together = len(made[0].pairs)
        if together > 1:  # an equal share of the error probability for each
            common["confidence"] = 1 - (1 - fraction("confidence", confidence)) / together
        questions = [
            question
            for target in made
            for question in _of_target(
                target, "-".join(filter(None, (name, target.name if len(made) > 1 else ""))), claim, common, notes
            )
        ]
    if notes and not as_json:
        print("\n".join(dict.fromkeys(notes)))
    return answer(questions, out, as_json, context)


def _check_targets(context: typer.Context, targets: list[str], data: str | None) -> None:
    """Refuse names that do not go together, with each other or with options."""
    if twice := sorted(name for name, times in Counter(targets).items() if times > 1):
        raise ValueError(f"every mechanism must be named once, got {', '.join(twice)} twice")
    if own := [name for name in targets if ":" in name]:
        if data is None:
            raise ValueError(f"{own[0]} needs --data: a file of counts or records, or the name of bundled counts")
        if len(own) == len(targets):
            _refuse(context, OF_SYSTEMS, "is for the systems of `plaudit list`: give --claim")
    if len(own) < len(targets):
        _refuse(context, "add_row replace_row", "is for mechanisms of your own, module:object")


def _of_outputs(name: str, outputs_x: Path, outputs_y: Path, claim: str, options: dict[str, Any]) -> Question:
    from audit.claims import parse_claim
    from audit.cli.inputs.tables import read_outputs
    from audit.loss import measure_loss_from_outputs

    if not claim or not options["relation"]:
        raise ValueError(
            "outputs from elsewhere need --claim, such as pure:1, and --relation add_remove or replace_one"
        )
    promise = parse_claim(claim, options["relation"])
    x, y = read_outputs(outputs_x, outputs_y)
    label = f"outputs in {outputs_x.name} and {outputs_y.name}"
    return Question(name, lambda: measure_loss_from_outputs(x, y, promise, label=label, **options))


def _of_target(
    target: Target, called: str, claim: str, options: dict[str, Any], notes: list[str]
) -> Iterator[Question]:
    """Yield one audit a pair."""
    from audit.claims import Claim, parse_claim
    from audit.loss import measure_loss

    relation = target.pairs[0].pair.relation
    with _blaming(target.name):
        promised = parse_claim(claim, relation) if claim else getattr(target.mechanism, "claim", None)
    if not isinstance(promised, Claim):
        raise ValueError(f"{target.name} has no claim of its own: give --claim, such as pure:1 or zcdp:0.5")
    if promised.relation != relation:
        notes.append(f"{target.name} promises {promised}, which is {promised.under(relation)}.")
        promised = promised.under(relation)

    def measured(pair: NeighborPair) -> AuditResult:
        with _blaming(target.name):
            return measure_loss(target.mechanism, pair, promised, progress=True, **options)

    for words, pair, alone in target.pairs:
        name = " ".join(filter(None, (called or target.name, words)))
        only = alone | ({"confidence": options["confidence"]} if len(target.pairs) > 1 else {})
        yield Question(name, partial(measured, pair), target.name, only, len(target.pairs))


def _without_timeout(arguments: list[str]) -> list[str]:
    kept, rest = [], iter(arguments)
    for word in rest:
        if word == "--timeout":
            next(rest, None)
        elif not word.startswith("--timeout="):
            kept.append(word)
    return kept


def _advice(store: Path | None) -> str:
    if store is None:
        return "; with --store, finished runs would have been kept"
    return f"; finished runs are in {store}, and the same command goes on from them"


@contextmanager
def _blaming(name: str) -> Iterator[None]:
    """Turn whatever a mechanism raises into one line with its name."""
    from audit.cli.inputs.mechanisms import described

    try:
        yield
    except (ValueError, TypeError) as error:  # bad input, the user's or the mechanism's
        raise ValueError(f"{name}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # theirs may be of any kind
        raise ValueError(f"{name} failed: {described(error)}") from error


def _refuse(context: typer.Context, options: str, why: str) -> None:
    """Refuse options that would silently do nothing."""
    for option in options.split():
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{option.replace('_', '-')} {why}")
