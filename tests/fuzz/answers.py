"""The exit code of a command, held against what it read and left: against counts, or else against its own words."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

import typer

from audit.cli.app import app
from tests.fuzz import oracle
from tests.fuzz.oracle import NO_POWER, VIOLATION, WITHIN, Json

AUDITING, READING = ("audit", "search", "replay"), ("check", "verify", "report")
IDLE = ("", "list", "help", "version")  # that run nothing
VERDICT = re.compile(r"(?:: |\s)(violated|not refuted|no power)(?=:|\s+[\d.,]+\s*$)", re.MULTILINE)
SAID = re.compile(  # how much a release says that it holds: rows of all tables, of synthetic people
    r"(?P<tables>[\d,]+) rows in \d+ (?:level|table)|(?P<people>[\d,]+) synthetic|(?P<rows>[\d,]+) rows of|"
    r"and (?P<records>[\d,]+) record"
)
NEVER = re.compile(r'out of reach|: none\.|"(?:runs|smallest_violation)": (?:null|"inf")')  # a plan without power
PEOPLE = "microdata.csv"


def command_of(arguments: tuple[str, ...]) -> str:
    """Return the command of a line, or nothing; nothing is run for who asks for help."""
    first = next((word for word in arguments if not word.startswith("-")), "")
    printing = any(word in ("--help", "--version") or word.startswith("--print") for word in arguments)
    return "" if printing else first


@cache
def _parsed(arguments: tuple[str, ...]) -> Json:
    """Return the options of a command that any command line has, by name; nothing of what is none."""
    at = next((place for place, word in enumerate(arguments) if not word.startswith("-")), 0)
    command = typer.main.get_command(app).commands.get(arguments[at] if arguments else "")  # type: ignore[attr-defined]
    with suppress(Exception):
        return dict(command.make_context("x", [*arguments[at + 1 :]], resilient_parsing=True).params)
    return {}


def named_results(arguments: tuple[str, ...], folder: Path) -> list[tuple[Path, Json]]:
    """Return the results in the files that a command reads: audits and replays, those of sessions one by one."""
    options = _parsed(arguments) if command_of(arguments) in (*READING, "compare") else {}
    paths = [folder / path for name in ("results", "old", "new") for path in _listed(options.get(name))]
    # Of os, since those of pathlib raise at a name of 1,000 letters.
    inside = [file for path in paths for file in (sorted(path.glob("[!.]*.json")) if os.path.isdir(path) else [path])]
    found: list[tuple[Path, Json]] = []
    for file in dict.fromkeys(path.resolve() for path in inside if os.path.isfile(path)):
        with suppress(OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):  # all are refused
            body = json.loads(file.read_bytes())
            entries = body["audits"] if body.get("kind") == "session" else [{"audit": body}]
            found += [
                (file, one["audit"])
                for one in entries
                if one.get("expected") != "violated" or one["audit"]["verdict"] != "violated"
            ]
    return found


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def expected(arguments: tuple[str, ...], outcome: Any) -> tuple[set[int], str]:
    """Return the exit codes that what was read and written allows, and what says so: counts, files or words."""
    command, out = command_of(arguments), outcome.out
    if command in AUDITING:
        made = [(True, one) for one in _made(outcome)]
        if any(_saved_verdicts(one) for _, one in made):
            return _codes(made)
        if found := VERDICT.findall(out):
            return oracle.codes([{one} for one in found]), "words"
    elif command in READING:
        return _codes([(whole or command == "verify", one) for whole, one in outcome.read])
    elif command == "compare":
        worse, weaker = (
            any(word in out for word in words)
            for words in (('"regressed": true', "REGRESSION: "), ('"weakened": true', "LESS POWER: "))
        )
        return {VIOLATION if worse else NO_POWER if weaker else WITHIN}, "words"
    elif command == "plan":
        return {NO_POWER if NEVER.search(out) else WITHIN}, "words"
    return {WITHIN}, "tables" if command == "release" else "words"  # which `wrong_with_release` reads


def _made(outcome: Any) -> list[Json]:
    """Return the results that a command wrote, or printed as JSON."""
    texts = [
        content
        for path, content in outcome.after.items()
        if path.endswith(".json") and content != outcome.before.get(path) and content is not None
    ]
    made = []
    for text in texts:
        with suppress(ValueError):
            made.append(json.loads(text))
    with suppress(ValueError, AttributeError):  # no table of results
        made += json.loads(outcome.out).values() if not made else []
    return [one for one in made if isinstance(one, dict)]


def _saved_verdicts(one: Json) -> set[str]:
    """Return what a result says; nothing of what is no audit and no replay."""
    return {one.get("verdict")} if one.get("kind") in ("audit", "replay") or "violations" in one else set()


def _codes(results: list[tuple[bool, Json]]) -> tuple[set[int], str]:
    """Return the exit codes of results by the counts of audits, where these are to be `believed`, or as they say."""
    every, counted = [], True
    for believed, one in results:
        found: set[str] = set()
        if believed and one.get("kind") == "audit":
            found = oracle.verdicts({"others": [], **one})
        counted &= bool(found)
        if not found:
            found = oracle.verdicts_of_replay(one) if believed and "violations" in one else _saved_verdicts(one)
        every += [found] if found else []
    return oracle.codes(every), "counts" if counted else "files"


# Releases, read back


def wrong_with_release(arguments: tuple[str, ...], outcome: Any) -> Iterator[str]:
    """Yield what is not as a release that ended well promises: files, columns, codes, numbers, sums and the ledger."""
    places = [place for place in outcome.written["--out"] if f"{place}/release.json" in outcome.after]
    if not places:
        yield "partial output: a release without release.json" if outcome.written["--out"] else "no release"
        return
    prefix = f"{places[0]}/"
    files = {path.removeprefix(prefix): content for path, content in outcome.after.items() if path.startswith(prefix)}
    files = {path: text for path, text in files.items() if Path(path).suffix in (".csv", ".json", ".txt")}
    if missing := {"columns.csv", "ledger.txt", "release.json"} - files.keys():
        yield f"partial output: a release without {missing}"
        return
    try:
        texts = {path: content.decode("utf-8") for path, content in files.items()}
        yield from _wrong_with(arguments, texts, outcome.out)
    except (ValueError, LookupError, TypeError) as error:
        yield f"partial output: a release that cannot be read back: {type(error).__name__}: {error}"


def _rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a table; a line of another length is a ValueError."""
    head, *lines = csv.reader(io.StringIO(text, newline=""), delimiter="|" if "|" in text.partition("\n")[0] else ",")
    return [dict(zip(head, line, strict=True)) for line in lines]


