"""Known bugs of small pipelines whose draws hang on the size of the data, or on a setting; see `pipelines`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.bugs.bug import whole
from algorithms.bugs.pipelines import BOUND, CODES, Pipeline, PipelineBug, Records, Table
from algorithms.noise import Rng, add_noise

__all__ = ["KNOWN"]

PAGE = 4  # records that are read at once
KNOWN: dict[str, PipelineBug] = {}  # by name


@dataclass(frozen=True)
class PageByPage(Pipeline):
    """The number of records, page by page.

    **Bug.** As many pages are counted as there are, and how many is not noisy. The twin counts one page.
    **True loss.** Infinite: the record that begins a page adds a number to the release.
    **Source.** The replays of arXiv 2602.17454, on the size of the data in the control flow.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the numbers, shape (size, pages)."""
        pages = [records] if self.sound else [records[at : at + PAGE] for at in range(0, len(records), PAGE)]
        noisy = [add_noise(len(page), self.noise, size, rng, query="people", sensitivity=1) for page in pages]
        return np.stack(noisy, axis=1)


KNOWN["page-by-page"] = PipelineBug(
    PageByPage(1.0), np.arange(2 * PAGE), 3, "number", "size of the data in the control flow"
)


@dataclass(frozen=True)
class NoLimitNoNoise(Pipeline):
    """The sum of values that are clipped to a limit, and the number of records, each with half of the budget.

    **Bug.** A limit of 0 means that there is none. It is the sensitivity, too, and noise for a sensitivity of 0 is
    none. The twin takes the largest value that there can be.
    **True loss.** Infinite: a sum that has no noise is known.
    **Source.** The replays of arXiv 2602.17454, on settings that make a sensitivity 0.

    Attributes
    ----------
    most : int
        The limit, at least 0.
    """

    most: int = whole(0, least=0)

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release both, shape (size, 2)."""
        people = add_noise(len(records), self.part(2), size, rng, query="people", sensitivity=1)
        limit = self.most or (BOUND if self.sound else 0)
        if not limit:
            return np.stack([np.full(size, records.sum()), people], axis=1)
        total = np.clip(records, 0, limit).sum()
        noisy = add_noise(total, self.part(2 * limit), size, rng, query="sum", sensitivity=limit)
        return np.stack([noisy, people], axis=1)


KNOWN["no-limit-no-noise"] = PipelineBug(NoLimitNoNoise(1.0), CODES, 4, "output", "sensitivity 0 by a setting")
