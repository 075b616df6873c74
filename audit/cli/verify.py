"""``plaudit verify``: check saved audits by their own counts, and by new runs of their commands."""

from __future__ import annotations

import io
import math
import shlex
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.exits import exit_code, run_typed
from audit.cli.inputs.options import with_options
from audit.cli.run_audits import NOT_IN_COMMAND, caption
from audit.cli.saved import Saved, audits_in
from audit.io.temporary import SPILLED, temporary_folder

if TYPE_CHECKING:
    from audit.results import AuditResult

__all__: list[str] = []

ELSEWHERE = NOT_IN_COMMAND - {"targets", "seed"}  # options that a recorded command must not have
SCOPE = (
    "This does not show that the counts are real: a writer can make up all that a file holds, and its checksum. Better "
    "evidence: --rerun, which repeats an audit by its command and seed, or the sender's signature."
)
RERUN = "A rerun shows what the code and data of this folder give: look at them, too. The commands name them."
TOLERANCE = 1e-6  # relative, for floats: versions of scipy round differently


@with_options
def verify(
    context: typer.Context,
    results: Saved,
    rerun: Annotated[bool, "Repeat the audits. This runs the commands in the files: read them first."] = False,
) -> int:
    """Recompute bounds and verdicts of saved audits. With --rerun also make them again."""
    from audit.io.terminal import console, say
    from audit.report.tables import audit_table
    from audit.report.words import bugs_found
    from audit.review.verify import verify_result

    root: Any = context.find_root().command
    verdicts, audits = [], []
    for path in results:
        saved = audits_in(path)  # also checks the checksums
        for name, result in saved.audits:
            label = f"{path}" if name == path.stem else f"{path}: {name}"
            try:
                verify_result(result)
                again = f"; made again by `{_made_again(result, root.commands['audit'])}`: the same" if rerun else ""
            except ValueError as error:
                raise ValueError(f"{label}: {error}") from None
            witness = "; the exact law gives the witness of an unbounded loss" if result.support is not None else ""
            say(f"{label}: file intact; bound and verdict recomputed{witness}{again}.")
        audits += saved.audits
        verdicts += saved.verdicts
        if words := bugs_found(saved.audits, saved.known_bugs):
            say(f"{path}: {words}")
    console().print(audit_table(audits))
    say(f"{caption([audit for _, audit in audits])} {RERUN if rerun else SCOPE}")
    return exit_code(verdicts)


def _made_again(result: AuditResult, typed: Any) -> str:
    """Repeat an audit by `plaudit audit`, raise an error if the results differ, and return its command."""
    from audit.results.files import findings
    from audit.results.folder import read_audits

    command, parameters = (result.provenance.get(key) for key in ("command", "parameters"))
    if isinstance(parameters, dict) and parameters.get("seedable") is False:
        raise ValueError("a rerun needs a mechanism whose randomness comes from the seed, and this one's does not")
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # an unclosed quote
        words = []
    if words[:2] != ["plaudit", "audit"]:
        hint = f"{command[:80]!r}" if isinstance(command, str) else "none: make it again in Python, as it was made"
        raise ValueError(f"a rerun needs a recorded command of `plaudit audit`, got {hint}")
    with temporary_folder(SPILLED) as folder, redirect_stdout(io.StringIO()):
        options = [word.partition("=")[0] for word in words[2:]]
        elsewhere = {
            "--help",
            "--help-all",
            *(opt for one in typed.params if one.name in ELSEWHERE for opt in one.opts),
        }
        if refused := [option for option in options if option in elsewhere]:
            raise ValueError(f"a recorded command must ask for an audit and nothing else, got {refused[0]}")
        if "--seed" not in options:
            raise ValueError("a rerun needs a recorded seed, got none")
        run_typed(typed, "audit", ["--out", str(folder), "--json", *words[2:]])
        audits = read_audits(folder)
    if len(audits) > 1:
        raise ValueError(f"a recorded command must ask for one audit, got {len(audits)}")
    if difference := _difference(findings(result.to_dict()), findings(audits[0][1].to_dict())):
        raise ValueError(f"an audit made again by `{command}` must be the same: {difference}")
    return str(command)


def _difference(saved: Any, again: Any, name: str = "") -> str:
    if isinstance(saved, dict) and isinstance(again, dict):
        parts = (_difference(saved.get(key), again.get(key), f"{name} {key}".strip()) for key in {**saved, **again})
        return next(filter(None, parts), "")
    if isinstance(saved, float) and isinstance(again, float) and math.isclose(saved, again, rel_tol=TOLERANCE):
        return ""
    return "" if saved == again else f"{name} was {str(saved)[:200]}, and is {str(again)[:200]}"
