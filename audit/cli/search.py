"""`plaudit search`: find the pair of databases with the largest loss among many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.inputs.groups import Confidence, DatabaseOptions, Name, ResultOptions, Seed, TargetOptions, WorkerOptions
from audit.cli.inputs.options import WHOLE, refuse, with_options
from audit.cli.run_audits import AuditTask, check_out, run_audits

if TYPE_CHECKING:
    from audit.cli.inputs.targets import Target
    from audit.neighbors import NeighborPair

__all__: list[str] = []

TOTAL = "Total runs: 30% try the pairs, the others measure; by default as for `plaudit audit`."
PAIRS = 60  # to try by default, if there are enough runs


@dataclass(frozen=True)
class LookOptions:
    """Pairs of databases."""

    pairs: Annotated[
        int | None,
        "Pairs to try: a person in cells from the emptiest to the fullest; or the given rows, and the same elsewhere, "
        "with larger, missing and unknown values, and beside one row fewer. Default: 60, fewer if runs are few.",
    ] = None
    keep: Annotated[int, "Pairs to measure at a joint confidence."] = 3


@with_options
def search(
    context: typer.Context,
    *,
    name: Name,
    options: TargetOptions,
    databases: DatabaseOptions,
    looks: LookOptions,
    size: Annotated[int | None, "--size", "--runs", WHOLE, TOTAL] = None,
    confidence: Confidence = 0.95,
    attack: Annotated[str, "Attack to use, as in `plaudit audit`."] = "auto",
    seed: Seed = None,
    workers: WorkerOptions,
    result_options: ResultOptions,
) -> int:
    """Try many pairs of databases; measure those that seem to lose most."""
    from audit.cli.inputs.targets import blaming, promise_of, select_targets
    from audit.io.terminal import say
    from audit.measure.search import FEWEST, SCREENED, search_loss
    from audit.results.formatting import percent
    from audit.sampling.streams import entropy_of, seed_sequence

    (target,) = select_targets(context, [name], options, databases, workers)
    promised = promise_of(target, options.claim)
    check_out(result_options.out)
    entropy = entropy_of(seed_sequence(seed))
    runs = target.runs if size is None else size
    most = min(PAIRS, max(looks.keep, int(SCREENED * runs) // FEWEST)) if looks.pairs is None else looks.pairs
    settings: dict[str, Any] = {"size": runs, "confidence": confidence, "attack": attack, "n_jobs": workers.jobs}
    named = bool(options.cell or databases.cells)
    if not named:
        refuse(context, "people move_to", "goes with --cell or --cells")
    with blaming(name):
        family = [one.pair for one in target.pairs] if named else _family(target, options, databases, most)
        outcome = search_loss(
            target.mechanism, family, promised, keep=looks.keep, rng=entropy, progress=True, **settings
        )
    measured = len(outcome.results)
    if not result_options.as_json:
        looked = f"looked at in {outcome.screening:,} runs, {measured}" if outcome.screening else "all"
        each, together = percent(outcome.results[0].confidence), percent(outcome.confidence)
        tried = f"{outcome.screened:,} pairs of databases, {looked} measured"
        say(f"{tried}, each at {each} confidence: {together} together.")
    shared: dict[str, Any] = {"pairs": measured, "command": "search", "seed": entropy}
    tasks = []
    for number, result in enumerate(outcome.results, 1):
        tasks.append(AuditTask(target.named(f"pair {number}"), partial(lambda result: result, result), name, **shared))
    return run_audits(tasks, result_options, context)


def _family(target: Target, options: TargetOptions, databases: DatabaseOptions, most: int) -> list[NeighborPair]:
    from audit.cli.inputs.databases import varied
    from audit.measure.search import neighbors_of_counts

    first = target.pairs[0].pair
    system = target.system
    if databases.add_row or databases.replace_row:
        return varied(options, databases, most)
    if first.adjacency == "verified" and first.unit == "person":
        family = neighbors_of_counts(first, most)
        return [system.described(pair) for pair in family] if system else family
    pairs: list[NeighborPair] = [system.pair(name) for name in system.pairs] if system else []
    family = [pair.as_confidential() if first.confidential else pair for pair in pairs]
    family = [pair for pair in family if pair.relation == first.relation]
    if len(family) < 2:
        raise ValueError(f"a search needs counts of people or several pairs of databases, got {first.label!r} alone")
    return family
