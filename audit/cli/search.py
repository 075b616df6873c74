"""`plaudit search`: the pair of databases that loses most, among many that are looked at."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.answering import Question, answer, check_out
from audit.cli.inputs.options import (
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
    Name,
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
    whole_size,
)
from audit.io.backends import Address, Backend, on_backend

if TYPE_CHECKING:
    from audit.cli.inputs.targets import Target
    from audit.neighbors import NeighborPair

__all__: list[str] = []


def search(
    context: typer.Context,
    name: Name,
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
    pairs: Annotated[
        int, typer.Option(help="Pairs that are looked at: a person in cells from the emptiest to the fullest.")
    ] = 60,
    keep: Annotated[int, typer.Option(help="Pairs that are measured, under one confidence.")] = 3,
    size: Annotated[
        int | None,
        typer.Option(
            parser=whole_size,
            metavar="RUNS",
            help="Runs in all: three tenths look, the others measure. Default: as many as of an audit.",
        ),
    ] = None,
    confidence: Confidence = 0.95,
    attack: Annotated[str, typer.Option(help="Where to look, as in `plaudit audit`.")] = "auto",
    seed: Seed = None,
    jobs: Jobs = -1,
    backend: Backend = "",
    address: Address = "",
    out: Out = None,
    public_data: PublicData = False,
    as_json: AsJson = False,
) -> int:
    """Look for the pair of databases that loses most, and measure those that look worst."""
    from audit.cli.inputs.mechanisms import blaming
    from audit.cli.inputs.targets import promise_of, targets_asked
    from audit.measure.search import search_loss
    from audit.results.formatting import percent
    from audit.sampling.streams import entropy_of, seed_sequence

    check_numbers(context)
    (target,) = targets_asked(context, [name])
    context.with_resource(on_backend(backend, address, jobs))  # whose processes find what was imported
    promised = promise_of(target, claim, [])
    options: dict[str, Any] = {"keep": keep, "confidence": confidence, "attack": attack}
    options["size"] = target.runs if size is None else size
    check_out(out)
    entropy = entropy_of(seed_sequence(seed))
    with blaming(name):
        family = [one.pair for one in target.pairs] if cell else _family(target, pairs)
        found = search_loss(target.mechanism, family, promised, rng=entropy, n_jobs=jobs, progress=True, **options)
    measured = len(found.results)
    if not as_json:
        looked = f"looked at in {found.screening:,} runs, {measured}" if found.screening else "all"
        each, together = percent(found.results[0].confidence), percent(found.confidence)
        print(
            f"{found.screened:,} pairs of databases, {looked} measured, each at {each} confidence: {together} together."
        )
    questions = [
        Question(
            f"{name} pair {number}",
            partial(lambda made: made, one),
            name,
            pairs=measured,
            command="search",
            seed=entropy,
        )
        for number, one in enumerate(found.results, 1)
    ]
    return answer(questions, out, as_json, context)


def _family(target: Target, most: int) -> list[NeighborPair]:
    """Return pairs of the same counts; where databases are no counts, all bundled pairs of the relation."""
    from audit.measure.search import neighbors_of_counts

    first = target.pairs[0].pair
    if first.adjacency == "verified" and first.unit == "person":
        return neighbors_of_counts(first, most)
    found: list[NeighborPair] = [target.system.pair(name) for name in target.system.pairs] if target.system else []
    family = [pair.as_confidential() if first.confidential else pair for pair in found]
    family = [pair for pair in family if pair.relation == first.relation]
    if len(family) < 2:
        raise ValueError(f"a search needs counts of people or several pairs of databases, got {first.label!r} alone")
    return family
