"""Estimates of a mechanism that can be run: errors of its outputs, and counts on two databases, are made here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.arguments import real_numbers, whole_number
from audit.estimates.direct import direct_loss
from audit.estimates.residuals import residual_loss
from audit.mechanism import Mechanism, mechanism_name
from audit.neighbors import NeighborPair
from audit.outputs import Kind, as_numbers, batch_of
from audit.results import LossEstimate
from audit.sampling.blocks import block_runs, workers_on
from audit.sampling.progress import progress_bar
from audit.sampling.streams import Seed, entropy_of, halves, seed_sequence, stream

__all__ = ["estimate_direct", "estimate_residuals", "exact_output", "releases_for"]

Floats = NDArray[np.float64]

MOST = 2**26  # errors that are held at a time: 0.5 GB
ASKED = 2**18  # entries of an output that are asked at most: 262,144 show a law, and millions take minutes
ENOUGH = 1_000  # errors of one release that show the shape of their law
WANTED, FEWEST = 10_000, 30  # errors, and releases, where one has fewer
EVENTS, NARROW, WIDE = 17, 8, 2.0  # thresholds; how far out at least, in people; and in standard deviations

ERRORS, ON_X, ON_Y, RESAMPLES, ENTRIES = range(5)  # numbers of the random streams


def exact_output(mechanism: Mechanism, data: Any) -> Floats:
    """Return what one output of a mechanism would be without noise.

    Parameters
    ----------
    mechanism : Mechanism
        With a method ``exact(data)``.
    data : object
        A database.

    Returns
    -------
    ndarray of float
        Of the shape of one output.

    Raises
    ------
    ValueError
        If the mechanism has no such method, or it returns no finite numbers.
    TypeError
        If it returns no numbers.
    """
    exact = getattr(mechanism, "exact", None)
    if not callable(exact):
        raise ValueError(f"{mechanism_name(mechanism)} has no exact output to subtract")
    given = np.asarray(exact(data))
    return real_numbers("the exact output", given.reshape(-1), ndim=(1,)).reshape(given.shape)


def releases_for(cells: int) -> int:
    """Return how many releases a residual estimate takes by default: one, or of small ones as many as show a law."""
    return 1 if cells >= ENOUGH else max(FEWEST, math.ceil(WANTED / cells))


def estimate_residuals(
    mechanism: Mechanism,
    data: Any,
    *,
    runs: int | None = None,
    rng: Seed = None,
    n_jobs: int = 1,
    progress: bool = False,
    **options: Any,
) -> LossEstimate:
    """Run a mechanism on one database, and estimate its loss from the errors of all its outputs.

    Parameters
    ----------
    mechanism : Mechanism
        With a method ``exact(data)``, what an output would be without noise.
    data : object
        The database.
    runs : int, optional
        Releases. By default one, if it has 1,000 errors; otherwise as many as have 10,000, and at least 30.
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        Seed of all randomness.
    n_jobs : int
        Blocks of runs at work at the same time, as joblib counts; the estimate does not depend on it.
    progress : bool
        Whether a terminal shows a bar.
    **options
        As `residual_loss` takes them, such as ``method``.

    Returns
    -------
    LossEstimate
        As `residual_loss` makes it; runs are resampled whole where there are several. Of more than 262,144 entries so
        many are drawn, at random and without looking at their errors.

    Raises
    ------
    ValueError
        If the mechanism has no exact output or returns others than numbers of its shape, there are too many errors, or
        `residual_loss` refuses them.
    TypeError
        If an argument is of the wrong kind.

    Examples
    --------
    >>> class Noisy:
    ...     def exact(self, data):
    ...         return data
    ...     def __call__(self, data, size, rng):
    ...         return data + rng.laplace(scale=2, size=(size, data.size))
    >>> estimate = estimate_residuals(Noisy(), np.full(5000, 20), rng=1)
    >>> round(estimate.value, 1), estimate.size, estimate.areas
    (0.5, 1, 5000)
    """
    exact = exact_output(mechanism, data)
    number = releases_for(max(1, exact.size)) if runs is None else whole_number("runs", runs, least=1)
    root = seed_sequence(rng)
    asked: Any = slice(None)
    if exact.size > ASKED:
        if options.get("blocks") is not None:
            raise ValueError(f"blocks must be of at most {ASKED:,} entries, got {exact.size:,}")
        asked = np.random.default_rng(stream(root, ENTRIES)).choice(exact.size, ASKED, replace=False)
    wanted = exact.reshape(-1)[asked]
    if number * wanted.size > MOST:
        raise ValueError(f"runs must make at most {MOST:,} errors, got {number:,} runs of {wanted.size:,}")
    with progress_bar(mechanism_name(mechanism), number, shown=progress) as advance:
        outputs = _outputs(
            mechanism, data, exact.shape, number, stream(root, ERRORS), lambda one: one[:, asked], advance, n_jobs
        )
    found = residual_loss(outputs - wanted, rng=stream(root, RESAMPLES), **options)
    return replace(found, settings=found.settings | {"entries": exact.size, "seed": entropy_of(root)})


def estimate_direct(
    mechanism: Mechanism,
    pair: NeighborPair,
    *,
    runs: int = 20_000,
    rng: Seed = None,
    n_jobs: int = 1,
    progress: bool = False,
    **options: Any,
) -> LossEstimate:
    """Run a mechanism on two databases, and estimate the loss from the error of the entry that the pair changes most.

    Parameters
    ----------
    mechanism : Mechanism
        With a method ``exact(data)``, what an output would be without noise.
    pair : NeighborPair
        The two databases. Of the entries whose exact values differ most the first is looked at.
    runs : int
        In all, over both databases: at least 20.
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        Seed of all randomness.
    n_jobs : int
        Blocks of runs at work at the same time, as joblib counts; the estimate does not depend on it.
    progress : bool
        Whether a terminal shows a bar.
    **options
        As `direct_loss` takes them. By default the errors `at` are 17 whole numbers around their median that reach 8
        people, or two standard deviations (by the median absolute deviation) if these are more.

    Returns
    -------
    LossEstimate
        As `direct_loss` makes it; the settings name the entry, and how many the pair changes.

    Raises
    ------
    ValueError
        If the mechanism has no exact output or returns others than numbers of its shape, the exact outputs do not
        differ, or `direct_loss` refuses the outputs.
    TypeError
        If an argument is of the wrong kind.

    Examples
    --------
    >>> class Noisy:
    ...     def exact(self, data):
    ...         return data
    ...     def __call__(self, data, size, rng):
    ...         return data + rng.laplace(scale=2, size=(size, data.size))
    >>> estimate = estimate_direct(Noisy(), NeighborPair.add_people([20, 7], 1), runs=50_000, rng=1)
    >>> estimate.settings["entry"], 0.4 < estimate.value < 0.7
    ([1], True)
    """
    if not isinstance(pair, NeighborPair):
        raise TypeError(f"pair must be a NeighborPair, got {type(pair).__name__}")
    exact, other = exact_output(mechanism, pair.x), exact_output(mechanism, pair.y)
    if exact.shape != other.shape:
        raise ValueError(f"exact outputs must be of one shape on both databases, got {exact.shape} and {other.shape}")
    change = np.abs(other - exact).reshape(-1)
    if not change.any():
        raise ValueError("exact outputs must differ between the two databases, got the same")
    entry = int(change.argmax())
    number = whole_number("runs", runs, least=20)
    root = seed_sequence(rng)
    with progress_bar(mechanism_name(mechanism), number, shown=progress) as advance:
        x, y = (
            _outputs(mechanism, data, exact.shape, size, stream(root, side), lambda one: one[:, entry], advance, n_jobs)
            for data, size, side in zip((pair.x, pair.y), halves(number), (ON_X, ON_Y), strict=True)
        )
    center = float(exact.reshape(-1)[entry])
    if "at" not in options:
        options["at"] = _thresholds(x - center)
    found = direct_loss(x, y, center, distance=pair.distance, **options)
    place = [int(index) for index in np.unravel_index(entry, exact.shape)]
    entries = {"entry": place, "entries_changed": int(np.count_nonzero(change)), "seed": entropy_of(root)}
    return replace(found, settings=found.settings | entries)


def _thresholds(errors: Floats) -> Floats:
    """Return whole errors on both sides of the median, as far out as most noise goes: counts made to fit are biased."""
    middle = float(np.median(errors))
    deviation = 1.4826 * float(np.median(np.abs(errors - middle)))
    reach = max(NARROW, math.ceil(WIDE * deviation))
    return np.asarray(np.rint(middle) + np.rint(np.linspace(-reach, reach, EVENTS)))


def _outputs(
    mechanism: Mechanism,
    data: Any,
    shape: tuple[int, ...],
    runs: int,
    seed: np.random.SeedSequence,
    keep: Callable[[Floats], Floats],
    advance: Callable[[int], None],
    n_jobs: int,
) -> Floats:
    """Return what is kept of each output, a row of numbers; an exception is the caller's."""
    each = block_runs(data, Kind(shape), mechanism)
    blocks = -(-runs // each)

    def block(number: int) -> Floats:
        size = min(each, runs - number * each)
        batch = as_numbers(batch_of(mechanism, data, size, np.random.default_rng(stream(seed, number))))
        if batch is None or batch.shape != (size, *shape):
            what = "words or rows of several lengths" if batch is None else f"{batch.shape[1:]} in {len(batch)} runs"
            raise ValueError(f"outputs must be numbers of the shape of the exact one, {shape}, got {what}")
        return keep(batch.reshape(size, -1).astype(np.float64))

    kept: dict[int, Floats] = {}
    for number, rows in workers_on(mechanism, block, n_jobs, blocks).finished(range(blocks)):
        kept[number] = rows
        advance(len(rows))
    return np.concatenate([kept[number] for number in range(blocks)])
