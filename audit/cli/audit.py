"""`plaudit audit`: measure mechanisms, or outputs from elsewhere, against their promises."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.exits import INTERRUPTED, exit_code

if TYPE_CHECKING:
    from audit.neighbors import NeighborPair
    from audit.results import AuditResult

__all__ = ["audit"]

Question = tuple[str, Callable[[], "AuditResult"]]  # what an audit is called, and how to make it

ELSEWHERE = {"targets", "seed", "jobs", "out", "store", "timeout", "as_json"}  # options that decide no count


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
        str,
        typer.Option(help="morocco or midwest (bundled), or a file of counts: .npy, or .csv with one count a line."),
    ] = "morocco",
    epsilon: Annotated[float, typer.Option(help="Budget that a named algorithm promises, in nats.")] = 1.0,
    claim: Annotated[
        str,
        typer.Option(
            help="The promise, pure:EPSILON, approx:EPSILON,DELTA, zcdp:RHO or gaussian:MU. Default: its own."
        ),
    ] = "",
    relation: Annotated[str, typer.Option(help="Neighbor relation of --claim: add_remove or replace_one.")] = "",
    cell: Annotated[int, typer.Option(help="Area whose count differs between the two databases.")] = 0,
    people: Annotated[int, typer.Option(help="People by whom they differ; the loss is divided by it.")] = 1,
    move_to: Annotated[
        int | None, typer.Option(help="Move the people to this area instead of adding them (replace_one).")
    ] = None,
    outputs_x: Annotated[
        Path | None, typer.Option(help="Outputs of a mechanism that ran elsewhere, one run a line.")
    ] = None,
    outputs_y: Annotated[Path | None, typer.Option(help="The same on the neighboring database.")] = None,
    distance: Annotated[int, typer.Option(help="With --outputs-x: steps between the two databases.")] = 1,
    size: Annotated[int, typer.Option(help="Runs in all, over both databases.")] = 200_000,
    selection: Annotated[float, typer.Option(help="Share of them that chooses the event.")] = 0.3,
    confidence: Annotated[float, typer.Option(help="One-sided confidence of each audit.")] = 0.95,
    attack: Annotated[str, typer.Option(help="Where to look: auto, or an attack; a wrong name lists all.")] = "auto",
    early: Annotated[
        bool, typer.Option("--early", help="Stop as soon as the answer is clear; --size is then the most runs.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Seed; default: fresh entropy, recorded in the result.")] = None,
    jobs: Annotated[int, typer.Option(help="Blocks of runs at work at the same time; -1 for all cores.")] = -1,
    out: Annotated[Path | None, typer.Option(help="Folder for the JSON results and a figure.")] = None,
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
    from audit.claims import check_relation
    from audit.cli.loading import bundled

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
            context, "data epsilon cell people move_to size jobs early store", "has no effect on outputs from elsewhere"
        )
        common |= {"relation": relation, "distance": distance, "confidential": not public_data}
        questions = [_of_outputs(outputs_x, outputs_y, claim, common)]
    elif not targets:
        raise ValueError("name at least one mechanism (see `plaudit list`), or give --outputs-x and --outputs-y")
    else:
        _refuse(context, "distance", "is for outputs from elsewhere: give --people")
        if twice := {name for name in targets if sum(_file_name(name) == _file_name(other) for other in targets) > 1}:
            raise ValueError(f"every mechanism must have a name of its own, got {', '.join(sorted(twice))} twice")
        if relation == "replace_one" and move_to is None:
            raise ValueError("--relation replace_one needs --move-to: people who are added are not replaced")
        if all(":" in name for name in targets):
            _refuse(context, "epsilon", "is for the algorithms of `plaudit list`: give --claim")
        pair = _pair(data, cell, people, move_to, relation, public_data)
        common |= {"size": size, "n_jobs": jobs, "stop": "early" if early else "fixed", "store": store}
        settings = {"epsilon": epsilon, "data": data if data in bundled() else "morocco"}
        questions = [_of_mechanism(name, settings, pair, claim, common, notes) for name in targets]
    if notes and not as_json:
        print("\n".join(notes))
    return _answer(questions, out, as_json, _options_given(context))


def _of_outputs(outputs_x: Path, outputs_y: Path, claim: str, options: dict[str, Any]) -> Question:
    from audit.claims import parse_claim
    from audit.cli.loading import read_numbers
    from audit.loss import measure_loss_from_outputs

    if not claim or not options["relation"]:
        raise ValueError(
            "outputs from elsewhere need --claim, such as pure:1, and --relation add_remove or replace_one"
        )
    promise = parse_claim(claim, options["relation"])
    x, y = read_numbers(outputs_x), read_numbers(outputs_y)
    label = f"outputs in {outputs_x.name} and {outputs_y.name}"
    return "outputs", lambda: measure_loss_from_outputs(x, y, promise, label=label, **options)


def _of_mechanism(
    name: str, settings: dict[str, Any], pair: NeighborPair, claim: str, options: dict[str, Any], notes: list[str]
) -> Question:
    from audit.claims import Claim, parse_claim
    from audit.cli.loading import named_mechanism, own_mechanism
    from audit.loss import measure_loss

    mechanism = own_mechanism(name) if ":" in name else named_mechanism(name, settings)
    with _blaming(name):
        promised = parse_claim(claim, pair.relation) if claim else getattr(mechanism, "claim", None)
    if not isinstance(promised, Claim):
        raise ValueError(f"{name} has no claim of its own: give --claim, such as pure:1 or zcdp:0.5")
    if promised.relation != pair.relation:
        notes.append(f"{name} promises {promised}, which is {promised.under(pair.relation)}.")
        promised = promised.under(pair.relation)

    def question() -> AuditResult:
        with _blaming(name):
            return measure_loss(mechanism, pair, promised, progress=True, **options)

    return name, question


def _pair(data: str, cell: int, people: int, move_to: int | None, relation: str, public_data: bool) -> NeighborPair:
    """Return counts and the same with some people added or moved."""
    from audit.cli.loading import bundled, read_counts
    from audit.neighbors import NeighborPair

    counts, label = read_counts(data)
    number = "1 person" if people == 1 else f"{people} people"
    if move_to is None:
        pair = NeighborPair.add_people(counts, cell, people)
        words = f"{number} added to {label(cell)}"
    else:
        pair = NeighborPair.move_people(counts, cell, move_to, people)
        words = f"{number} moved from {label(cell)} to {label(move_to)}"
    pair = replace(pair, label=words)
    if relation:
        pair = pair.under(relation)  # type: ignore[arg-type]
    return pair if data in bundled() or public_data else pair.as_confidential()


def _answer(questions: list[Question], out: Path | None, as_json: bool, options: list[str]) -> int:
    """Run the audits one by one; what is finished is on disk, whatever happens next."""
    from audit.cli.showing import show
    from audit.results.files import check_writable

    if out is not None:
        if out.exists() and not out.is_dir():
            raise ValueError(f"out must be a folder, got the file {out}")
        check_writable(out)
    results: list[tuple[str, AuditResult]] = []
    try:
        for name, question in questions:
            result = _with_command(question(), name, options)
            results.append((name, result))
            if out is not None:
                result.to_json(out / f"{_file_name(name)}.json")
    except KeyboardInterrupt:
        kept = f", saved in {out}" if out is not None and results else ""
        print(f"plaudit: interrupted: {len(results)} of {len(questions)} audits finished{kept}", file=sys.stderr)
        return INTERRUPTED
    if out is not None:
        _draw(results, out)
    show(results, as_json)
    if out is not None and not as_json:
        print(f"Saved in {out}/: one JSON file an audit, and the figure audits.png.")
    return exit_code(result.verdict for _, result in results)


def _options_given(context: typer.Context) -> list[str]:
    """Return the options of an audit that decide its counts, as they were given."""
    words: list[str] = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in ELSEWHERE or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[option.name or ""]
        words += [option.opts[0]] if value is True else [option.opts[0], str(value)]
    return words


def _with_command(result: AuditResult, name: str, options: list[str]) -> AuditResult:
    """Return a result with the command that reproduces it."""
    named = [] if "--outputs-x" in options else [name]
    command = shlex.join(["plaudit", "audit", *named, *options, "--seed", str(result.seed_entropy)])
    return replace(result, provenance={**result.provenance, "command": command})


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
    from audit.cli.loading import described

    try:
        yield
    except (ValueError, TypeError) as error:  # bad input, the user's or the mechanism's
        raise ValueError(f"{name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise ValueError(f"{name} failed: {described(error)}") from error


def _refuse(context: typer.Context, options: str, why: str) -> None:
    """Refuse options that would silently do nothing."""
    for option in options.split():
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{option.replace('_', '-')} {why}")


def _draw(results: list[tuple[str, AuditResult]], out: Path) -> None:
    from audit.results import scale_of
    from audit.results.plots import house_style, new_figure, plot_audits, save_figure

    with house_style():
        figure, (ax,) = new_figure(8.0, 1.3 + 0.45 * len(results))
        plot_audits([audit.summary(name) for name, audit in results], ax, scale=scale_of(results[0][1].claim))
    save_figure(figure, out / "audits.png")


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip(".") or "audit"
