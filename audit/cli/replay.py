"""`plaudit replay`: a deterministic check that runs a mechanism with the same noise on both databases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from audit.cli.exits import exit_code
from audit.cli.inputs.groups import AsJson, DatabaseOptions, Name, Seed, TargetOptions
from audit.cli.inputs.options import WHOLE, with_options
from audit.cli.run_audits import check_out, command_of, saved_message

__all__: list[str] = []


@with_options
def replay(
    context: typer.Context,
    *,
    name: Name,
    options: TargetOptions,
    databases: DatabaseOptions,
    size: Annotated[int | None, WHOLE, "Pairs of runs; each pair has new noise. Default: 1 (--time: 200)."] = None,
    timed: Annotated[bool, "--time", "Also compare how long the runs take."] = False,
    released: Annotated[bool, "Treat all noisy answers as released: the promise must cover their loss."] = False,
    seed: Seed = None,
    out: Annotated[Path | None, "Folder for JSON results. Existing results stay."] = None,
    as_json: AsJson = False,
) -> int:
    """Compare one run on both databases, given the same noisy answers."""
    from audit.cli.inputs.targets import blaming, promise_of, select_targets, source_of
    from audit.io.terminal import console, say
    from audit.replay import replay as replayed
    from audit.report.tables import replay_table
    from audit.results.folder import save_result
    from audit.results.provenance import provenance
    from audit.sampling.streams import entropy_of, seed_sequence

    (target,) = select_targets(context, [name], options, databases)
    promised = promise_of(target, options.claim) if options.claim or hasattr(target.mechanism, "claim") else None
    check_out(out)
    entropy = entropy_of(seed_sequence(seed))
    settings: dict[str, Any] = {"size": size, "rng": entropy, "observe": "time" if timed else "output"}
    replays, saved = {}, []
    for words, pair, own_options, _ in target.pairs:
        label = target.named(words)
        with blaming(name):
            result = replayed(target.mechanism, pair, promised, released=released or None, **settings)
        replays[label] = result
        if out is not None:
            about = {**provenance(), "command": command_of(context, ["replay", name], own_options, entropy)}
            saved.append(save_result(result.record(**about, **source_of(name)), out, f"{label} replay"))
    if as_json:
        print(json.dumps({label: result.to_dict() for label, result in replays.items()}, indent=1, allow_nan=False))
    else:
        for label, result in replays.items():
            say(f"{label}: {result}")
            console().print(replay_table(result))
            say(*(f"violation: {one}" for one in result.violations), *(f"note: {note}" for note in result.notes))
        say("A replay compares the values that get noise on the two databases. A pass is no proof.")
        if out is not None:
            print(saved_message(out, [f"{label} replay" for label in replays], saved, "one JSON file a replay."))
    return exit_code(result.verdict for result in replays.values())
