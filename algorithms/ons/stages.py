"""The top-down method stage by stage: each a mechanism by itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import Rng
from algorithms.noise.counts import Pair
from algorithms.ons.laws import CountNoise
from algorithms.ons.tables import PILOT_TABLES
from audit.claims import PureDP
from audit.exact import LossDistribution, compose_losses, loss_from_logs

if TYPE_CHECKING:
    from algorithms.ons.top_down import OnsTopDown

__all__ = ["LevelStage", "PublishedStage", "Stage"]

Stage = Literal["adjusted", "rounded", "tables"]


@dataclass(frozen=True, eq=False)
class LevelStage:
    """The noisy counts of levels as a mechanism: `OnsTopDown.stage` makes it.

    **Claim.** The sum of the shares of the levels released; none if zeros are not perturbed.

    Attributes
    ----------
    top_down : OnsTopDown
        The whole.
    places : tuple of int
        Of the levels released.

    Raises
    ------
    ValueError
        If there is no such level, or none is named.
    """

    top_down: OnsTopDown
    places: tuple[int, ...]

    def __post_init__(self) -> None:
        levels = len(self.top_down.levels)
        if not self.places or not set(self.places) <= set(range(levels)):
            raise ValueError(f"levels must be some of 0 to {levels - 1}, got {list(self.places)}")

    @property
    def claim(self) -> PureDP:
        """What the stage promises."""
        part = sum(Fraction(self.top_down.shares[place]) for place in self.places)
        return PureDP(self.top_down.claim.epsilon * float(part))

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> NDArray[np.float64]:
        """Measure `size` times: shape (size, counts of all levels released)."""
        exact = self.top_down.exact_levels(histogram)
        parts = [self.top_down.noisy(exact[place], place, size, rng).reshape(size, -1) for place in self.places]
        return np.concatenate(parts, axis=1)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, all levels together.

        Where zeros are not perturbed, and a count is 0 on one database only, all that noise makes of it on the other
        but 0 itself is impossible there.

        Returns
        -------
        LossDistribution or None
            None where its table would be too large; of Laplace noise an upper bound with the exact maximum.
        """
        x, y = self.top_down.exact_levels(pair.x), self.top_down.exact_levels(pair.y)
        parts = []
        for place in self.places:
            noise, before, after = self.top_down.noises[place], x[place], y[place]
            changed = before != after
            if not self.top_down.perturb_zeros:
                lonely = changed & ((before == 0) | (after == 0))
                parts += [
                    self._loss_of_zero(noise, *counts) for counts in zip(before[lonely], after[lonely], strict=True)
                ]
                changed &= ~lonely
            law = noise.exact_loss(np.abs(after - before)[changed].tolist())
            if law is None:
                return None
            parts.append(law)
        return compose_losses(parts)

    @staticmethod
    def _loss_of_zero(noise: CountNoise, before: int, after: int) -> LossDistribution:
        """Loss of a count that is 0, without noise, on one of the databases: the outputs are 0 and all others."""
        count = max(before, after)
        at_zero = float(np.exp(noise.log_law(np.array(-float(count))))) if noise.law == "geometric" else 0.0
        with np.errstate(divide="ignore"):
            empty, noisy = np.log([1.0, 0.0]), np.log([at_zero, 1 - at_zero])
        return loss_from_logs(empty, noisy) if before == 0 else loss_from_logs(noisy, empty)

    def log_likelihood(self, outputs: ArrayLike, histogram: ArrayLike) -> NDArray[np.float64]:
        """Return the log-density (geometric: log-probability) of noisy counts under a histogram, shape (runs,).

        Raises
        ------
        ValueError
            If outputs do not have one column for each count.
        """
        exact = self.top_down.exact_levels(histogram)
        given = np.asarray(outputs, np.float64)
        columns = sum(exact[place].size for place in self.places)
        if given.ndim != 2 or given.shape[1] != columns:
            raise ValueError(f"outputs must have one column for each of {columns} counts, got shape {given.shape}")
        total, start = np.zeros(len(given)), 0
        for place in self.places:
            counts, noise = exact[place].reshape(-1), self.top_down.noises[place]
            part = given[:, start : start + counts.size]
            log_p = noise.log_law(part - counts)
            if not self.top_down.perturb_zeros:  # a 0 that continuous noise made has no probability beside a sure one
                if noise.law == "laplace":
                    log_p = np.where(part == 0, -np.inf, log_p)
                log_p = np.where(counts > 0, log_p, np.where(part == 0, 0.0, -np.inf))
            total += log_p.sum(axis=1)
            start += counts.size
        return total


@dataclass(frozen=True, eq=False)
class PublishedStage:
    """What the algorithm makes of its measurements, as a mechanism: `OnsTopDown.stage` makes it.

    **Claim.** The whole promise: it is computed from all levels.

    Attributes
    ----------
    top_down : OnsTopDown
        The whole.
    name : {"adjusted", "rounded", "tables"}
        The last level before rounding; after; the tables of the pilot counted from it.

    Raises
    ------
    ValueError
        If there is no such stage.
    """

    top_down: OnsTopDown
    name: Stage

    def __post_init__(self) -> None:
        if self.name not in get_args(Stage):
            raise ValueError(f"stage must be one of measurements, {', '.join(get_args(Stage))}, got {self.name!r}")

    @property
    def claim(self) -> PureDP:
        """What the stage promises."""
        return self.top_down.claim

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Run the algorithm `size` times: shape (size, leaves, cells), or (size, counts of all tables)."""
        people = self.top_down.run(histogram, size, rng, rounded=self.name != "adjusted")
        if self.name != "tables":
            return people
        tables = self.top_down.domain.tabulate(people, PILOT_TABLES)
        return np.concatenate([table.reshape(size, -1) for table in tables], axis=1)
