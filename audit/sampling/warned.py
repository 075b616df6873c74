"""Warnings of a mechanism, counted: a library that warns in every run would print ten thousand lines."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from audit.outputs import RUNNING

__all__ = ["heard", "said"]

MOST, LONGEST = 5, 200  # different warnings that a result tells, and letters of each


@contextmanager
def heard(*databases: Any) -> Iterator[Counter[tuple[str, str]]]:
    """Collect every warning, with the database it was on, in the place of printing it; none becomes an exception."""
    count: Counter[tuple[str, str]] = Counter()

    def collect(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        on = "".join(side for side, data in zip("xy", databases, strict=False) if data is RUNNING.get())
        count[f"{category.__name__}: {' '.join(str(message).split())[:LONGEST]}", on] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = collect
        yield count


def said(count: Counter[tuple[str, str]]) -> list[str]:
    """Return the warnings in words, the most frequent first, with how often on either database if that differs."""
    texts: Counter[str] = Counter()
    for (text, _), times in count.items():
        texts[text] += times
    kept = []
    for text, times in texts.most_common(MOST):
        on_x, on_y = count[text, "x"], count[text, "y"]
        differ = on_x != on_y and on_x + on_y == times
        each = [f"{n:,} times on {side}" if n else f"never on {side}" for n, side in ((on_x, "x"), (on_y, "y"))]
        kept.append(f"warned {', '.join(sorted(each)) if differ else f'{times:,} times'}: {text}")
    return kept + ([f"and of {len(texts) - MOST} other kinds"] if len(texts) > MOST else [])
