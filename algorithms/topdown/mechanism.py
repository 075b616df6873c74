"""TopDown as a mechanism, and each of its stages as a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import Rng
from algorithms.noise.losses import loss_of_changes
from algorithms.topdown.budget import Claim
from algorithms.topdown.estimate import Estimate, estimate
from algorithms.topdown.measure import Key, Measurement, Measurements, check_covered, exact_answers, measured, vector
from algorithms.topdown.plan import Plan
from audit.exact import LossDistribution
from audit.neighbors import NeighborPair

__all__ = ["MeasurementStage", "TableStage", "TopDown"]

Name = Literal["measurements", "estimate", "rounded", "microdata"]


@dataclass(frozen=True, eq=False)
class TopDown(Plan):
    """The Census TopDown algorithm: noisy measurements at every level, then tables that agree with each other.

    **Claim.** The budget's promise under its neighbor relation, relative to the invariants: neighbors agree on them.
    **Sensitivity.** Each query is a partition of the cells. In each area of a path, adding a person changes one answer
    of a query, and replacing a person changes two.
    **Source.** Abowd et al., "The 2020 Census Disclosure Avoidance System TopDown Algorithm", Harvard Data Science
    Review, 2022.

    Attributes
    ----------
    invariants : sequence of Invariant
        Answers that are published exactly.
    bounds : sequence of Bounds
        Constraints that every possible database keeps, structural zeros included.
    passes : mapping of int to sequence of sequence of str
        For each level, the queries of each pass of the fit. Later passes keep a query of an earlier pass within the
        smallest tolerance plus a tenth of a person. Other levels are fitted in one pass.
    rounding : sequence of sequence of str, or mapping of int to that
        Nested queries whose rounding error is minimized, pass by pass, for all levels or by level. Empty: cell by cell.
    minimal : str or None
        Query on which parts add up to their parent even in the failsafe. If no tables allow that, they add up only on
        the total and on queries of constraints above the parts' level. None: no failsafe.
    solver : {"piqp", "batched"}
        Interior point, family by family, or `algorithms.topdown.estimation.batched` over all runs at once.
    n_jobs : int
        Number of processes that solve families and draw blocks of secure noise, as in joblib.
    """

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads
    calls_per_side: ClassVar[int] = 32  # preparing a call takes as long as many runs

    @property
    def claim(self) -> Claim:
        """Promise of the algorithm."""
        return self.budget.promise

    def measure(
        self, histogram: ArrayLike, rng: Rng, *, size: int | None = None, only: Sequence[Key] | None = None
    ) -> Measurements:
        """Measure a histogram, shape (leaves, cells), with all queries or those in `only`, once or `size` times."""
        known, levels = measured(self, histogram, rng, size=size, only=only)
        return Measurements({key: noisy for level in levels for key, noisy in level.items()}, known)

    def estimate(self, measurements: Measurements) -> Estimate:
        """Post-process measurements: see `algorithms.topdown.estimate.estimate`."""
        return estimate(self, measurements)

    def exact(self, histogram: ArrayLike) -> NDArray[np.int64]:
        """Return the release without noise, shape (leaves, cells)."""
        return self.check_histogram(histogram)

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
        """Release the leaves of a histogram, shape (leaves, cells), `size` times: shape (size, leaves, cells)."""
        return self.estimate(self.measure(histogram, rng, size=size)).tables[:, self.tree.leaves]

    def exact_loss(self, pair: NeighborPair) -> LossDistribution | None:
        """Return None, as the law of published tables is not known; refuse pairs that the promise does not cover."""
        check_covered(self, pair)
        return None

    def stage(
        self,
        name: Name,
        *,
        level: int | None = None,
        only: Sequence[Key] | None = None,
        paths: Sequence[int] | None = None,
    ) -> MeasurementStage | TableStage:
        """Return one stage of the algorithm as a mechanism by itself.

        Stages are ``"measurements"``, noisy answers; ``"estimate"`` and ``"rounded"``, tables before and after
        rounding; and ``"microdata"``, tables of all areas counted again from the records. The output has all areas, or
        those of one `level`. Measurements may have `only` some (level, query), tables only areas on the `paths` to some
        leaves. (In measurements, areas off the paths of a pair reveal nothing: their noise is independent.)
        """
        if name not in get_args(Name):
            raise ValueError(f"stage must be one of {', '.join(get_args(Name))}, got {name!r}")
        of_level = slice(0, self.tree.n_nodes) if level is None else self.tree.level(level)
        if name == "measurements":
            if paths is not None:
                raise ValueError(f"paths must be of tables, got them of {name!r}")
            if unknown := [key for key in only or () if key not in self.keys]:
                raise ValueError(f"only must name levels and queries that are measured, got {unknown[0]}")
            keys = tuple(key for key in self.keys if (only is None or key in only) and level in (None, key[0]))
            if not keys:
                raise ValueError(f"at least one query must be released, got none of level {level}")
            return MeasurementStage(self, keys)
        if only is not None:
            raise ValueError(f"only must be of the measurements, got it of {name!r}")
        nodes = np.arange(self.tree.n_nodes)
        if paths is not None:
            nodes = np.unique(np.concatenate([np.zeros(0, np.int64), *map(self.tree.path, paths)]))
        nodes = nodes[(nodes >= of_level.start) & (nodes < of_level.stop)]
        if not nodes.size:
            raise ValueError(f"at least one area must be released, got none of level {level} on paths {paths}")
        return TableStage(self, name, nodes)


@dataclass(frozen=True, eq=False)
class MeasurementStage:
    """The noisy measurements of TopDown as a mechanism, made by `TopDown.stage`.

    **Claim.** The largest sum, over paths from the root to a leaf, of the shares of the released queries.
    """

    topdown: TopDown
    keys: tuple[Key, ...]  # released levels and queries, in the order of the output

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads
    __name__ = "TopDown measurements"

    @property
    def claim(self) -> Claim:
        """Promise of the stage."""
        plan, promise = self.topdown, self.topdown.claim
        spent = np.zeros(plan.tree.n_nodes, dtype=object)
        for j in range(plan.tree.depth + 1):
            nodes, shares = plan.tree.level(j), dict(plan.budget.measured(j))
            part = sum(shares[name] for level, name in self.keys if level == j)
            spent[nodes] = plan.shares[nodes] * part + (spent[plan.tree.parent[nodes]] if j else 0)
        return type(promise)(promise.budget * float(max(spent[plan.tree.leaves])), promise.relation)

    def exact(self, histogram: ArrayLike) -> NDArray[np.int64]:
        """Return the answers without noise, shape (answers,)."""
        plan, exact = self.topdown, exact_answers(self.topdown, histogram, self.keys)
        return vector({key: Measurement(exact[key], plan.variances(*key)) for key in self.keys}, self.keys)

    def components(self) -> list[MeasurementStage]:
        """Return a mechanism with one law of noise for each level and query; estimates examine them one by one."""
        return [replace(self, keys=(key,)) for key in self.keys]

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
        """Measure `size` times: shape (size, answers)."""
        return vector(self.topdown.measure(histogram, rng, size=size, only=self.keys).noisy, self.keys)

    def exact_loss(self, pair: NeighborPair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, all queries together; None where its table is too large."""
        plan = self.topdown
        check_covered(plan, pair)
        x, y = (exact_answers(plan, data, self.keys) for data in (pair.x, pair.y))
        return loss_of_changes((law, (y[key] - x[key])[areas]) for key in self.keys for areas, law in plan.laws(*key))

    def log_likelihood(self, outputs: ArrayLike, histogram: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probability of noisy answers, shape (runs, answers), under a histogram: shape (runs,)."""
        plan, values = self.topdown, np.asarray(outputs)
        exact = exact_answers(plan, histogram, self.keys)
        width = sum(areas.size * exact[key].shape[1] for key in self.keys for areas, _ in plan.laws(*key))
        if values.ndim != 2 or values.shape[1] != width:
            raise ValueError(f"outputs must have one column for each of {width} answers, got shape {values.shape}")
        total, start = np.zeros(len(values)), 0
        for key in self.keys:
            measured_areas = np.isfinite(plan.variances(*key))
            place = np.cumsum(measured_areas) - 1
            stop = start + int(measured_areas.sum()) * exact[key].shape[1]
            answers = values[:, start:stop].reshape(len(values), -1, exact[key].shape[1])
            for areas, law in plan.laws(*key):
                total += law.logpmf(answers[:, place[areas]] - exact[key][areas]).sum(axis=(1, 2))
            start = stop
        return total


@dataclass(frozen=True, eq=False)
class TableStage:
    """The tables of TopDown before or after rounding, or counted from its records, made by `TopDown.stage`.

    **Claim.** The whole promise: tables are computed from all measurements.
    """

    topdown: TopDown
    name: Name
    nodes: NDArray[np.int64]  # released areas, in the order of the output

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads
    calls_per_side: ClassVar[int] = 32  # preparing a call takes as long as many runs

    @property
    def __name__(self) -> str:
        return f"TopDown {self.name}"

    @property
    def claim(self) -> Claim:
        """Promise of the stage."""
        return self.topdown.claim

    def exact(self, histogram: ArrayLike) -> NDArray[np.int64]:
        """Return the tables without noise, shape (areas, cells)."""
        return self.topdown.tables(self.topdown.check_histogram(histogram))[self.nodes]

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64] | NDArray[np.float64]:
        """Run the algorithm `size` times up to this stage: shape (size, areas, cells)."""
        plan = self.topdown
        estimated = plan.estimate(plan.measure(histogram, rng, size=size))
        if self.name == "estimate":
            return estimated.real[:, self.nodes]
        tables = estimated.tables
        if self.name == "microdata":
            leaves = tables[:, plan.tree.leaves]
            persons = [np.repeat(np.arange(run.size), run.reshape(-1)) for run in leaves]  # cell index of each person
            counts = np.array([np.bincount(places, minlength=leaves[0].size) for places in persons])
            tables = plan.tables(counts.reshape(leaves.shape))
        return tables[:, self.nodes]

    def exact_loss(self, pair: NeighborPair) -> LossDistribution | None:
        """Return None, as the law of the tables is not known; refuse pairs that the promise does not cover."""
        check_covered(self.topdown, pair)
        return None
