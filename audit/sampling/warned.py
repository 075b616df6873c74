"""Warnings of a mechanism, counted: a library that warns in every run would print ten thousand lines."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["heard", "said"]

MOST, LONGEST = 5, 200  # different warnings that a result tells, and letters of each


@contextmanager
def heard() -> Iterator[Counter[str]]:
    """Collect every warning in the place of printing it; none becomes an exception, which would be an output."""
    count: Counter[str] = Counter()

    def collect(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        count[f"{category.__name__}: {' '.join(str(message).split())[:LONGEST]}"] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = collect
        yield count


def said(count: Counter[str]) -> list[str]:
    """Return the warnings in words, the most frequent first."""
    kept = [f"warned {times:,} times: {text}" for text, times in count.most_common(MOST)]
    return kept + ([f"and of {len(count) - MOST} other kinds"] if len(count) > MOST else [])
