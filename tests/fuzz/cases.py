"""Cases: a command line and what is wrong with the files that it finds, made from a seed and a number alone."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import typer

from audit.cli.app import app
from tests.fuzz.desk import COMMANDS, saved_anew
from tests.fuzz.spoiling import LETTERS, NUMBERS, PLACES, listed, spoiled, word

KINDS = {"settings": 10, "arguments": 2, "files": 2, "both": 1}  # what is changed, and how often
FILES = re.compile(r"[\w/-]+\.(?:json|csv|npy|parquet)|\b(?:old|new|mixed|again)\b")
SAVED = re.compile(r"(?<= )(?:old|new)\b")  # folders of results, one of which is another audit's
SHARE = 100  # one case of so many is a process of its own
WORK = ("--size", "--runs", "--pairs", "--keep", "--rows", "--partitions", "--people")
HOURS = ("2147483648",)  # of these would be no hang, but as much work as was asked for
BUDGETS = [f"{0.02 * 1.06**step:.3g}" for step in range(106)]  # to 9
MANY = 1000  # settings, of a command that is made again with others: cases should differ
# Values that are allowed, by option: with them a command runs, and ends with every exit code.
SETTINGS: dict[str, Sequence[object]] = {
    "--claim": [f"{kind}:{budget}{more}" for kind, more in (("pure", ""), ("approx", ",1e-6"), ("approx", ",0.01"),
        ("approx", ",0.2"), ("zcdp", ""), ("gaussian", "")) for budget in BUDGETS] + ["approx:0,0.3"],
    "--confidence": listed("0.5 0.8 0.9 0.95 0.99 0.999 0.999999"),
    "--epsilon": BUDGETS,
    "--size": range(200, 701),
    "--selection": listed("0.1 0.3 0.5 0.7"),
    "--distance": ["1", "2", "3"],
    "--cell": ["0", "1", "2", "3"],
    "--share": listed("0.25 0.5 1"),
    "--seed": range(1_000_000),
    "--violation": listed("1.01 1.1 1.5 3"),
    "--power": listed("0.1 0.5 0.8 0.99"),
    "--runs": listed("40 500 2000 100000"),
    "--rows": listed("1 20 50 300"),
    "--percentile": listed("50 90 99"),
    "--tolerance": listed("0 9 1000"),
    "--format": listed("table line markdown csv json"),
    "--title": ["Counts", "<b>", "=1+1", "é", "a b"],
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One run of the command."""

    name: str
    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    kind: str = "past"
    alone: bool = False  # a process of its own


def case_of(seed: int, number: int, desk: Path) -> Case:
    """Return a case, the same for everybody who has the same files."""
    rng = Random(f"{seed}:{number}")
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    weights, commands = zip(*(VARIED if kind == "settings" else COMMANDS), strict=True)
    command = rng.choices(commands, weights)[0]
    arguments, files = shlex.split(command), {}
    if kind == "settings":
        for at in _settable(arguments):
            arguments[at] = str(rng.choice(SETTINGS[arguments[at - 1]]))
        files = {f"{name}/count.json": saved_anew(rng) for name in dict.fromkeys(SAVED.findall(command))}
    elif kind != "arguments":
        named = [path for path in FILES.findall(command) if (desk / path).exists()]
        if named:
            path = desk / rng.choice(named)
            path = rng.choice(sorted(path.glob("*.json"))) if path.is_dir() else path
            files[str(path.relative_to(desk))] = spoiled(rng, path)
        else:
            kind = "arguments"
    if kind in ("arguments", "both"):
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            arguments = _changed(rng, arguments, desk)
    for at, option in enumerate(arguments[:-1], 1):
        if option in WORK and arguments[at] in HOURS:
            arguments[at] = "2147"
    return Case(f"--seed {seed} --only {number}", tuple(arguments), files, kind, rng.randrange(SHARE) == 0)


def _settable(words: list[str]) -> list[int]:
    """Return the places of values that may be others."""
    return [at for at, option in enumerate(words[:-1], 1) if option in SETTINGS]


def _settings(words: list[str]) -> int:
    return math.prod(len(SETTINGS[words[at - 1]]) for at in _settable(words))


VARIED = [one for one in COMMANDS if SAVED.search(one[1]) or _settings(shlex.split(one[1])) >= MANY]


def _changed(rng: Random, words: list[str], desk: Path) -> list[str]:
    """One word more, less, twice, mistyped, or another; or one more option that the command has."""
    words = list(words)
    at = rng.randrange(len(words)) if words else 0
    values = [place for place, before in enumerate(words[:-1], 1) if before.startswith("--")]
    change = rng.choice(
        ["value"] * 6 + ["option"] * 3 + ["other", "gone", "twice", "typed", "joined", "swapped", "more"]
    )
    if change == "value" and values:
        at = rng.choice(values)
        words[at] = _value(rng, words[at], desk)
    elif change == "option":
        option = rng.choice(_options(*words[:2]))
        more = [_value(rng, rng.choice(words or [""]), desk) for _ in range(option.nargs)]
        words += [rng.choice(option.opts), *([] if getattr(option, "is_flag", False) else more)]
    elif change == "gone":
        del words[at : at + 1]
    elif change == "twice":
        words[at:at] = words[at : at + rng.choice([1, 2])]
    elif change == "typed" and words:
        letter = rng.randrange(len(words[at]) + 1)
        words[at] = words[at][:letter] + rng.choice(["", "x", "-", "=", "É", "\x1b"]) + words[at][letter + 1 :]
    elif change == "joined" and values:
        at = rng.choice(values)
        words[at - 1 : at + 1] = [f"{words[at - 1]}={words[at]}"]
    elif change == "swapped":
        other = rng.randrange(len(words)) if words else 0
        words[at : at + 1], words[other : other + 1] = words[other : other + 1], words[at : at + 1]
    else:
        words.insert(at, word(rng))
    return words


def _value(rng: Random, old: str, desk: Path) -> str:
    """Return another value: one near the old one, of its kind, or of any."""
    way = rng.random()
    if way < 0.2:
        return rng.choice(sorted(path.relative_to(desk).as_posix() for path in desk.rglob("*")))
    if way < 0.3:
        return old + rng.choice(LETTERS)
    if way < 0.7 and re.fullmatch(r"[\d.]+", old):
        return rng.choice(NUMBERS)
    if way < 0.7 and "." in old:
        return rng.choice(PLACES)
    return word(rng)


@cache
def _options(command: str = "", name: str = "") -> list[Any]:
    """Return the options that a command has; those of systems are their own."""
    if command in ("release", "explore"):
        from algorithms.systems import systems

        functions = {
            called: system.commands[command] for called, system in systems().items() if command in system.commands
        }
        alone = typer.Typer()
        alone.command()(functions.get(name, functions["phsafe"]))
        options = typer.main.get_command(alone).params
    else:
        every = typer.main.get_command(app).commands
        options = every.get(command, every["audit"]).params
    return [option for option in options if option.param_type_name == "option"]
