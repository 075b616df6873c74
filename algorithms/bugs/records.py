"""Known bugs of small pipelines that read records and publish tables; `audit.replay` shows them with one pair of runs.

**Claim.** All of them promise pure DP with `epsilon` when one record is added or removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.noise import Rng, TwoTailedGeometric, add_noise
from algorithms.noise.geometric import GeometricBudget
from audit.arguments import whole_number

__all__ = ["PAGE", "ImputesOnDemand", "NoLimitNoNoise", "PageByPage", "RaisesOnEmpty"]

Records = NDArray[Any]
Table = NDArray[Any]
LEVELS = 5  # number of values of the field
DONORS = 10_000  # records that an imputation searches
PAGE = 4  # records read at a time


class PageByPage(GeometricBudget):
    """The number of records, page by page.

    **Bug.** The number of pages is not noisy. **True loss.** Infinite. **Source.** Cebere et al., 2026.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the number of records on each page, `size` times over: shape (size, pages)."""
        pages = [records[at : at + PAGE] for at in range(0, len(records), PAGE)]
        noisy = [add_noise(len(page), self.noise, size, rng, query="people", sensitivity=1) for page in pages]
        return np.stack(noisy, axis=1)


class RaisesOnEmpty(GeometricBudget):
    """The number of records in every column, which is one number.

    **Bug.** The number of columns is read from the first record, so an empty file raises. **True loss.** Infinite.
    **Source.** Our own; Cebere et al., 2026.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the number of records, shape (n, columns), `size` times over: shape (size, columns)."""
        columns = len(records[0])
        noisy = add_noise(len(records), self.noise, size, rng, query="people", sensitivity=1)
        return np.repeat(noisy[:, None], columns, axis=1)


class ImputesOnDemand(GeometricBudget):
    """A histogram of codes from 0 to 4; -1 is missing, and imputed by looking through many donors.

    **Bug.** Imputation takes time. **True loss.** Infinite if an attacker can time it. The tables keep the promise.
    **Source.** Haeberlen et al., 2011.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the histogram of codes, shape (n,), `size` times over: shape (size, 5)."""
        missing = records < 0
        if missing.any():
            votes = [0] * LEVELS
            for donor in range(DONORS):
                votes[donor * 7 % LEVELS] += 1
            records = np.where(missing, votes.index(max(votes)), records)
        exact = np.bincount(records, minlength=LEVELS)
        return add_noise(exact, self.noise, size, rng, query="histogram", sensitivity=1)


@dataclass(frozen=True)
class NoLimitNoNoise(GeometricBudget):
    """The sum of values that are clipped to a limit, and the number of records, each with half of the budget.

    **Bug.** A limit of 0 (`most`) means no limit, and, as the sensitivity, no noise. **True loss.** Infinite.
    **Source.** Cebere et al., 2026.
    """

    most: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("most", self.most, least=0)

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the sum of values, shape (n,), and their number, `size` times over: shape (size, 2)."""
        half = TwoTailedGeometric(self.epsilon / 2)
        people = add_noise(len(records), half, size, rng, query="people", sensitivity=1)
        total = np.full(size, records.sum())
        if self.most:
            law, clipped = TwoTailedGeometric(half.epsilon / self.most), np.clip(records, 0, self.most)
            total = add_noise(clipped.sum(), law, size, rng, query="sum", sensitivity=self.most)
        return np.stack([total, people], axis=1)
