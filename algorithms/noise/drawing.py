"""How noise is drawn: in chunks, from a seeded generator or the operating system, through a watcher if there is one."""

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
LEAST = 1 << 12  # secure draws of a block: 40 milliseconds, four times its test and what it takes to be sent
ENTRIES = 1 << 16  # of a `Table`
LEFT = np.iinfo(np.int16).min  # its entry that is no value


class Law(Protocol):
    """A law of noise: one of the four laws, or one made of them."""

    def sample(self, size: tuple[int, ...], rng: Rng, /) -> NDArray[Any]:
        """Draw independent values, in that shape."""
        ...


class Watcher(Protocol):
    """A function that `watched` calls for every draw: it calls `draw`, and returns that result or another answer.

    Noise is added to `value`, which is None for a draw by itself; `law`, `shape` and `rng` are those of the draw.
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
        """Return the answer, of that shape."""
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
    """Add independent noise to every entry, `size` times; exact values leave a mechanism through this function.

    Parameters
    ----------
    size : int or None
        Number of independent runs; None makes one run, without an axis for runs.
    query : str
        What the values are, for a watcher.
    sensitivity : float or (float, float), optional
        The most that one step between neighbors changes the values, as the mechanism declares it: one number for L1 and
        L2, or one for each. The noise does not depend on it.
    n_jobs : int
        Blocks of secure noise drawn at the same time, as in joblib. Workers get neither values nor seeded noise.

    Returns
    -------
    ndarray, shape (size, *exact.shape)
        The values plus noise that ``law.sample`` draws in that shape.
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
    """Draw from a law; many secure draws in blocks, each of them by a worker."""
    size = math.prod(shape)
    if size >= 2 * LEAST and isinstance(rng, str) and rng == "secure":
        from audit.io.workers import Workers  # not at the top: simulations need none of what it loads

        workers = Workers(partial(block, law), n_jobs)
        if workers.number > 1:
            noise, rounds = np.empty(shape, np.int64), -(-size // (workers.number * CHUNK))
            blocks = np.array_split(noise.reshape(-1), min(size // LEAST, rounds * workers.number))
            for place, values in drawn_by(workers.finished, [part.size for part in blocks]):
                np.copyto(blocks[place], values)
            return noise
    return law.sample(shape, rng)


def draws_at_a_time(rng: Rng, n_jobs: int) -> int:
    """Return how many draws are made at a time: `CHUNK` of a seeded generator, a few secure blocks a worker."""
    from joblib import effective_n_jobs  # not at the top, as above

    workers = 1 if isinstance(rng, np.random.Generator) else int(effective_n_jobs(n_jobs))
    return CHUNK if workers == 1 else 4 * CHUNK * workers


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call a watcher instead of every draw in this context, but for draws in threads that a mechanism starts."""
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
    """The table of a symmetric law on the integers, from the probabilities of 0, 1, 2, ...; the rest never occurs.

    Sixteen random bits choose one of 65,536 entries of equal probability, each a value or "draw from what is left". A
    value of probability p fills the whole part of 65536 p entries. What is left of the law has the remaining entries,
    and is inverted in float64. Source: Marsaglia, Tsang and Wang, "Fast Generation of Discrete Random Variables", 2004,
    who have tables for further bits, too.
    """

    def __init__(self, probabilities: Floats) -> None:
        k = np.arange(probabilities.size)[::-1]  # the least likely first, where sums in float64 are finest
        self.values = np.column_stack([k, -k]).reshape(-1)[:-1]  # 0 once
        chances = ENTRIES * probabilities[np.abs(self.values)]
        integers = np.floor(chances).astype(np.int64)
        self.entries = np.full(ENTRIES, LEFT, np.int16)  # no value beyond 3,500 has an entry of its own
        self.entries[: integers.sum()] = np.repeat(self.values, integers)
        self.left = (chances - integers).cumsum()

    def fill(self, rng: np.random.Generator, out: Integers) -> None:
        """Overwrite an array with independent draws."""
        bits = rng.integers(0, 1 << 64, -(-out.size // 4), np.uint64).view(np.uint16)[: out.size]
        draws = np.empty(out.size, np.int16)
        np.take(self.entries, bits, out=draws, mode="clip")  # no index is beyond the table, and numpy need not look
        out[:] = draws
        others = np.flatnonzero(draws == LEFT)
        out[others] = self.values[self.left.searchsorted(rng.random(others.size) * self.left[-1], side="right")]
