"""``plaudit verify``: one saved audit against its own counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from audit.cli.exits import exit_code

__all__: list[str] = []


def verify(files: Annotated[list[Path], typer.Argument(help="Saved audits (*.json).")]) -> int:
    """Compute bound and verdict of saved audits again, from nothing but their counts."""
    from audit.results import printable
    from audit.results.folder import read_audit
    from audit.review.verify import verify_result

    results = []
    for path in files:
        result = read_audit(path)  # intact: its checksum is looked at here
        try:
            verify_result(result)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        results.append(result)
        witness = "; the witness of an unbounded loss is the exact law's" if result.support is not None else ""
        print(printable(f"{path}: whole, and its numbers follow from its counts{witness}. {result}"))
    return exit_code(result.verdict for result in results)
