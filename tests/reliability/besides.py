"""The rows that no single test is evidence of: what all of them notice, reach, and say of other versions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tests.reliability import branches, dependencies, raises
from tests.reliability.plugin import logged

NOTICED = 0.9  # of the mutants, at least


def mutants() -> dict[str, Any]:
    """Change the statistical core in one place at a time, and see whether its tests notice."""
    from tests.reliability import mutation  # which needs the extra of this name

    found = mutation.score()
    low, high = found["interval"]
    share = found["killed"] / found["tried"]
    words = [f"noticed {found['killed']} of {found['tried']}: {share:.1%}, 95% interval {low:.1%} to {high:.1%}"]
    words += [f"not noticed: {one['place']}: `{one['change']}` {one['why']}".rstrip() for one in found["survivors"]]
    return {"tried": found["tried"], "failed": words[:1] if share < NOTICED else [], "words": "; ".join(words)}


def taken() -> dict[str, Any]:
    """Count the branches that the default tests take."""
    found = branches.taken(branches.measured())
    shares = {name: one["taken"] / one["tried"] for name, one in found.items()}
    return {
        "tried": sum(one["tried"] for one in found.values()),
        "failed": [name for name, share in shares.items() if share < branches.LEAST[name]],
        "words": ", ".join(f"{name}: {share:.1%} of {found[name]['tried']:,}" for name, share in shares.items()),
    }


def reached() -> dict[str, Any]:
    """Count the raise statements that the default tests reach."""
    return raises.reached(branches.measured())


def passed(versions: Literal["lowest", "newest"]) -> dict[str, Any]:
    """Run the default tests with other versions."""
    found = dependencies.results(versions, [])
    tests, skipped = found["passed"] + len(found["failed"]), found["skipped"]
    return {"tried": tests, "failed": found["failed"], "words": f"{versions}: {tests:,} tests, {skipped} skipped"}


BESIDES: dict[int, dict[str, Callable[[], dict[str, Any]]]] = {
    14: {"mutants": mutants},
    15: {"branches": taken},
    16: {"raise statements": reached},
    19: {versions: partial(passed, versions) for versions in ("lowest", "newest")},  # type: ignore[arg-type]
}


def measure_besides(rows: Iterable[int], log: Path) -> None:
    """Measure what the log does not have yet, and add a line for each."""
    ended = {line["test"] for line in logged(log)}
    for row in rows:
        for name, measured in BESIDES.get(row, {}).items():
            if name in ended:
                continue
            began = time.monotonic()
            told = measured()
            line = {"test": name, "row": row, "outcome": "failed" if told["failed"] else "passed", "told": told}
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line | {"seconds": time.monotonic() - began}) + "\n")
