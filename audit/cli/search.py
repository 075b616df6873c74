"""`plaudit search`: the pair of databases that loses most, among many that are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.exits import exit_code
from audit.cli.inputs.options import (
    AsJson,
    Budget,
    Cell,
    ClaimText,
    Confidence,
    Data,
    Jobs,
    Name,
    Pair,
    Preset,
    PublicData,
    RelationName,
    Rho,
    Seed,
    Stage,
    check_numbers,
)

if TYPE_CHECKING:
    from audit.neighbors import NeighborPair

__all__: list[str] = []


def search(
    context: typer.Context,
    name: Name,
    data: Data = None,
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
        typer.Option(help="Runs in all: three tenths look, the others measure. Default: as many as of an audit."),
    ] = None,
    confidence: Confidence = 0.95,
    attack: Annotated[str, typer.Option(help="Where to look, as in `plaudit audit`.")] = "auto",
    seed: Seed = None,
    jobs: Jobs = -1,
    public_data: PublicData = False,
    as_json: AsJson = False,
) -> int:
    """Look for the pair of databases that loses most, and measure those that look worst."""
    from audit.cli.inputs.mechanisms import blaming
    from audit.cli.inputs.targets import promise_of, targets_asked
    from audit.cli.showing import show
    from audit.results.formatting import percent
    from audit.search import search_loss

    check_numbers(context)
    (target,) = targets_asked(context, [name])
    promised = promise_of(target, claim, [])
    options: dict[str, Any] = {"keep": keep, "confidence": confidence, "attack": attack}
    options["size"] = target.runs if size is None else size
    with blaming(name):
        family = [one.pair for one in target.pairs] if cell else _family(name, preset, target.pairs[0].pair, pairs)
        found = search_loss(target.mechanism, family, promised, rng=seed, n_jobs=jobs, **options)
    if not as_json:
        looked = f"looked at in {found.screening:,} runs, {len(found.results)}" if found.screening else "all"
        each, together = percent(found.results[0].confidence), percent(found.confidence)
        print(
            f"{found.screened:,} pairs of databases, {looked} measured, each at {each} confidence: {together} together."
        )
    show([(f"{name} pair {number}", one) for number, one in enumerate(found.results, 1)], as_json)
    return exit_code([found.verdict])


def _family(name: str, preset: str, first: NeighborPair, most: int) -> list[NeighborPair]:
    """Return pairs of the same counts; where databases are no counts, all bundled pairs of the relation."""
    from audit.cli.inputs.targets import own_pairs
    from audit.search import neighbors_of_counts

    if first.adjacency == "verified" and first.unit == "person":
        return neighbors_of_counts(first, most)
    family = own_pairs(name, preset, first.relation)
    if len(family) < 2:
        raise ValueError(f"a search needs counts of people or several pairs of databases, got {first.label!r} alone")
    return family
