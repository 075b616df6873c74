"""Side effects of a mechanism: its warnings are counted, and changes of its data are refused."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from audit.sampling.calls import RUNNING
from audit.sampling.checkpoint import contents

__all__ = ["in_words", "watch"]

MOST, LONGEST = 5, 200  # different warnings in a result, and letters of each


@contextmanager
def watch(*databases: Any) -> Iterator[Counter[tuple[str, str]]]:
    """Collect all warnings, with their databases, instead of printing them; none becomes an exception."""
    # A library may warn in every run. Changed databases are refused even after another error: later runs would not be
    # on the pair.
    before, counts = contents(*databases), Counter[tuple[str, str]]()

    def collect(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        on = "".join(side for side, data in zip("xy", databases, strict=False) if data is RUNNING.get())
        counts[f"{category.__name__}: {' '.join(str(message).split())[:LONGEST]}", on] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = collect
        try:
            yield counts
        finally:
            stopped = isinstance(sys.exc_info()[1], KeyboardInterrupt | MemoryError)  # maybe in the middle of a change
            if not stopped and contents(*databases) != before:
                raise ValueError("a mechanism must not change the data that it is given: copy them before")


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