def _wrong_with(arguments: tuple[str, ...], texts: dict[str, str], out: str) -> Iterator[str]:
    tables = {path: _rows(text) for path, text in texts.items() if path.endswith(".csv") and path != "columns.csv"}
    columns = _rows(texts["columns.csv"])
    for path, rows in tables.items():
        told = [row["COLUMN"] for row in columns if row["FILE"] == path]
        if rows and told != list(rows[0]):
            yield f"release: {path} has other columns than columns.csv says, {told}"
    if strange := {row["FILE"] for row in columns} - texts.keys():
        yield f"release: columns.csv tells of {strange}, which are not there"
    for row in columns:
        codes = {code.partition(" = ")[0] for code in row["CODES"].split("; ")}
        values = {one[row["COLUMN"]] for one in tables.get(row["FILE"], [])}
        if row["CODES"] and not values <= codes | {""}:
            yield f"release: {row['FILE']}: {row['COLUMN']} holds {sorted(values - codes)[:3]}, no code of columns.csv"
        if row["COLUMN"] in ("COUNT", "VARIANCE"):
            numbers = [float(value) for value in values]
            if not all(map(math.isfinite, numbers)):
                yield f"release: {row['FILE']} holds {row['COLUMN']} that are no numbers"
            if row["COLUMN"] == "VARIANCE" and min(numbers, default=0) < 0:
                yield f"release: {row['FILE']} has a negative variance"
    promise = json.loads(texts["release.json"])["promise"]
    asked = [after for word, after in pairwise(arguments) if word == "--epsilon"]
    budget = float(promise[oracle.BUDGETS[promise["kind"]]])
    if len(asked) == 1 and promise["kind"] in ("pure", "approx") and float(asked[0]) != budget:
        yield f"release: epsilon {budget} is promised, and {asked[0]} was asked for"
    if not any(
        abs(float(one) - budget) <= 1e-5 * budget for one in re.findall(r"\d+\.?\d*(?:e[+-]?\d+)?", texts["ledger.txt"])
    ):
        yield f"release: the ledger does not name the budget that is promised, {budget}"
    yield from _wrong_totals(tables, out)


def _wrong_totals(tables: dict[str, list[dict[str, str]]], out: str) -> Iterator[str]:
    """Yield where numbers that were printed, or that have to add up, do not."""
    people = next((rows for path, rows in tables.items() if PurePath(path).name == PEOPLE), [])
    levels = [rows for path, rows in sorted(tables.items()) if path.startswith("level_")]
    for found in SAID.finditer(out):
        kind, said = next((name, int(value.replace(",", ""))) for name, value in found.groupdict().items() if value)
        there = len(people) if kind != "tables" else sum(map(len, tables.values()))
        if there != said:
            yield f"release: {said} {kind} are said to be there, and {there} are"
    if levels:  # each table is a sum of the finest
        finest = [row for row in levels[-1] if all(row.values())]
        yield from _not_sums([row for rows in levels for row in rows], finest)
    if people and "tables.csv" in tables:
        yield from _not_sums(tables["tables.csv"], [{**row, "COUNT": "1"} for row in people])


def _not_sums(rows: list[dict[str, str]], finest: list[dict[str, str]]) -> Iterator[str]:
    for row in rows:
        wanted = {name: value for name, value in row.items() if value and name not in ("COUNT", "LEVEL")}
        total = math.fsum(float(one["COUNT"]) for one in finest if wanted.items() <= one.items())
        if not math.isclose(total, float(row["COUNT"]), rel_tol=1e-9, abs_tol=1e-6):
            yield f"release: {row} is no sum of what it is made of, {total}"
            return
