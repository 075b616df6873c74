"""Method 1 of the pilot: independent noise on every count of every table; tables share the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng, add_noise
from algorithms.noise.counts import Pair
from algorithms.ons.laws import CountNoise, Law
from algorithms.ons.tables import PILOT_TABLES, Counts, Domain, Table
from algorithms.release.ledger import Share, exact_shares
from algorithms.schema import Schema
from audit.claims import ApproxDP, PureDP
from audit.exact import LossDistribution, compose_losses, loss_from_logs

__all__ = ["IndependentNoise"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class IndependentNoise:
    """Frequency tables with independent noise on every count.

    **Claim.** Pure DP with `epsilon` when one person is added or removed; approximate DP with `epsilon` and `delta` for
    Gaussian noise. Each table by itself promises its share of both. With ``perturb_zeros=False`` there is no promise:
    empty cells stay empty, so a count that is not 0 proves that somebody is in the cell.
    **Sensitivity.** One person changes one count of each table by 1.
    **Source.** Office for National Statistics, pilot on mortality data, section 4, method 1.

    Attributes
    ----------
    tree : Hierarchy
        Areas; all leaves have the same depth.
    epsilon, delta : float
        Budget of all tables together, epsilon in nats, positive and finite; delta for Gaussian noise only.
    tables : sequence of Table
        Default: the fourteen tables of the pilot (its Table 4), which need its attributes.
    shares : sequence of Share
        Exact share of the budget of each table; shares add up to 1. Default: equal shares.
    law : {"laplace", "geometric", "gaussian"}
        Only the geometric law can be drawn securely.
    nonnegative : bool
        Whether negative values are raised to 0: then counts are too high on average.
    """

    tree: Hierarchy
    schema: Schema
    epsilon: float
    tables: Sequence[Table] = PILOT_TABLES
    shares: Sequence[Share] = ()
    law: Law = "laplace"
    delta: float = 0.0
    rounded: bool = True
    nonnegative: bool = False
    perturb_zeros: bool = True

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads

    def __post_init__(self) -> None:
        _ = CountNoise(self.law, self.epsilon, self.delta)  # checks the whole budget before its parts
        tables = tuple(self.tables)
        if not tables:
            raise ValueError("tables must name one table at least, got none")
        keys = [(table.level, self.domain.query(table).groups.tobytes()) for table in tables]
        if twice := [table for table, key in zip(tables, keys, strict=True) if keys.count(key) > 1]:
            raise ValueError(f"tables must name each table once, got {twice[0]} twice")
        shares = tuple(self.shares) or (Fraction(1, len(tables)),) * len(tables)
        if len(shares) != len(tables):
            raise ValueError(f"shares must be one for each of {len(tables)} tables, got {len(shares)}")
        exact = exact_shares("tables", dict(zip(map(str, tables), shares, strict=True)))
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "shares", tuple(exact.values()))
        _ = self.noises

    @cached_property
    def domain(self) -> Domain:
        """Areas and attributes."""
        return Domain(self.tree, self.schema)

    @cached_property
    def noises(self) -> tuple[CountNoise, ...]:
        """Noise on the counts of each table; a table whose share of the budget is too small is refused."""
        noises = []
        for table, share in zip(self.tables, self.shares, strict=True):
            part = float(Fraction(share))
            try:
                noises.append(CountNoise(self.law, self.epsilon * part, self.delta * part, self.rounded))
            except ValueError as error:
                budget = f"epsilon {self.epsilon:g}" + f" and delta {self.delta:g}" * bool(self.delta)
                raise ValueError(f"{budget} with a share of {share} must leave {table} enough: {error}") from None
        return tuple(noises)

    @property
    def claim(self) -> PureDP | ApproxDP:
        """Promise of the algorithm; its epsilon is infinite if zeros are not perturbed."""
        if not self.perturb_zeros:
            return PureDP(math.inf)
        return CountNoise(self.law, self.epsilon, self.delta).claim

    def components(self) -> list[IndependentNoise]:
        """Return a mechanism with one law of noise for each table; estimates examine them one by one."""
        return [self.only([place]) for place in range(len(self.tables))]

    def only(self, places: Sequence[int]) -> IndependentNoise:
        """Return a mechanism that releases only the tables with these indices, with the sum of their shares."""
        if odd := [place for place in places if not isinstance(place, SupportsIndex)]:
            raise TypeError(f"tables must be named by whole numbers, got {odd[0]!r}")
        if not places or not set(places) <= set(range(len(self.tables))):
            raise ValueError(f"tables must be some of 0 to {len(self.tables) - 1}, got {list(places)}")
        shares = [Fraction(self.shares[place]) for place in places]
        part = sum(shares)
        return replace(
            self,
            epsilon=self.epsilon * float(part),
            delta=self.delta * float(part),
            tables=[self.tables[place] for place in places],
            shares=[share / part for share in shares],
        )

    def exact_tables(self, histogram: ArrayLike) -> list[Counts]:
        """Return the tables of a histogram, shape (leaves, cells), without noise: each of shape (areas, groups)."""
        return self.domain.tabulate(self.domain.check(histogram), self.tables)

    def exact(self, histogram: ArrayLike) -> Counts:
        """Return the release without noise, shape (counts of all tables,)."""
        return np.concatenate([counts.reshape(-1) for counts in self.exact_tables(histogram)])

    def noisy(self, exact: Counts, place: int, size: int, rng: Rng) -> Counts | Floats:
        """Return counts of a table, or of a part of it, plus the noise of the table: shape (size, *exact.shape)."""
        noisy = add_noise(exact, self.noises[place], size, rng, query=str(self.tables[place]), sensitivity=1)
        return noisy if self.perturb_zeros else noisy * (exact > 0)

    def release(self, histogram: ArrayLike, size: int, rng: Rng) -> list[Counts | Floats]:
        """Release the tables of a histogram, shape (leaves, cells): each of shape (size, areas, groups)."""
        noisy = [self.noisy(counts, place, size, rng) for place, counts in enumerate(self.exact_tables(histogram))]
        return [np.maximum(table, 0, out=table) for table in noisy] if self.nonnegative else noisy

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> Counts | Floats:
        """Release all tables of a histogram side by side, `size` times: shape (size, counts of all tables)."""
        return np.concatenate([table.reshape(size, -1) for table in self.release(histogram, size, rng)], axis=1)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the loss of `pair` before negative values become 0; see `CountNoise.exact_loss`."""
        losses = []
        for before, after, noise in zip(self.exact_tables(pair.x), self.exact_tables(pair.y), self.noises, strict=True):
            changed = before != after
            lonely = changed & ((before == 0) | (after == 0)) & (not self.perturb_zeros)
            losses += [_loss_of_zero(noise, *counts) for counts in zip(before[lonely], after[lonely], strict=True)]
            if (shifts := np.abs(after - before)[changed & ~lonely]).size or not lonely.any():
                if (law := noise.exact_loss(shifts.tolist())) is None:
                    return None
                losses.append(law)
        return compose_losses(losses)

    def log_likelihood(self, outputs: ArrayLike, histogram: ArrayLike) -> Floats:
        """Return the log-probability, or density, of outputs, shape (runs, counts) given a histogram: shape (runs,)."""
        array, exact = np.asarray(outputs, np.float64), self.exact_tables(histogram)
        sizes = [counts.size for counts in exact]
        if array.ndim != 2 or array.shape[1] != sum(sizes):
            raise ValueError(f"outputs must have one column for each of {sum(sizes)} counts, got shape {array.shape}")
        parts = np.split(array, np.cumsum(sizes)[:-1], axis=1)
        total = np.zeros(len(array))
        for noise, noisy, counts in zip(self.noises, parts, exact, strict=True):
            total += self._log_law(noise, noisy, counts.reshape(-1)).sum(axis=1)
        return total

    def _log_law(self, noise: CountNoise, noisy: Floats, exact: Counts) -> Floats:
        log_p = noise.log_law(noisy - exact)
        if not self.perturb_zeros and noise.continuous:  # noise is 0 with probability 0, so a 0 proves an empty cell
            log_p = np.where(noisy == 0, -np.inf, log_p)
        if self.nonnegative:  # a 0 was a value of 0 or below
            log_p = np.where(noisy == 0, noise.log_below(noisy - exact), np.where(noisy < 0, -np.inf, log_p))
        if not self.perturb_zeros:
            log_p = np.where(exact > 0, log_p, np.where(noisy == 0, 0.0, -np.inf))
        return log_p


def _loss_of_zero(noise: CountNoise, before: int, after: int) -> LossDistribution:
    """Loss of a count that is 0, and gets no noise, on one of the databases; the outcomes are 0 and not 0."""
    at_zero = 0.0 if noise.continuous else float(np.exp(noise.log_law(np.array(-float(max(before, after))))))
    with np.errstate(divide="ignore"):
        empty, noisy = np.log([1.0, 0.0]), np.log([at_zero, 1 - at_zero])
    return loss_from_logs(empty, noisy) if before == 0 else loss_from_logs(noisy, empty)
