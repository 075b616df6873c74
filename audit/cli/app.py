"""Assemble the command `plaudit`: its subcommands, their help, one-line errors and exit codes."""

from __future__ import annotations

import os
import sys
from functools import cache
from itertools import takewhile
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer

from audit.cli.audit import audit
from audit.cli.doctor import doctor
from audit.cli.estimate import estimate
from audit.cli.exits import USAGE, WITHIN, finished, print_version, run_typed
from audit.cli.helps import Sectioned
from audit.cli.inputs.options import with_options
from audit.cli.plan import plan
from audit.cli.replay import replay
from audit.cli.saved import check, compare, report
from audit.cli.search import search
from audit.cli.systems import list_systems, run_system
from audit.cli.verify import verify
from audit.io.terminal import guarded

__all__ = ["main"]

HELP = """Audit differentially private algorithms.

Run them on neighboring databases, prove a lower bound on the privacy loss, and compare it with the promise.
Exit codes: 0 all within their promises, 1 a violation, 2 usage, input or whatever else went wrong, 3 no power,
130 interrupted.
"""

LIMITS = """
No audit sees events that few of the runs meet, a pattern across three or more entries except their sum, extremes and
repeats, differences beyond the ninth decimal except the last bits of floats, types, warnings or the order of keys
(return these as words), how long a run takes (`plaudit replay`), or other databases than these (--cells, `plaudit
search`). LIMITATIONS.md says more.
"""
COMPLETE = "_PLAUDIT_COMPLETE"  # environment variable by which a shell requests completions
SHELLS = ("bash", "zsh", "fish")
COMMANDS = (audit, replay, search, estimate, plan, check, compare, verify, report, doctor)
FUNCTIONS = {"list": list_systems} | {function.__name__: function for function in COMMANDS}
EXAMPLES = """
plaudit list --json
plaudit audit gdpc rdpc --out results
plaudit audit ons --stage measurements --size 1e5 --seed 1
plaudit audit mymodule:noisy_counts --data counts.csv --claim pure:0.5
plaudit audit --outputs-x a.csv --outputs-y b.csv --claim approx:1,1e-6 --relation add_remove
plaudit replay phsafe --out results
plaudit search gdpc --pairs 20 --out results
plaudit estimate rdpc-all
plaudit estimate --residuals errors.csv
plaudit plan pure:1 --violation 1.2
plaudit plan zcdp:0.5 --runs 20000
plaudit check results
plaudit compare accepted results
plaudit verify results
plaudit verify --rerun results/gdpc.json
plaudit doctor --clean results
plaudit report results
plaudit report results audits.json --public --out public.html
""".strip().splitlines()
SET = {  # by subcommand: options that a project may set
    "audit": ("size", "confidence", "seed"),
    "search": ("size", "confidence", "seed"),
    "replay": ("seed",),
    "estimate": ("seed",),
    "plan": ("confidence",),
}

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; every error is one line and exit code 2."""
    words = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in takewhile(lambda word: word.startswith("-"), words)
    if not words and COMPLETE in os.environ:  # a shell parses the output, so tabs must stay
        sys.exit(finished(lambda: _completed(os.environ[COMPLETE]), "plaudit"))
    with guarded():
        code = finished(lambda: _run(words), "plaudit", debug=debug)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    code = run_typed(_commands(), "plaudit", arguments or ["--help"], _defaults(arguments))
    return code if arguments else USAGE


def _defaults(arguments: list[str]) -> dict[str, Any]:
    name = next((word for word in arguments if not word.startswith("-")), "")
    if name not in SET:
        return {}
    from audit.io.settings import project_settings

    settings, _ = project_settings(Path())
    return {name: {option: settings[option] for option in SET[name] if option in settings}}


def _completed(instruction: str) -> int:
    from typer._completion_classes import completion_init
    from typer.completion import shell_complete

    completion_init()
    return USAGE if shell_complete(_commands(), {}, "plaudit", COMPLETE, instruction) else WITHIN


def _print_completion(shell: str) -> None:
    if not shell:
        return
    if shell not in SHELLS:
        raise ValueError(f"completion is for {', '.join(SHELLS)}, got {shell!r}")
    from typer._completion_shared import get_completion_script

    print(get_completion_script(prog_name="plaudit", complete_var=COMPLETE, shell=shell))
    raise typer.Exit


@cache
def _commands() -> Any:
    return typer.main.get_command(app)


def _print_version(requested: bool) -> None:
    if requested:
        raise typer.Exit(print_version())


@app.callback(help=HELP)
@with_options
def _options(
    version: Annotated[bool, {"callback": _print_version, "is_eager": True}, "Print the version and exit."] = False,
    completion: Annotated[
        str,
        {"callback": _print_completion, "is_eager": True, "metavar": "SHELL"},
        'Print the completion script of bash, zsh or fish: eval "$(plaudit --completion bash)".',
    ] = "",
    debug: Annotated[bool, "Print a traceback before the error message."] = False,
) -> None:
    """Read the options before the command."""


for name, function in FUNCTIONS.items():
    examples = (" \\\n      ".join(wrap(line, 72)) for line in EXAMPLES if line.split()[1] == name)
    epilog = "\n  ".join(["\b\nExamples:", *examples])
    app.command(name, cls=Sectioned, epilog=f"{epilog}\n\n{LIMITS}" if name == "audit" else epilog)(function)
for name, about in (("release", "Release tables of your own data by"), ("explore", "Choose budgets and thresholds of")):
    of_systems: dict[str, Any] = {"context_settings": {"allow_extra_args": True, "ignore_unknown_options": True}}
    app.command(name, cls=Sectioned, add_help_option=False, help=f"{about} reference implementations.", **of_systems)(
        run_system
    )
