"""Warnings of a mechanism, counted: a library that warns in every run would print ten thousand lines."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from audit.sampling.calls import RUNNING

__all__ = ["collected", "in_words"]

MOST, LONGEST = 5, 200  # different warnings that a result tells, and letters of each


@contextmanager
def collected(*databases: Any) -> Iterator[Counter[tuple[str, str]]]:
    """Collect every warning, with the database it was on, in the place of printing it; none becomes an exception."""
    counts: Counter[tuple[str, str]] = Counter()

    def collect(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        on = "".join(side for side, data in zip("xy", databases, strict=False) if data is RUNNING.get())
        counts[f"{category.__name__}: {' '.join(str(message).split())[:LONGEST]}", on] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = collect
        yield counts


def in_words(counts: Counter[tuple[str, str]]) -> list[str]:
    """Return the warnings in words, the most frequent first, and on which database if that clearly differs."""
    texts: Counter[str] = Counter()
    for (text, _), times in counts.items():
        texts[text] += times
    sentences = []
    for text, times in texts.most_common(MOST):
        (few, less), (most, more) = sorted((counts[text, side], side) for side in "xy")
        each = f"{most:,} times on {more}, {f'{few:,} times' if few else 'never'} on {less}"
        sentences.append(f"warned {each if 2 * few < most == times - few else f'{times:,} times'}: {text}")
    return sentences + ([f"and of {len(texts) - MOST} other kinds"] if len(texts) > MOST else [])
