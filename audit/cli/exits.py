"""Exit codes, and the error line for each kind of exception."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import typer

from audit.io.temporary import pop_leftovers
from audit.io.text import printable

__all__ = [
    "INTERRUPTED",
    "NO_POWER",
    "UNREAD",
    "USAGE",
    "VIOLATION",
    "WITHIN",
    "complain",
    "exit_code",
    "finished",
    "print_version",
    "run_typed",
    "words_of",
]

WITHIN, VIOLATION, USAGE, NO_POWER = 0, 1, 2, 3
INTERRUPTED, UNREAD = 130, 141  # as in a shell: 128 + SIGINT, 128 + SIGPIPE
LONGEST = 800  # characters of an error line
USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
NUMBERS = {"float": "a number, such as 0.5", "int": "a whole number, such as 3"}  # by type of pydantic's error


def exit_code(verdicts: Iterable[str]) -> int:
    """Return 1 if a claim is violated, else 3 if an audit had no power, else 0."""
    kinds = set(verdicts)
    return VIOLATION if "violated" in kinds else NO_POWER if "no power" in kinds else WITHIN


def finished(work: Callable[[], int], name: str, *, debug: bool = False) -> int:
    """Run a command and return its exit code. Any exception becomes one line and a code other than 1."""
    try:
        try:
            code = work()
        finally:
            for words in pop_leftovers():
                complain(f"{name}: {words}")
        print(end="", flush=True)  # here, where a failed write can still be reported
        return code
    except BaseException as error:  # libraries and mechanisms may raise any type
        try:
            with suppress(ValueError):  # closed
                print(end="", flush=True)
        except OSError:  # without this the interpreter flushes again at exit and prints an error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if debug:
            where = "".join(traceback.format_exception(error)).encode(errors="backslashreplace").decode()
            with suppress(OSError, ValueError):
                print(end=where, file=sys.stderr)
        return _ended(error, name)


def print_version() -> int:
    """Print the version of the installed package."""
    from importlib import metadata

    print(f"plaudit {metadata.version('plaudit')}")
    return WITHIN


def run_typed(command: Any, name: str, arguments: list[str], defaults: dict[str, Any] | None = None) -> int:
    """Run a command of typer with `defaults` of options by subcommand, and return its exit code."""
    # Not typer's own runner: it exits with 1 for some exceptions. It also reads an empty path as the current folder.
    for before, word in pairwise(["", *arguments]):
        if not word or (word.startswith("--") and word.endswith("=")):
            raise ValueError(f"arguments must not be empty, got {(word or repr(word))}{before and f' after {before}'}")
    try:
        with command.make_context(name, [*arguments], default_map=defaults) as context:
            return int(command.invoke(context) or WITHIN)
    except typer.Exit as left:  # for example after --help
        return left.exit_code


def _ended(error: BaseException, name: str) -> int:
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    unread = isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)  # rich exits with 1
    if unread or isinstance(error, BrokenPipeError):
        if notes:
            complain(f"{name}: nobody reads on{notes}")
        return UNREAD
    errors = [error]
    while (context := errors[-1].__context__) is not None:  # cleaning up may have raised another exception
        errors.append(context)
    if any(isinstance(one, KeyboardInterrupt) for one in errors):
        complain(f"{name}: interrupted{notes}")
        return INTERRUPTED
    if isinstance(error, USAGE_ERROR):
        words = _words_of_usage(error)
    elif isinstance(error, SystemError):
        words = f"compiled code failed and does not say why, as it does where memory runs out: {words_of(error)}"
    elif isinstance(error, MemoryError):
        words = f"memory ran out, and fewer jobs or runs need less: {words_of(error) or 'no size is known'}"
    elif isinstance(error, ValueError | TypeError | OSError | ImportError):
        words = words_of(error)
    else:  # an error that no check of the input foresaw
        words = f"{type(error).__name__}: {words_of(error)}"
    complain(f"{name}: error: {words}{notes}")
    return USAGE


def _words_of_usage(error: Any) -> str:
    known = {word for option in error.ctx.command.params for word in option.opts} if error.ctx else set()
    # Imported late: the supervising process should load little.
    from audit.cli.inputs.options import SETTINGS

    if "--set" in known and (name := getattr(error, "option_name", "").lstrip("-")) in SETTINGS:
        return f"No such option: --{name}: give --set {name}=VALUE"
    for wrong in getattr(error.__cause__, "errors", list)():
        if kind := NUMBERS.get(wrong["type"].partition("_")[0]):
            error.message = f"must be {kind}, got {wrong['input']!r}"
    return str(error.format_message())


def words_of(error: BaseException) -> str:
    """Return the message of an error, or a substitute if it cannot be printed."""
    if isinstance(error, OSError) and error.strerror:  # without the errno
        return f"{'' if error.filename is None else f'{error.filename}: '}{error.strerror.lower()}"
    try:
        return str(error)
    except KeyboardInterrupt:  # Ctrl-C is not an error of `__str__`
        raise
    except BaseException:  # a foreign `__str__` may raise any type
        return "(its message cannot be printed)"


def complain(message: str) -> None:
    """Write one line to standard error, shortened in the middle if it is too long to read."""
    line = printable(message)
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
    with suppress(OSError, ValueError):  # stderr is closed: the exit code still reports the error
        print(line, file=sys.stderr)
