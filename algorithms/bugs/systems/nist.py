"""Known bugs of NistDp3 as a whole: domain or groups, which should be public, are computed from the data.

**Claim.** Pure DP with the epsilon of `NistDp3` when one record is added or removed.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.census import ABSENT
from algorithms.nist.groups import Groups, choose_groups
from algorithms.nist.mechanism import NistDp3
from algorithms.nist.records import check_records
from algorithms.noise import Rng
from algorithms.noise.counts import Pair, PureBudget
from algorithms.schema import Schema
from audit.claims import PureDP

__all__ = ["DomainFromData", "GroupsFromData"]


@dataclass(frozen=True, eq=False)
class DomainFromData:
    """Histograms with only those levels of a field that its records have, as the challenge allowed for five fields.

    **Bug.** A person with a unique value adds bins; missing bins are `ABSENT`. **True loss.** Infinite. **Source.** The
    rules of the challenge, for five "state-dependent fields" (Gardner, "NistDp3: Differential Privacy 3, Write-up and
    Privacy Proof"). Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing Search Queries and Clicks Privately", 2009.
    """

    nist: NistDp3  # the mechanism, run on the observed values only
    observed: str  # the field whose values are read from the data

    def __post_init__(self) -> None:
        if self.observed not in self.nist.schema.attributes:
            raise ValueError(f"observed must be a field of the schema, got {self.observed!r}")

    @property
    def claim(self) -> PureDP:
        """Promise of the algorithm."""
        return self.nist.claim

    def __call__(self, records: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
        """Measure and cut `size` times: shape (size, bins), group after group; `ABSENT` for missing bins."""
        exact = check_records(records, self.nist.schema)
        parts = []
        for group in range(len(self.nist.groups)):
            noisy, there = self.nist.measure(exact, group, size, rng), self._there(exact, group)
            cut = self.nist.factor * self.nist.scale * math.log10(max(1, there.sum()))  # observed bins only
            counts = np.where(noisy < cut, 0, np.rint(noisy)).astype(np.int64)
            parts.append(np.where(there, counts, ABSENT))
        return np.concatenate(parts, axis=1)

    def support_masses(self, pair: Pair) -> tuple[float, float]:
        """Return the probability of outputs impossible on the other database: 1 if the observed values differ, or 0."""
        apart = float(set(self._codes(pair.x).tolist()) != set(self._codes(pair.y).tolist()))
        return apart, apart

    def _codes(self, records: ArrayLike) -> NDArray[Any]:
        column = list(self.nist.schema.attributes).index(self.observed)
        return check_records(records, self.nist.schema)[:, column]

    def _there(self, records: NDArray[Any], group: int) -> NDArray[np.bool_]:
        """Return whether each bin of a group is of a value that a record has, shape (bins,)."""
        names = self.nist.groups.fields[group]
        shape = [len(self.nist.schema.attributes[name]) for name in names]
        if self.observed not in names:
            return np.ones(math.prod(shape), np.bool_)
        return np.isin(np.indices(shape)[names.index(self.observed)].ravel(), self._codes(records))


@dataclass(frozen=True, eq=False)
class GroupsFromData(PureBudget):
    """NistDp3 that looks at the data themselves to find out which fields are correlated.

    **Bug.** Groups are published with the rows, and are an exact function of the records. **True loss.** Infinite: if
    the association of two fields is close to the limit, one record decides their grouping. **Source.** Our own. Gardner
    states of NistDp3 that "these grouping decisions are made without input from the data set to be privatized".
    """

    schema: Schema
    epsilon: float
    _: KW_ONLY
    rows: int = 10  # number of synthetic rows

    def __post_init__(self) -> None:
        _ = NistDp3(self.schema, Groups.single(self.schema), self.epsilon, rows=self.rows)  # refuses bad numbers

    def groups(self, records: ArrayLike) -> Groups:
        """Choose groups by the records to protect, shape (n, fields), at least one."""
        return choose_groups(records, self.schema)

    def __call__(self, records: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
        """Release `size` times, shape (size, 1 + rows, fields): the group of every field, then synthetic rows."""
        groups = self.groups(records)
        rows = NistDp3(self.schema, groups, self.epsilon, rows=self.rows)(records, size, rng)
        of = {name: number for number, group in enumerate(groups.fields) for name in group}
        published = np.array([of[name] for name in self.schema.attributes])
        return np.concatenate([np.broadcast_to(published, (size, 1, published.size)), rows.astype(np.int64)], axis=1)

    def support_masses(self, pair: Pair) -> tuple[float, float]:
        """Return the probability of outputs impossible on the other database: 1 if the groups differ, or 0."""
        apart = float(self.groups(pair.x).fields != self.groups(pair.y).fields)
        return apart, apart
