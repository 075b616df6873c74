"""The noisy measurements: the only step that reads the confidential counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import DiscreteGaussian, Rng, add_noise
from algorithms.noise.discrete_gaussian import losses_of_shifts
from algorithms.noise.geometric import geometric_loss
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
    tables = plan.tables(plan.check_histogram(histogram))
    known = _known(plan, tables)
    for constraint in plan.constraints(known):
        if words := broken(constraint, tables, plan.tree):
            raise ValueError(f"the data must keep every constraint before any noise, and break {words}")
    runs = () if size is None else (size,)
    changed = 1 if plan.budget.promise.relation == "add_remove" else 2  # answers of a query, by 1
    noisy = {}
    for level, name, exact in _answers(plan, tables):
        if only is not None and (level, name) not in only:
            continue
        answers = np.zeros((*runs, *exact.shape), np.int64)
        for areas, law in plan.laws(level, name):
            answers[..., areas, :] = add_noise(
                exact[areas],
                law,
                size,
                rng,
                query=f"{name} at level {level}",
                sensitivity=(changed, math.sqrt(changed)),
            )
        noisy[level, name] = Measurement(answers, plan.variances(level, name))
    return Measurements(noisy, known)


def invariant_answers(plan: Plan, histogram: ArrayLike) -> Known:
    """Return what is published exactly, by the name of the invariant."""
    return _known(plan, plan.tables(plan.check_histogram(histogram)))


def vector(noisy: Mapping[Key, Measurement], only: tuple[Key, ...]) -> NDArray[np.int64]:
    """Put the noisy answers of some queries side by side, shape (..., answers), those that were measured."""
    parts = [noisy[key].answers[..., np.isfinite(noisy[key].variance), :] for key in only]
    return np.concatenate([part.reshape(*part.shape[:-2], -1) for part in parts], axis=-1)


def exact_vector(plan: Plan, histogram: ArrayLike, only: tuple[Key, ...]) -> NDArray[np.int64]:
    """Put the exact answers of some queries side by side, as `vector` puts the noisy ones, shape (answers,)."""
    exact = {(j, name): answers for j, name, answers in _answers(plan, _tables(plan, histogram))}
    return vector({key: Measurement(exact[key], plan.variances(*key)) for key in only}, only)


def exact_loss(plan: Plan, pair: NeighborPair, only: tuple[Key, ...]) -> LossDistribution | None:
    """Return the exact law of the privacy loss of some measurements; None where its table would be too large."""
    check_covered(plan, pair)
    x, y = (
        dict(((j, name), exact) for j, name, exact in _answers(plan, _tables(plan, data))) for data in (pair.x, pair.y)
    )
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
    exact = {(j, name): answers for j, name, answers in _answers(plan, _tables(plan, histogram))}
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


def _tables(plan: Plan, histogram: ArrayLike) -> NDArray[np.int64]:
    return plan.tables(plan.check_histogram(histogram))


def _answers(plan: Plan, tables: NDArray[np.int64]) -> Iterator[tuple[int, str, NDArray[np.int64]]]:
    """Yield the exact answers of every level and query that is measured, shape (areas, groups)."""
    for level, queries in enumerate(plan.queries):
        for query in queries:
            yield level, query.name, answer(query.groups, tables[plan.tree.level(level)]).astype(np.int64)


def _known(plan: Plan, tables: NDArray[np.int64]) -> Known:
    known = {}
    for invariant in plan.invariants:
        areas = tables[plan.tree.cut(invariant.level)]
        if isinstance(invariant, GroupedTotal):
            known[str(invariant)] = np.bincount(np.asarray(invariant.groups), areas.sum(axis=1)).astype(np.int64)
        else:
            known[str(invariant)] = answer(plan.schema.query(invariant.query).groups, areas).astype(np.int64)
    return known
