"""The command `plaudit` put together: its subcommands, its errors in one line, its exit codes."""

from __future__ import annotations

import sys
from functools import cache
from importlib import metadata
from itertools import takewhile
from typing import Annotated, Any

import typer

from audit.cli.audit import LIMITS, audit
from audit.cli.estimate import estimate
from audit.cli.exits import USAGE, finished, run_typed
from audit.cli.plan import plan
from audit.cli.replay import replay
from audit.cli.saved.check import check
from audit.cli.saved.compare import compare
from audit.cli.saved.report import report
from audit.cli.saved.verify import verify
from audit.cli.search import search
from audit.cli.systems import list_systems, run_system
from audit.io.terminal import guarded

__all__ = ["main"]

HELP = """Audit differentially private algorithms.

Run them on neighboring databases, prove a lower bound on the privacy loss, and compare it with the promise.
Exit codes: 0 all within their claims, 1 a violation, 2 usage, input or whatever else went wrong, 3 no power,
130 interrupted.
"""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; every error is one line and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in takewhile(lambda word: word.startswith("-"), given)
    with guarded():
        code = finished(lambda: _run(given), "plaudit", debug=debug)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    code = run_typed(_commands(), "plaudit", arguments or ["--help"])
    return code if arguments else USAGE


@cache
def _commands() -> Any:
    """Return all commands with their options, put together once."""
    return typer.main.get_command(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"plaudit {metadata.version('plaudit')}")
        raise typer.Exit


@app.callback(help=HELP)
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Before the one line of an error, print where it is.")] = False,
) -> None:
    """Take what stands before the command."""


app.command("list")(list_systems)
app.command(epilog=LIMITS)(audit)
for command in (replay, search, estimate, plan, check, compare, verify, report):
    app.command()(command)
for name, words in (
    ("release", "Release tables of your own data by reference implementations"),
    ("explore", "Choose budgets and thresholds of reference implementations"),
):
    app.command(
        name,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
        add_help_option=False,
        help=f"{words}; `plaudit {name} --help` lists them.",
    )(run_system)
