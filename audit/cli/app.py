"""The command `plaudit` put together: its subcommands, its errors in one line, its exit codes."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import metadata
from typing import Annotated, Any

import typer

from audit.cli.audit import LIMITS, audit
from audit.cli.estimate import estimate
from audit.cli.exits import INTERRUPTED, UNREAD, USAGE
from audit.cli.plan import plan
from audit.cli.replay import replay
from audit.cli.saved.check import check
from audit.cli.saved.compare import compare
from audit.cli.saved.report import report
from audit.cli.saved.verify import verify
from audit.cli.search import search
from audit.cli.systems import list_systems, run_system
from audit.io.terminal import guarded
from audit.io.text import printable

__all__ = ["main"]

HELP = """Audit differentially private algorithms.

Run them on neighboring databases, prove a lower bound on the privacy loss, and compare it with the promise.
Exit codes: 0 all within their claims, 1 a violation, 2 usage or input, 3 no power.
"""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; every error a user can cause is one line and exit code 2."""
    with guarded():
        code = _answered(sys.argv[1:] if arguments is None else arguments)
    sys.exit(code)


def _answered(arguments: list[str]) -> int:
    """Run the command, and tell every error in one line."""
    usage_error: type[Exception] = typer.BadParameter.__bases__[0]
    try:
        code = _run(arguments)
    except usage_error as error:
        code = _fail(error.format_message())  # type: ignore[attr-defined]
    except (BrokenPipeError, SystemExit):  # typer and rich leave with 1 when nobody reads on, which is no violation
        code = UNREAD
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (ValueError, TypeError, OSError) as error:
        code = _fail(str(error))
    except Exception as error:  # what no check of the input foresaw: an exit code of 1 would be a violation
        code = _fail(f"{type(error).__name__}: {error}")
    return code


def _run(arguments: list[str]) -> int:
    """Run the command, and write out what it printed while an error in that can still be told."""
    try:
        code = _commands()(arguments or ["--help"], prog_name="plaudit", standalone_mode=False, obj=arguments)
        return int(code) if arguments else USAGE
    finally:
        try:
            print(end="", flush=True)
        except OSError:  # the interpreter would try again at exit, and complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise


@cache
def _commands() -> Any:
    """Return all commands with their options, put together once."""
    return typer.main.get_command(app)


def _fail(message: str) -> int:
    print("plaudit: error:", printable(message), file=sys.stderr)
    return USAGE


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"plaudit {metadata.version('plaudit')}")
        raise typer.Exit


@app.callback(help=HELP)
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
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
