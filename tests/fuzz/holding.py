"""What every run of the command is held against, whatever it was asked and whatever it found."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.answers import IDLE, command_of, expected, wrong_with_release
from tests.fuzz.cases import Case
from tests.fuzz.oracle import NO_POWER, VIOLATION, WITHIN

USAGE, KILLED = 2, -9
ANSWERS = (WITHIN, VIOLATION, NO_POWER)
WRITTEN = ("--out", "--save", "--store")  # options that name what a command may write
REFUSAL = "plaudit: error: "
TOLD = re.compile(
    r"plaudit: |not released: |warning: |.* read (?:as|from) |(?:persons|units|geo): |\S+: \w+, .*promised"
)  # a line of ours: a note, a finding, a record beside a table
RAN, CODES, CONFIRMED = (
    "commands that ran",
    "exit codes (2 is a refusal)",
    "of those that ran, exit codes compared with an oracle",
)
LIMIT = 300.0  # seconds that a command has: many times what the slowest takes
LONGEST = 1000  # letters of a refusal: more is no answer to anybody
# What Python, and the libraries below, say of mistakes in a program: no rule that a user could have broken.
FOREIGN = re.compile(
    r"^\w*(?:Error|Exception|Warning|Interrupt)\b:? |unsupported operand|object (?:has no|is not|of type|cannot)|"
    r"NoneType|could not convert|(?:list|tuple|string) ind(?:ex|ices)|index \S+ is out of bounds|not enough values|"
    r"too many values|must be real number|cannot convert float|maximum recursion|invalid literal|ufunc|"
    r"unexpected keyword|positional argument|embedded null|integer string conversion|"
    r"could not be broadcast|truth value of an|Out of bounds|zero-size array|math domain|too large to convert|"
    r"INTERNAL|std::|0x[0-9a-f]{6}|<class|<lambda|not JSON serializable|Traceback"
)


@dataclass(frozen=True)
class Outcome:
    """What a run left behind."""

    code: int
    out: str
    err: str
    before: dict[str, bytes | None]
    after: dict[str, bytes | None]
    spilled: list[str]  # left in the folder of temporary files
    written: dict[str, list[str]]  # what was asked for, by option, in the folder where it ran
    read: list[tuple[bool, dict[str, Any]]]  # the saved results that were named, and whether nobody changed their file


def tree(folder: Path) -> dict[str, bytes | None]:
    """What is in a folder: files with what they hold, links with where they lead, other things without."""
    found = (Path(above, name) for above, *inner in os.walk(folder) for name in (*inner[0], *inner[1]))

    def held(path: Path) -> bytes | None:
        if path.is_symlink():
            return os.readlink(path).encode()
        return path.read_bytes() if path.is_file() else None

    return {str(path.relative_to(folder)): held(path) for path in found}


def faults(case: Case, outcome: Outcome) -> list[str]:
    """Return what is wrong, each with its kind before the colon."""
    return [*_of_words(outcome), *_of_code(case, outcome), *_of_files(case, outcome)]


def _of_words(outcome: Outcome):
    if "Traceback (most recent call last)" in outcome.out + outcome.err:
        yield "traceback: " + outcome.err.strip().rpartition("\n")[2][:200]
    for name, text in (("output", outcome.out), ("errors", outcome.err)):
        wrong = sorted({letter for letter in text.replace("\r\n", "\n") if letter != "\n" and not letter.isprintable()})
        if wrong:
            yield f"control characters: {wrong} in {name}"
    lines = outcome.err.splitlines()
    if stray := next((line for line in lines[: -1 if outcome.code == USAGE else None] if not TOLD.match(line)), None):
        yield f"stray line: {stray[:200]!r}"
    if outcome.code == USAGE and lines and not lines[-1].startswith(REFUSAL):
        yield f"no refusal: {lines[-1][:200]!r}"
    if outcome.code == USAGE and lines:
        message = lines[-1].removeprefix(REFUSAL)
        if len(message) > LONGEST or FOREIGN.search(message):
            yield f"no rule named: {message[:300]!r}"


def _of_code(case: Case, outcome: Outcome):
    if outcome.code == KILLED:
        yield f"no end: killed, after {LIMIT:.0f} s at most"
    elif outcome.code not in (*ANSWERS, USAGE):
        yield f"wrong code: {outcome.code}, {outcome.err[-200:]!r}"
    elif outcome.code == USAGE and not outcome.err and not outcome.out:
        yield "no refusal: exit code 2 without a word"
    elif outcome.code in ANSWERS:
        codes, why = expected(case.arguments, outcome)
        if outcome.code not in codes:
            yield f"wrong code: {outcome.code}, and by {why} it is {sorted(codes)}: {outcome.out[-200:]!r}"
        if command_of(case.arguments) == "release" and outcome.code == WITHIN:
            yield from wrong_with_release(case.arguments, outcome)


def _of_files(case: Case, outcome: Outcome):
    allowed = [path for option in WRITTEN for path in outcome.written[option]]

    def asked(path: str) -> bool:
        return any(_below(path, other) for other in allowed)

    for path, content in outcome.before.items():
        if path not in outcome.after:
            yield f"changed input: {path} is gone"
        elif outcome.after[path] != content and not asked(path):
            yield f"changed input: {path}"
    new = [path for path in outcome.after if path not in outcome.before and "__pycache__" not in Path(path).parts]
    for path in new:
        name = Path(path).name
        if name.startswith(".") or name.endswith(".part"):
            yield f"partial output: {path}"
        elif outcome.code == USAGE and not any(_below(path, store) for store in outcome.written["--store"]):
            yield f"partial output: {path} after a refusal"
        elif not asked(path) and name != "report.html" and not any(_below(other, path) for other in allowed):
            yield f"partial output: {path}, which nobody asked for"
        elif name.endswith(".json") and outcome.after[path] is not None:
            try:
                json.loads(outcome.after[path])
            except ValueError as error:
                yield f"partial output: {path}: {error}"
    if outcome.spilled:
        yield f"partial output: temporary files {outcome.spilled[:3]}"


def _below(path: str, folder: str) -> bool:
    return folder == "." or f"{path}/".startswith(f"{folder}/")


def asked_for(arguments: tuple[str, ...], folder: Path) -> dict[str, list[str]]:
    """Return what a command may write, by option: where links lead, and the last link itself, which a file replaces."""
    pairs = list(itertools.pairwise((*arguments, "")))
    values = {option: [value for word, value in pairs if word == option] for option in WRITTEN}
    for option, found in values.items():
        found += [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]
    here = os.path.realpath(folder)

    def places(path: str) -> Iterator[str]:
        yield os.path.relpath(os.path.realpath(folder / path), here)
        above, name = os.path.split(path)
        yield os.path.relpath(os.path.join(os.path.realpath(folder / above), name), here)

    return {option: [place for path in found for place in places(path)] for option, found in values.items()}


class Counted:
    """What commands did, by kind: which ran, how they ended, and what confirms the exit code of those that ran."""

    def __init__(self) -> None:
        self.kinds: dict[str, Counter[str]] = {RAN: Counter(), CODES: Counter(), CONFIRMED: Counter()}

    def add(self, case: Case, outcome: Outcome) -> None:
        """Count one command."""
        command = command_of(case.arguments)
        self.kinds[CODES][f"with {outcome.code}"] += 1
        if outcome.code in ANSWERS and command not in IDLE:
            self.kinds[RAN][command] += 1
            self.kinds[CONFIRMED][f"by {expected(case.arguments, outcome)[1]}"] += 1
