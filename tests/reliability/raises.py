"""Which `raise` did no test reach? ``python -m tests.reliability.raises FILE``, of data that `branches` measured."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("audit", "algorithms")


def raises(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line of every raise statement of a module, and the statement."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise):
            yield node.lineno, ast.unparse(node)


def reached(data: Path, root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Return how many raise statements there are, and which of them no test executed, each with its place.

    The data are of the sources as they stand now, of lines or of branches; of none of the modules they show nothing.
    """
    if not data.is_file():
        raise ValueError(f"data must be a file of coverage, got {data}")
    measured = CoverageData(str(data))
    measured.read()
    tried, failed, known = 0, [], False
    for path in sorted(path for package in packages for path in (root / package).rglob("*.py")):
        lines = measured.lines(str(path))
        known |= lines is not None
        for line, statement in sorted(raises(path.read_text("utf-8"))):
            tried += 1
            if line not in (lines or ()):
                failed.append(f"{path.relative_to(root)}:{line}: {statement}")
    if not known:
        raise ValueError(f"data must be of modules of {' or '.join(packages)} in {root}, got others in {data}")
    return {"tried": tried, "failed": failed}


if __name__ == "__main__":
    found = reached(Path(sys.argv[1]))
    print(*found["failed"], f"{found['tried'] - len(found['failed'])} of {found['tried']} are reached", sep="\n")
    sys.exit(bool(found["failed"]))
