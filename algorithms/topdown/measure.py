"""The noisy measurements: the only step that reads the confidential counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import Rng, add_noise
from algorithms.schema import DETAILED, Query
from algorithms.topdown.estimation.constraints import broken
from algorithms.topdown.estimation.family import answer
from algorithms.topdown.plan import Known, Plan
from audit.neighbors import NeighborPair

__all__ = [
    "Key",
    "Measured",
    "Measurement",
    "Measurements",
    "check_covered",
    "exact_answers",
    "known_answers",
    "measured",
    "noise_options",
    "vector",
]

Key = tuple[int, str]
"""Level, and name of a query."""


class Measured(Protocol):
    """Noisy answers of a query in all areas of a level, in memory or on disk."""

    @property
    def variance(self) -> NDArray[np.float64]:
        """Variance of the noise, in squared people, shape (areas,); infinite for unmeasured areas."""
        ...

    def of(self, areas: slice, /) -> NDArray[np.int64]:
        """Return the answers in some areas, shape (..., areas, groups), runs first: 0 where unmeasured."""
        ...


@dataclass(frozen=True)
class Measurement:
    """Noisy answers of a query in all areas of a level, shape (..., areas, groups), runs first: 0 where unmeasured."""

    answers: NDArray[np.int64]
    variance: NDArray[np.float64]

    def of(self, areas: slice) -> NDArray[np.int64]:
        """Return the answers in some areas."""
        return self.answers[..., areas, :]


@dataclass(frozen=True)
class Measurements:
    """The output of the measurement step: noisy answers, and exact answers of the invariants by name."""

    noisy: Mapping[Key, Measurement]
    known: Known

    def runs(self, plan: Plan) -> int | None:
        """Return the number of runs, None for one without a leading axis; refuse measurements of another plan."""
        leading = set()
        for j, query in ((j, query) for j, queries in enumerate(plan.queries) for query in queries):
            areas, measurement = plan.tree.offsets[j + 1] - plan.tree.offsets[j], self.noisy.get((j, query.name))
            shape = None if measurement is None else np.shape(measurement.answers)
            if shape is None or len(shape) not in (2, 3) or shape[-2:] != (areas, query.size):
                expected = f"{areas} areas by {query.size} answers of {query.name} at level {j}"
                raise ValueError(f"measurements must have {expected}, got {shape}")
            leading.add(shape[:-2])
        if len(leading) > 1:
            raise ValueError(f"measurements must all have the same runs, got {sorted(leading)}")
        if missing := sorted({str(invariant) for invariant in plan.invariants} - set(self.known)):
            raise ValueError(f"measurements must have the answers of every invariant, and not of {missing[0]}")
        (runs,) = leading
        return runs[0] if runs else None


def measured(
    plan: Plan, histogram: ArrayLike, rng: Rng, *, size: int | None = None, only: Sequence[Key] | None = None
) -> tuple[Known, Iterator[dict[Key, Measurement]]]:
    """Return the answers of the invariants, and an iterator that draws the measurements level by level."""
    leaves = plan.check_histogram(histogram)
    known = known_answers(plan, partial(_of_query, leaves))
    return known, _measured(plan, leaves, rng, size, only)


def known_answers(plan: Plan, answers: Callable[[Query], NDArray[np.int64]]) -> Known:
    """Return the answers of the invariants from those of the leaves; refuse data that break a constraint."""
    known = _known(plan, answers)
    for constraint in plan.constraints(known):
        if words := broken(constraint, plan.tables(answers(constraint.query)), plan.tree):
            raise ValueError(f"the data must keep every constraint before any noise, and break {words}")
    return known


def noise_options(plan: Plan, level: int, query: str) -> dict[str, Any]:
    """Return the keywords of `algorithms.noise.add_noise` for a query."""
    changed = 1 if plan.budget.promise.relation == "add_remove" else 2  # number of answers that change by 1
    return {"query": f"{query} at level {level}", "sensitivity": (changed, math.sqrt(changed)), "n_jobs": plan.n_jobs}


def _measured(
    plan: Plan, leaves: NDArray[np.int64], rng: Rng, size: int | None, only: Sequence[Key] | None
) -> Iterator[dict[Key, Measurement]]:
    runs = () if size is None else (size,)
    for level in range(plan.tree.depth + 1):
        noisy = {}
        for name, exact in _answers(plan, leaves, level, only):
            laws, options = plan.laws(level, name), noise_options(plan, level, name)
            if len(laws) == 1 and laws[0][0].size == len(exact):  # no copy: a level may fill the memory
                answers = add_noise(exact, laws[0][1], size, rng, **options)
            else:
                answers = np.zeros((*runs, *exact.shape), np.int64)
                for areas, law in laws:
                    answers[..., areas, :] = add_noise(exact[areas], law, size, rng, **options)
            noisy[level, name] = Measurement(answers, plan.variances(level, name))
        yield noisy


def vector(noisy: Mapping[Key, Measurement], only: tuple[Key, ...]) -> NDArray[np.int64]:
    """Concatenate the noisy answers of some queries, shape (..., answers), without unmeasured areas."""
    parts = [noisy[key].answers[..., np.isfinite(noisy[key].variance), :] for key in only]
    return np.concatenate([part.reshape(*part.shape[:-2], -1) for part in parts], axis=-1)


def check_covered(plan: Plan, pair: NeighborPair) -> None:
    """Refuse a pair of databases that disagree on an invariant."""
    x, y = (_known(plan, partial(_of_query, plan.check_histogram(data))) for data in (pair.x, pair.y))
    for name in x:
        if (wrong := np.argwhere(x[name] != y[name])).size:
            place = tuple(wrong[0])
            raise ValueError(
                f"neighbors must agree on the invariants, and {name} is {x[name][place]} and {y[name][place]}: "
                "such a pair is not covered by the promise"
            )


def exact_answers(plan: Plan, histogram: ArrayLike, only: Sequence[Key]) -> dict[Key, NDArray[np.int64]]:
    """Return the exact answers of some queries, each of shape (areas, groups)."""
    leaves = plan.check_histogram(histogram)
    levels = range(plan.tree.depth + 1)
    return {(level, name): answers for level in levels for name, answers in _answers(plan, leaves, level, only)}


def _answers(
    plan: Plan, leaves: NDArray[np.int64], level: int, only: Sequence[Key] | None
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the exact answers of every query that is measured at a level, shape (areas, groups)."""
    areas = plan.level_tables(leaves, level)
    for query in plan.queries[level]:
        if only is None or (level, query.name) in only:
            yield query.name, areas if query.name == DETAILED else answer(query.groups, areas)


def _of_query(leaves: NDArray[np.int64], query: Query) -> NDArray[np.int64]:
    return answer(query.groups, leaves)


def _known(plan: Plan, answers: Callable[[Query], NDArray[np.int64]]) -> Known:
    return {
        str(invariant): plan.tables(answers(plan.schema.query(invariant.query)))[plan.tree.cut(invariant.level)]
        for invariant in plan.invariants
    }
