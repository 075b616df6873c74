"""Outputs that are words: numbered for every attack, named in the report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audit.outputs import RAISED
from audit.sampling.streams import Phase, halves

if TYPE_CHECKING:  # as in `audit.attacks.protocol`
    from audit.sampling.runs import Runs

__all__ = ["Words", "learn_words"]

SHARE = 1 / 10  # of the selection runs that learn words
HELD = 2**22  # words that are held in memory for that
MOST = 4096  # words that are told apart; all others count as one


@dataclass(frozen=True)
class Words:
    """The words that outputs were seen to be.

    Attributes
    ----------
    known : tuple of str
        In alphabetical order; the number of a word is its place. All words that are not among them have number -1.
    """

    known: tuple[str, ...]

    @classmethod
    def seen(cls, batches: Iterable[NDArray[Any]]) -> Words:
        """Return the words of some batches of outputs, of any shape; the most frequent ones if there are too many."""
        words, counts = np.unique(np.concatenate([_words(batch).reshape(-1) for batch in batches]), return_counts=True)
        return cls(tuple(map(str, np.sort(words[np.argsort(-counts, kind="stable")[:MOST]]))))

    def number(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of each word, in the shape of `outputs`."""
        known, outputs = np.array(self.known), _words(outputs)
        place = np.minimum(np.searchsorted(known, outputs), known.size - 1)
        return np.where(known[place] == outputs, place, -1)

    def name(self, number: float) -> str:
        """Return the word of a number, as the report shows it."""
        return repr(self.known[int(number)]) if 0 <= number < len(self.known) else "another word"


def learn_words(runs: Runs, choosing: int) -> tuple[Words, int]:
    """Return which words outputs are, and how many of the `choosing` selection runs it took to see them."""
    spent = max(2, min(int(choosing * SHARE), HELD // max(1, math.prod(runs.shape))))
    seen = runs.reduced(halves(spent), lambda outputs: outputs, Phase.SHAPE, 2)  # repeats too: the frequent are kept
    return Words.seen(block for blocks in seen for block in blocks), spent


def _words(outputs: NDArray[Any]) -> NDArray[np.str_]:
    """Return a batch of words; one that is not of words has no output but exceptions."""
    return outputs if outputs.dtype.kind == "U" else np.full(outputs.shape, RAISED)
