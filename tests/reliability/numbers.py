"""What all tests of a row tried and what failed, added up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from tests.reliability.rows import ROWS

TRIED, REACHED = "tried", "reached"


def added_up(lines: list[dict[str, Any]], tests: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Return by number of the row how many tests it has, what they tried and when, and what failed or was left out.

    `tests` has the row of each test. One that no line is of has failed: the process that ran it died.
    """
    died = {"outcome": "failed", "seconds": 0.0, "day": date.today().isoformat(), "told": {}}
    known = {line["test"]: line for line in lines}
    of_row: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for name, row in sorted(tests.items()):  # processes at work together end in any order
        of_row[row].append(known.get(name, {**died, "test": name}))
    return {str(row.number): _row(of_row[row.number]) for row in ROWS if of_row[row.number]}


def _row(lines: list[dict[str, Any]]) -> dict[str, Any]:
    run = [line for line in lines if line["outcome"] != "skipped"]
    return {
        "tests": len(run),
        TRIED: sum(int(line["told"].get(TRIED, 1)) for line in run),
        "failed": [line["test"] for line in run if line["outcome"] == "failed"],
        "left_out": {line["test"]: line["why"] for line in lines if line["outcome"] == "skipped"},
        "seconds": sum(line["seconds"] for line in run),
        "measured": max(line["day"] for line in lines),
        "told": [line["told"] for line in run if line["told"].keys() - {TRIED}],
    }


def often(row: dict[str, Any]) -> str:
    """Return how much a row tried; where tests have to notice or to run most of it, how much they did."""
    reached = [line[REACHED] for line in row["told"] if REACHED in line]
    return f"{sum(reached):,} of {row[TRIED]:,}" if reached else f"{row[TRIED]:,}"


def sums(told: Iterable[Mapping[str, Mapping[str, int]]]) -> list[str]:
    """Return what tests counted under each name, kind by kind, added up."""
    added: dict[str, Counter[str]] = defaultdict(Counter)
    for counts in told:
        for name, kinds in counts.items():
            added[name].update(kinds)
    return [
        f"{name}: {kinds.total():,} ({', '.join(f'{n:,} {kind}' for kind, n in sorted(kinds.items()))})"
        for name, kinds in sorted(added.items())
    ]
