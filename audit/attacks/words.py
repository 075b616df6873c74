"""Outputs that are words: numbered for the search, named in the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.sampling import RAISED

__all__ = ["Categories"]

MOST = 4096  # words that are told apart; all others count as one


@dataclass(frozen=True)
class Categories:
    """The words that outputs were seen to be.

    Attributes
    ----------
    words : tuple of str
        In alphabetical order; the number of a word is its place. All words that are not among them have number -1.
    """

    words: tuple[str, ...]

    @classmethod
    def seen(cls, batches: Iterable[NDArray[Any]]) -> Categories:
        """Return the words of some batches of outputs, the most frequent ones if there are too many.

        Parameters
        ----------
        batches : iterable of ndarray of str
            Of any shape, each word as often as it was an output.

        Returns
        -------
        Categories
            To number later outputs with.
        """
        words, counts = np.unique(np.concatenate([_words(batch).reshape(-1) for batch in batches]), return_counts=True)
        kept = np.sort(words[np.argsort(-counts, kind="stable")[:MOST]])
        return cls(tuple(map(str, kept)))

    def number(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of each word, in the shape of `outputs`."""
        known, outputs = np.array(self.words), _words(outputs)
        place = np.minimum(np.searchsorted(known, outputs), known.size - 1)
        return np.where(known[place] == outputs, place, -1)

    def name(self, number: float) -> str:
        """Return the word of a number, as the report shows it."""
        return repr(self.words[int(number)]) if 0 <= number < len(self.words) else "another word"


def _words(outputs: NDArray[Any]) -> NDArray[np.str_]:
    """Return a batch of words; one that is not of words has no output but exceptions."""
    return outputs if outputs.dtype.kind == "U" else np.full(outputs.shape, RAISED)
