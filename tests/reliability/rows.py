"""The rows of the page of reliability: what each tries, and what it does not cover."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """A question, what counts as one try and as a failure, and what the most trusted systems publish of it."""

    number: int
    title: str
    tries: str
    failure: str
    uncovered: str
    others: str = ""
    independent: bool = False  # tries drawn at random: none failed bounds the rate of failures


ROWS = tuple(Row(**row) for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["row"])
