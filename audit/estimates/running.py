"""Estimates of a mechanism that can be run: of one law of noise, or of several, whose losses are added up."""

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
from audit.outputs import Kind, as_numbers
from audit.results import LossEstimate
from audit.sampling.calls import Caller
from audit.sampling.progress import progress_bar
from audit.sampling.streams import Seed, entropy_of, halves, seed_sequence, stream

__all__ = ["estimate_direct", "estimate_loss", "estimate_residuals", "exact_output", "releases_for"]

Floats = NDArray[np.float64]

MOST = 2**26  # errors that are held at a time: 0.5 GB
MOST_ENTRIES = 2**18  # most entries of an output that are used: 262,144 show a law, and millions take minutes
ENOUGH = 1_000  # errors of one release that show the shape of their law
WANTED, FEWEST = 10_000, 30  # errors, and fewest releases, if one release has fewer
EVENTS, NARROW, WIDE = 17, 8, 2.0  # thresholds; their least reach in people; their reach in standard deviations

ERRORS, ON_X, ON_Y, RESAMPLES, ENTRIES = range(5)  # numbers of the random streams


def exact_output(mechanism: Mechanism, data: Any) -> Floats:
    """Return one output of a mechanism without noise, by its method ``exact(data)``, as finite numbers."""
    exact = getattr(mechanism, "exact", None)
    if not callable(exact):
        raise ValueError(f"{mechanism_name(mechanism)} has no exact output to subtract")
    output = np.asarray(exact(data))
    return real_numbers("the exact output", output.reshape(-1), ndim=(1,)).reshape(output.shape)


def releases_for(cells: int) -> int:
    """Return how many releases a residual estimate takes by default: one, or more if one has too few errors."""
    return 1 if cells >= ENOUGH else max(FEWEST, math.ceil(WANTED / cells))


def estimate_residuals(
    mechanism: Mechanism,
    data: Any,
    *,
    runs: int | None = None,
    rng: Seed = None,
    n_jobs: int = 1,
    progress: bool | None = None,
    **options: Any,
) -> LossEstimate:
    """Run a mechanism on one database, and estimate its loss by `residual_loss` from the errors of all its outputs."""
    # `runs` are releases: by default one with 1,000 errors, or as many as have 10,000, and at least 30. Of more than
    # 262,144 entries this many are drawn at random, without looking at their errors.
    exact = exact_output(mechanism, data)
    number = releases_for(max(1, exact.size)) if runs is None else whole_number("runs", runs, least=1)
    root = seed_sequence(rng)
    entries: Any = slice(None)
    if exact.size > MOST_ENTRIES:
        if options.get("blocks") is not None:
            raise ValueError(f"blocks must be of at most {MOST_ENTRIES:,} entries, got {exact.size:,}")
        entries = np.random.default_rng(stream(root, ENTRIES)).choice(exact.size, MOST_ENTRIES, replace=False)
    exact_entries = exact.reshape(-1)[entries]
    if number * exact_entries.size > MOST:
        raise ValueError(f"runs must make at most {MOST:,} errors, got {number:,} runs of {exact_entries.size:,}")
    with progress_bar(mechanism_name(mechanism), number, visible=progress) as advance:
        outputs = _outputs(
            mechanism, data, exact.shape, number, stream(root, ERRORS), lambda one: one[:, entries], advance, n_jobs
        )
    estimate = residual_loss(outputs - exact_entries, rng=stream(root, RESAMPLES), **options)
    return replace(estimate, settings=estimate.settings | {"entries": exact.size, "seed": entropy_of(root)})


def estimate_direct(
    mechanism: Mechanism,
    pair: NeighborPair,
    *,
    runs: int = 20_000,
    rng: Seed = None,
    n_jobs: int = 1,
    progress: bool | None = None,
    **options: Any,
) -> LossEstimate:
    """Run a mechanism on two databases; estimate by `direct_loss` the loss of the entry that the pair changes most."""
    # By default the errors `at` are 17 whole numbers around their median, 8 people or two standard deviations out.
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
    with progress_bar(mechanism_name(mechanism), number, visible=progress) as advance:
        x, y = (
            _outputs(mechanism, data, exact.shape, size, stream(root, side), lambda one: one[:, entry], advance, n_jobs)
            for data, size, side in zip((pair.x, pair.y), halves(number), (ON_X, ON_Y), strict=True)
        )
    center = float(exact.reshape(-1)[entry])
    if "at" not in options:
        options["at"] = _thresholds(x - center)
    estimate = direct_loss(x, y, center, distance=pair.distance, **options)
    place = [int(index) for index in np.unravel_index(entry, exact.shape)]
    entries = {"entry": place, "entries_changed": int(np.count_nonzero(change)), "seed": entropy_of(root)}
    return replace(estimate, settings=estimate.settings | entries)


