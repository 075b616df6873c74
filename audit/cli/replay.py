"""`plaudit replay`: the deterministic check, run with the same noise on both databases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from audit.cli.answering import check_out, command_of, kept_in
from audit.cli.exits import exit_code
from audit.cli.inputs.options import (
    Areas,
    AsJson,
    Budget,
    Cell,
    ClaimText,
    Config,
    Count,
    Data,
    Derive,
    Geo,
    Name,
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

__all__: list[str] = []


def replay(
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
    size: Annotated[
        int | None,
        typer.Option(
            parser=whole_size, metavar="RUNS", help="Pairs of runs, each with other noise. Default: 1; with --time 200."
        ),
    ] = None,
    timed: Annotated[bool, typer.Option("--time", help="An observer sees how long a run takes, too.")] = False,
    released: Annotated[
        bool,
        typer.Option("--released", help="All noisy answers may be published: what they lose is held to the promise."),
    ] = False,
    seed: Seed = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the JSON results; what is there stays.")] = None,
    public_data: PublicData = False,
    as_json: AsJson = False,
) -> int:
    """Run a mechanism on both databases with the same noise, and say what that shows."""
    from audit.cli.inputs.mechanisms import blaming, source_of
    from audit.cli.inputs.targets import promise_of, targets_asked
    from audit.io.terminal import console
    from audit.io.text import printable
    from audit.replay import replay as replayed
    from audit.report.tables import replay_table
    from audit.results.folder import save_result
    from audit.results.provenance import provenance
    from audit.sampling.streams import entropy_of, seed_sequence

    check_numbers(context)
    (target,) = targets_asked(context, [name])
    promised = promise_of(target, claim, []) if claim or hasattr(target.mechanism, "claim") else None
    check_out(out)
    entropy = entropy_of(seed_sequence(seed))
    options: dict[str, Any] = {"size": size, "rng": entropy, "observe": "time" if timed else "output"}
    options["released"] = released or None
    found, saved = {}, []
    for words, databases, alone in target.pairs:
        with blaming(name):
            called = " ".join(filter(None, (name, words)))
            found[called] = one = replayed(target.mechanism, databases, promised, **options)
        if out is not None:
            command = command_of(context, ["replay", name], alone, entropy)
            saved.append(
                save_result(one.record(**provenance(), command=command, **source_of(name)), out, f"{called} replay")
            )
    if as_json:
        print(json.dumps({called: one.to_dict() for called, one in found.items()}, indent=1, allow_nan=False))
    else:
        terminal = console()
        for called, one in found.items():
            terminal.print(printable(f"{called}: {one}"), soft_wrap=True)
            terminal.print(replay_table(one))
            for words in one.told():
                terminal.print(printable(words), soft_wrap=True)
        print("\nA replay shows what databases change of the values that get noise. A pass is no proof.")
        if out is not None:
            print(kept_in(out, [f"{called} replay" for called in found], saved, "one JSON file a replay."))
    return exit_code(one.verdict for one in found.values())
