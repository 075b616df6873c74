"""Drawing of noise in chunks, from a seeded generator or the operating system; a watcher may replace draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from operator import index
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise.secure import block, count, drawn_by

__all__ = [
    "CHUNK",
    "Floats",
    "Integers",
    "Law",
    "Rng",
    "Size",
    "Table",
    "Watcher",
    "add_noise",
    "draw",
    "draws_at_a_time",
    "signs",
    "watched",
]

Rng = np.random.Generator | Literal["secure"]
Size = int | tuple[int, ...]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Drawn = TypeVar("Drawn", np.int64, np.float64)
Sensitivity = float | tuple[float, float] | None

CHUNK = 1 << 17  # draws at a time: 1 MiB a buffer
LEAST = 1 << 12  # smallest block of secure draws: it takes about four times as long as its test and transfer
ENTRIES = 1 << 16  # number of entries of a `Table`
LEFT = np.iinfo(np.int16).min  # table entry that means "draw from the remainder"


class Law(Protocol):
    """A law of noise: one of the four laws, or a law derived from them."""

    def sample(self, size: tuple[int, ...], rng: Rng, /) -> NDArray[Any]:
        """Draw independent values, in that shape."""
        ...


class Watcher(Protocol):
    """A function that `watched` calls for every draw: it can call `draw` and return its result, or return another one.

    `value` are the values to which noise is added, None for a draw alone. `law`, `shape` and `rng` describe the draw.
    """

    def __call__(
        self,
        draw: Callable[[], NDArray[Any]],
        *,
        law: Law,
        shape: tuple[int, ...],
        rng: Rng,
        value: NDArray[Any] | None = None,
        query: str = "",
        sensitivity: Sensitivity = None,
    ) -> NDArray[Any]:
        """Return the result of the draw, of the given shape."""
        ...


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def add_noise(
    exact: ArrayLike,
    law: Law,
    size: int | None,
    rng: Rng,
    *,
    query: str = "",
    sensitivity: Sensitivity = None,
    n_jobs: int = 1,
) -> NDArray[Any]:
    """Add independent noise to every entry, `size` times; mechanisms release exact values only through this function.

    Parameters
    ----------
    size : int or None
        Number of independent runs; None makes one run, without an axis for runs.
    query : str
        Name of the values, for a watcher.
    sensitivity : float or (float, float), optional
        Largest change of the values between neighbors that the mechanism declares: one number for both L1 and L2, or
        one for each. The noise does not depend on it.
    n_jobs : int
        Number of processes that draw blocks of secure noise, as in joblib. They get no values and draw no seeded noise.

    Returns
    -------
    ndarray, shape (size, *exact.shape)
        The values plus noise of that shape from ``law.sample``.
    """
    value = np.asarray(exact)
    shape = value.shape if size is None else (size, *value.shape)

    def draw() -> NDArray[Any]:
        noise = _sampled(law, shape, rng, n_jobs)
        in_place = np.result_type(noise, value) == noise.dtype and noise.ndim > 0
        return np.add(noise, value, out=noise) if in_place else np.asarray(noise + value)

    watcher = _watcher.get()
    if watcher is None:
        return draw()
    return watcher(draw, law=law, shape=shape, rng=rng, value=value, query=query, sensitivity=sensitivity)


def _sampled(law: Law, shape: tuple[int, ...], rng: Rng, n_jobs: int) -> NDArray[Any]:
    """Draw from a law; workers draw large secure samples in blocks."""
    size = math.prod(shape)
    if size >= 2 * LEAST and isinstance(rng, str) and rng == "secure":
        from audit.io.workers import Workers  # imported here: simulations do not need it

        workers = Workers(partial(block, law), n_jobs)
        if workers.number > 1:
            noise, rounds = np.empty(shape, np.int64), -(-size // (workers.number * CHUNK))
            blocks = np.array_split(noise.reshape(-1), min(size // LEAST, rounds * workers.number))
            for place, values in drawn_by(workers.finished, [part.size for part in blocks]):
                np.copyto(blocks[place], values)
            return noise
    return law.sample(shape, rng)


def draws_at_a_time(rng: Rng, n_jobs: int) -> int:
    """Return the number of draws at a time: `CHUNK` for a seeded generator, a few secure blocks a worker."""
    from joblib import effective_n_jobs  # imported here, as above

    workers = 1 if isinstance(rng, np.random.Generator) else int(effective_n_jobs(n_jobs))
    return CHUNK if workers == 1 else 4 * CHUNK * workers


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call a watcher in place of every draw in this context, except draws in threads that a mechanism starts."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def draw(
    law: Law,
    dtype: type[Drawn],
    size: Size,
    rng: Rng,
    seeded: Callable[[np.random.Generator], Callable[[NDArray[Drawn]], None]],
    *,
    exact: Callable[[], Callable[[NDArray[Drawn]], None]] | None = None,
) -> NDArray[Drawn]:
    """Draw from a law, through the watcher if there is one."""
    shape, watcher = _shape(size), _watcher.get()

    def drawn() -> NDArray[Drawn]:
        out = np.empty(shape, dtype)
        if isinstance(rng, np.random.Generator):
            fill = seeded(rng)
            count(out.size, law, None)
        elif not (isinstance(rng, str) and rng == "secure"):
            raise TypeError(f'rng must be a numpy Generator or "secure", got {rng!r}')
        elif exact is None:
            words = "no exact sampler exists for a continuous one in floating point"
            raise ValueError(f'rng="secure" needs an integer law: {words}')
        else:
            fill = exact()
            count(out.size, law, fill)
        flat = out.reshape(-1)
        for start in range(0, flat.size, CHUNK):
            fill(flat[start : start + CHUNK])
        return out

    return drawn() if watcher is None else watcher(drawn, law=law, shape=shape, rng=rng)


def _shape(size: Any) -> tuple[int, ...]:
    sides = size if isinstance(size, tuple) else (size,)
    if any(isinstance(side, bool) or not isinstance(side, (int, np.integer)) for side in sides):
        raise TypeError(f"size must be an integer or a tuple of integers, got {size!r}")
    if any(side < 0 for side in sides):
        raise ValueError(f"size must not be negative, got {size!r}")
    return tuple(index(side) for side in sides)


def signs(rng: np.random.Generator, size: int) -> NDArray[np.int8]:
    """Draw fair signs."""
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), np.uint8), count=size).view(np.int8)
    return 1 - 2 * bits


class Table:
    """The table of a symmetric law on the integers, given the probabilities of 0, 1, 2, ...; larger values never occur.

    Sixteen random bits choose one of 65,536 equally likely entries. An entry is a value or "draw from the remainder". A
    value of probability p has floor(65536 p) entries. The remainder is the law of the fractional parts; it has all
    other entries, and is drawn by inversion in float64. Source: Marsaglia, Tsang and Wang, "Fast Generation of Discrete
    Random Variables", 2004, who also use tables for further bits.
    """

    def __init__(self, probabilities: Floats) -> None:
        k = np.arange(probabilities.size)[::-1]  # least likely first: small sums lose less to rounding
        self.values = np.column_stack([k, -k]).reshape(-1)[:-1]  # 0 only once
        chances = ENTRIES * probabilities[np.abs(self.values)]
        integers = np.floor(chances).astype(np.int64)
        self.entries = np.full(ENTRIES, LEFT, np.int16)  # values beyond 3,500, too unlikely for an entry, need no int16
        self.entries[: integers.sum()] = np.repeat(self.values, integers)
        self.left = (chances - integers).cumsum()

    def fill(self, rng: np.random.Generator, out: Integers) -> None:
        """Overwrite an array with independent draws."""
        bits = rng.integers(0, 1 << 64, -(-out.size // 4), np.uint64).view(np.uint16)[: out.size]
        draws = np.empty(out.size, np.int16)
        np.take(self.entries, bits, out=draws, mode="clip")  # clip is fast, and never needed
        out[:] = draws
        others = np.flatnonzero(draws == LEFT)
        out[others] = self.values[self.left.searchsorted(rng.random(others.size) * self.left[-1], side="right")]