def _thresholds(errors: Floats) -> Floats:
    """Return whole errors around the median that cover most noise; thresholds fitted to counts would bias these."""
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
    """Return the kept numbers of each output as rows; exceptions are not caught."""
    caller = Caller(mechanism, data, Kind(shape))
    each = caller.block_runs
    blocks = -(-runs // each)

    def block(number: int) -> Floats:
        size = min(each, runs - number * each)
        batch = as_numbers(caller.batch(size, np.random.default_rng(stream(seed, number))))
        if batch is None or batch.shape != (size, *shape):
            what = "words or rows of several lengths" if batch is None else f"{batch.shape[1:]} in {len(batch)} runs"
            raise ValueError(f"outputs must be numbers of the shape of the exact one, {shape}, got {what}")
        return keep(batch.reshape(size, -1).astype(np.float64))

    by_block: dict[int, Floats] = {}
    for number, rows in caller.workers(block, n_jobs, blocks).finished(range(blocks)):
        by_block[number] = rows
        advance(len(rows))
    return np.concatenate([by_block[number] for number in range(blocks)])


def estimate_loss(
    mechanism: Mechanism, pair: NeighborPair, *, method: str, data: Any = None, rng: Seed = None, **options: Any
) -> LossEstimate:
    """Estimate the loss of a mechanism; if it has `components`, the loss of each, and their sum as `value`."""
    # `components()` are independent mechanisms with outputs side by side, each with one law of noise. `data` is the
    # database on which errors are made, by default the first of the pair. `options` go to `estimate_direct` or
    # `estimate_residuals`. Pure losses of independent components add up, and so does rho (Bun and Steinke, 2016, lemma
    # 1.7). An answer that changes by ``c`` loses ``c`` times the pure loss of an answer that changes by 1, and ``c**2``
    # times its rho. Intervals add up as those of independent estimates do.
    errors = pair.x if data is None else data
    if not callable(getattr(mechanism, "components", None)):
        if method == "direct":
            return estimate_direct(mechanism, pair, rng=rng, **options)
        return estimate_residuals(mechanism, errors, method=method, rng=rng, **options)
    if "change" in options:
        raise ValueError("change is for one law of noise: how much each component changes is read from the pair")
    root = seed_sequence(rng)
    places, parts = [], []
    for number, component in enumerate(mechanism.components()):  # type: ignore[attr-defined]
        change = np.abs(exact_output(component, pair.y) - exact_output(component, pair.x))
        if not change.any():
            continue
        own = stream(root, number)
        if method == "direct":
            estimate = estimate_direct(component, pair, rng=own, **options)
            weight = change.sum() / change.max()
        else:
            estimate = estimate_residuals(component, errors, method=method, rng=own, **options)
            per_person = change / pair.distance
            weight = (per_person**2 if method == "slope" else per_person).sum()
        places.append(number)
        parts.append((estimate, float(weight)))
    if not parts:
        raise ValueError("the two databases must differ in an exact output, got none that changes")
    return _added(places, parts, entropy_of(root))


def _added(places: list[int], parts: list[tuple[LossEstimate, float]], seed: int) -> LossEstimate:
    first, _ = parts[0]
    loss, low, high = np.array([[part.value * weight, *np.multiply(part.interval, weight)] for part, weight in parts]).T
    value = float(loss.sum())
    below, above = (math.hypot(*np.abs(end - loss)) for end in (low, high))
    return LossEstimate(
        method=first.method,
        at=np.array(places, float),
        loss=loss,
        low=low,
        high=high,
        value=value,
        interval=(max(0.0, value - below), value + above),
        confidence=first.confidence,
        assumptions=(*first.assumptions, "independent components, each of one law: what they lose adds up"),
        size=first.size,
        areas=sum(estimate.areas for estimate, _ in parts),
        settings={"components": len(parts), "weights": [weight for _, weight in parts], "seed": seed},
        statistic="rho" if first.statistic == "rho" else "sum over components",
    )
