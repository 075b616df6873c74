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
    "run_typed",
    "words_of",
]

WITHIN, VIOLATION, USAGE, NO_POWER = 0, 1, 2, 3
INTERRUPTED, UNREAD = 130, 141  # as a shell numbers them: 128 and SIGINT, 128 and SIGPIPE
LONGEST = 800  # letters of a line that complains
USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
NUMBERS = {"float": "a number, such as 0.5", "int": "a whole number, such as 3"}  # by how typer's errors begin


def exit_code(verdicts: Iterable[str]) -> int:
    """Return 1 if a claim is violated, else 3 if an audit had no power, else 0."""
    kinds = set(verdicts)
    return VIOLATION if "violated" in kinds else NO_POWER if "no power" in kinds else WITHIN


def finished(work: Callable[[], int], name: str, *, debug: bool = False) -> int:
    """Run a command and return its exit code, or say in one line what else ended it; only `work` returns 1."""
    try:
        try:
            code = work()
        finally:
            for words in pop_leftovers():
                complain(f"{name}: {words}")
        print(end="", flush=True)  # while its errors can still be shown
        return code
    except BaseException as error:  # of ours, of a library, of a mechanism: of any kind
        try:
            with suppress(ValueError):  # closed
                print(end="", flush=True)
        except OSError:  # the interpreter would try again at exit, and complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if debug:
            where = "".join(traceback.format_exception(error)).encode(errors="backslashreplace").decode()
            with suppress(OSError, ValueError):
                print(end=where, file=sys.stderr)
        return _ended(error, name)


def run_typed(command: Any, name: str, arguments: list[str], defaults: dict[str, Any] | None = None) -> int:
    """Run a command of typer with `defaults` of options by subcommand, and return its exit code."""
    # Typer itself turns some exceptions into exit codes, 1 among them, and reads an empty path as the current folder.
    for before, word in pairwise(["", *arguments]):
        if not word or (word.startswith("--") and word.endswith("=")):
            raise ValueError(f"arguments must not be empty, got {(word or repr(word))}{before and f' after {before}'}")
    try:
        with command.make_context(name, [*arguments], default_map=defaults) as context:
            return int(command.invoke(context) or WITHIN)
    except typer.Exit as left:  # after --help, say
        return left.exit_code


def _ended(error: BaseException, name: str) -> int:
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    unread = isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)  # rich leaves with 1
    if unread or isinstance(error, BrokenPipeError):
        if notes:
            complain(f"{name}: nobody reads on{notes}")
        return UNREAD
    errors = [error]
    while (context := errors[-1].__context__) is not None:  # another may have come on the way out
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
    else:  # what no check of the input foresaw
        words = f"{type(error).__name__}: {words_of(error)}"
    complain(f"{name}: error: {words}{notes}")
    return USAGE


def _words_of_usage(error: Any) -> str:
    known = {word for option in error.ctx.command.params for word in option.opts} if error.ctx else set()
    from audit.cli.inputs.options import (
        SETTINGS,
    )  # not at the top: the process that watches needs none of what it loads

    if "--set" in known and (name := getattr(error, "option_name", "").lstrip("-")) in SETTINGS:
        return f"No such option: --{name}: give --set {name}=VALUE"
    for wrong in getattr(error.__cause__, "errors", list)():
        if kind := NUMBERS.get(wrong["type"].partition("_")[0]):
            error.message = f"must be {kind}, got {wrong['input']!r}"
    return str(error.format_message())


def words_of(error: BaseException) -> str:
    """Return the message of an error, if it can be printed."""
    if isinstance(error, OSError) and error.strerror:  # without the number that the system has for it
        return f"{'' if error.filename is None else f'{error.filename}: '}{error.strerror.lower()}"
    try:
        return str(error)
    except KeyboardInterrupt:  # is no fault of the words
        raise
    except BaseException:  # of code that is not ours
        return "(its message cannot be printed)"


def complain(message: str) -> None:
    """Write one line to standard error, shortened in the middle if it is too long to read."""
    line = printable(message)
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
    with suppress(OSError, ValueError):  # closed: the exit code is left to tell
        print(line, file=sys.stderr)
