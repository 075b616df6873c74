"""The rows: what each asks, and what others publish of it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """A question, what counts as one try, and what the most trusted systems publish of it."""

    number: int
    name: str  # of few words, for figures
    title: str
    tries: str
    others: str = "none found that is published"


ROWS = tuple(Row(**row) for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["row"])
