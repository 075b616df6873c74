"""The noisy measurements: the only step that reads the confidential counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import DiscreteGaussian, Rng, add_noise
from algorithms.noise.discrete_gaussian import losses_of_shifts
from algorithms.noise.geometric import geometric_loss
from algorithms.schema import DETAILED
from algorithms.topdown.estimation.constraints import GroupedTotal, broken
from algorithms.topdown.estimation.family import answer
from algorithms.topdown.plan import Known, Plan
from audit.exact import LossDistribution, compose_losses
from audit.neighbors import NeighborPair

__all__ = [
    "Measurement",
    "Measurements",
    "exact_loss",
    "exact_vector",
    "invariant_answers",
    "log_likelihood",
    "measure",
    "measured",
    "vector",
]

Key = tuple[int, str]
"""Level and query."""


@dataclass(frozen=True)
class Measurement:
    """Noisy answers of one query in all areas of a level.

    Attributes
    ----------
    answers : ndarray of int, shape (..., areas, groups)
        Exact answers plus noise; 0 where nothing is measured. Leading axes are independent runs.
    variance : ndarray of float, shape (areas,)
        Of the noise, in squared people; infinite where nothing is measured.
    """

    answers: NDArray[np.int64]
    variance: NDArray[np.float64]


@dataclass(frozen=True)
class Measurements:
    """All that leaves the measurement step: noisy answers, and exact ones of the invariants.

    Attributes
    ----------
    noisy : mapping of (int, str) to Measurement
        By level and query.
    known : mapping of str to ndarray of int
        Exact answers of the invariants, by name.
    """

    noisy: Mapping[Key, Measurement]
    known: Known


def measure(
    plan: Plan, histogram: ArrayLike, rng: Rng, *, size: int | None = None, only: Sequence[Key] | None = None
) -> Measurements:
    """Measure every query in every area once, or `size` times along a leading axis.

    The histogram has the shape (leaves, cells); `only` names the levels and queries that are measured, all by default.
    """
    known, levels = measured(plan, histogram, rng, size=size, only=only)
    return Measurements({key: noisy for level in levels for key, noisy in level.items()}, known)


def measured(
    plan: Plan, histogram: ArrayLike, rng: Rng, *, size: int | None = None, only: Sequence[Key] | None = None
) -> tuple[Known, Iterator[dict[Key, Measurement]]]:
    """Return the answers of the invariants, and the measurements level by level, drawn when their turn comes.

    Arguments and draws are those of `measure`. The data are checked at once.
    """
    leaves = plan.check_histogram(histogram)
    known = _known(plan, leaves)
    for constraint in plan.constraints(known):
        if words := broken(constraint, plan.tables(answer(constraint.query.groups, leaves)), plan.tree):
            raise ValueError(f"the data must keep every constraint before any noise, and break {words}")
    return known, _measured(plan, leaves, rng, size, only)


def _measured(
    plan: Plan, leaves: NDArray[np.int64], rng: Rng, size: int | None, only: Sequence[Key] | None
) -> Iterator[dict[Key, Measurement]]:
    runs = () if size is None else (size,)
    changed = 1 if plan.budget.promise.relation == "add_remove" else 2  # answers of a query, by 1
    for level in range(plan.tree.depth + 1):
        noisy = {}
        for name, exact in _answers(plan, leaves, level, only):
            laws = plan.laws(level, name)
            options: dict[str, Any] = {
                "query": f"{name} at level {level}",
                "sensitivity": (changed, math.sqrt(changed)),
            }
            if len(laws) == 1 and laws[0][0].size == len(exact):  # a level may fill the memory: nothing is copied
                answers = add_noise(exact, laws[0][1], size, rng, **options)
            else:
                answers = np.zeros((*runs, *exact.shape), np.int64)
                for areas, law in laws:
                    answers[..., areas, :] = add_noise(exact[areas], law, size, rng, **options)
            noisy[level, name] = Measurement(answers, plan.variances(level, name))
        yield noisy


def invariant_answers(plan: Plan, histogram: ArrayLike) -> Known:
    """Return what is published exactly, by the name of the invariant."""
    return _known(plan, plan.check_histogram(histogram))


def vector(noisy: Mapping[Key, Measurement], only: tuple[Key, ...]) -> NDArray[np.int64]:
    """Put the noisy answers of some queries side by side, shape (..., answers), those that were measured."""
    parts = [noisy[key].answers[..., np.isfinite(noisy[key].variance), :] for key in only]
    return np.concatenate([part.reshape(*part.shape[:-2], -1) for part in parts], axis=-1)


def exact_vector(plan: Plan, histogram: ArrayLike, only: tuple[Key, ...]) -> NDArray[np.int64]:
    """Put the exact answers of some queries side by side, as `vector` puts the noisy ones, shape (answers,)."""
    exact = _exact(plan, histogram, only)
    return vector({key: Measurement(exact[key], plan.variances(*key)) for key in only}, only)


def exact_loss(plan: Plan, pair: NeighborPair, only: tuple[Key, ...]) -> LossDistribution | None:
    """Return the exact law of the privacy loss of some measurements; None where its table would be too large."""
    check_covered(plan, pair)
    x, y = (_exact(plan, data, only) for data in (pair.x, pair.y))
    parts: list[LossDistribution] = []
    for level, name in only:
        change = np.abs(y[level, name] - x[level, name])
        for areas, law in plan.laws(level, name):
            if not (shifts := [int(shift) for shift in change[areas].ravel() if shift]):
                continue
            if isinstance(law, DiscreteGaussian):
                losses = losses_of_shifts(law, shifts)
            else:
                loss = geometric_loss(law.epsilon, shifts)
                losses = None if loss is None else [loss]
            if losses is None:
                return None
            parts += losses
    return compose_losses(parts)


def check_covered(plan: Plan, pair: NeighborPair) -> None:
    """Refuse a pair of databases that disagree on an invariant."""
    x, y = (invariant_answers(plan, data) for data in (pair.x, pair.y))
    for name in x:
        if (wrong := np.argwhere(x[name] != y[name])).size:
            place = tuple(wrong[0])
            raise ValueError(
                f"neighbors must agree on the invariants, and {name} is {x[name][place]} and {y[name][place]}: "
                "such a pair is not covered by the promise"
            )


def log_likelihood(plan: Plan, outputs: ArrayLike, histogram: ArrayLike, only: tuple[Key, ...]) -> NDArray[np.float64]:
    """Return the log-probability of noisy answers, as `vector` puts them, under a histogram, shape (runs,)."""
    given = np.asarray(outputs)
    exact = _exact(plan, histogram, only)
    total, start = np.zeros(len(given)), 0
    width = sum(areas.size * exact[key].shape[1] for key in only for areas, _ in plan.laws(*key))
    if given.ndim != 2 or given.shape[1] != width:
        raise ValueError(f"outputs must have one column for each of {width} answers, got shape {given.shape}")
    for key in only:
        measured = np.isfinite(plan.variances(*key))
        place = np.cumsum(measured) - 1
        stop = start + int(measured.sum()) * exact[key].shape[1]
        answers = given[:, start:stop].reshape(len(given), -1, exact[key].shape[1])
        for areas, law in plan.laws(*key):
            total += law.logpmf(answers[:, place[areas]] - exact[key][areas]).sum(axis=(1, 2))
        start = stop
    return total


def _exact(plan: Plan, histogram: ArrayLike, only: Sequence[Key]) -> dict[Key, NDArray[np.int64]]:
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


def _known(plan: Plan, leaves: NDArray[np.int64]) -> Known:
    known = {}
    for invariant in plan.invariants:
        query = plan.schema.query("total" if isinstance(invariant, GroupedTotal) else invariant.query)
        answers = plan.tables(answer(query.groups, leaves))[plan.tree.cut(invariant.level)]
        if isinstance(invariant, GroupedTotal):
            answers = np.bincount(np.asarray(invariant.groups), answers[:, 0]).astype(np.int64)
        known[str(invariant)] = answers
    return known
