"""The attack on digits: losses that show in the remainders and fractions of numbers, not in how large they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import Explored, explore, index_of, is_number, largest
from audit.attacks.protocol import Exploration
from audit.attacks.statistics import of_entry
from audit.events import Statistic

__all__ = ["candidates", "comb", "parity", "readings", "search_combs", "search_readings", "search_sums"]

Floats = NDArray[np.float64]
IntArray = NDArray[np.int64]
Read = Callable[[NDArray[Any]], IntArray]

MODULI = range(2, 11)
VALUES = 64  # most values of a feature; if an entry spans fewer, its single values are as good
MOST = 3  # statistics of each kind
CLEARLY = 3.0  # standard deviations beyond chance from which a statistic is tried
GLIMPSE = 2**17  # numbers of either database that are searched
SUMMED, TRIPLED = 256, 64  # most entries of which sums of two, and of three, are searched
PARITIES = 1024  # runs of either database that choose the sums
COMBED = 64  # entries that are searched for combs, which are periodic laws
BINS = 2**14  # bins of a histogram whose spectrum is searched for a comb, which may have a third as many teeth
FINER = 33  # frequencies tried around the best of those
SLOWEST = 8  # fewest waves in the span of an entry; thresholds find slower ones
FEWEST = 50  # fewest numbers on either database for a comb
NARROWEST = 1e-300  # least span of numbers for which frequencies are finite


def candidates(exploration: Exploration) -> Iterator[Statistic]:
    """Yield statistics of the digits that clearly differ in a few runs."""
    explored = explore(exploration)
    yield from search_readings(explored, exploration.words)
    yield from search_combs(explored, exploration.words)
    yield from search_sums(explored)
    yield from search_zeros(explored)


def readings() -> dict[str, Read]:
    """Return the features of the whole parts of numbers by name; each gives a small whole number."""

    def remainder(modulus: int) -> Read:
        return lambda values: np.mod(_integers(values), modulus).astype(np.int64)

    def zeros(base: int) -> Read:
        return lambda values: _zeros(values, base)

    remainders = {f"remainder by {modulus} of": remainder(modulus) for modulus in MODULI}
    return remainders | {f"trailing zeros to base {base} of": zeros(base) for base in (2, 10)}


def search_readings(explored: Explored, words: Collection[int] = ()) -> Iterator[Statistic]:
    """Yield the features of single entries that clearly differ; codes of words have no digits."""
    entries = np.setdiff1d(np.flatnonzero(_wide(explored)), list(words))
    if entries.size == 0:
        return
    x, y = (side[:, entries] for side in explored.first(GLIMPSE))
    names, reads = zip(*readings().items(), strict=True)
    differing = np.array([_differing(*(_counts(reading, side) for side in (x, y))) for reading in reads])
    for place in largest(differing.reshape(-1), MOST):
        number, column = np.unravel_index(place, differing.shape)
        if differing[number, column] >= CLEARLY:
            yield _statistic_of(names[number], reads[number], index_of(int(entries[column]), explored.shape))


def search_combs(explored: Explored, words: Collection[int] = ()) -> Iterator[Statistic]:
    """Yield the cosines of single entries whose means differ most, if they clearly differ."""
    x, y = explored.first(GLIMPSE)
    entries = np.setdiff1d(np.flatnonzero(_wide(explored, fractions=True)), list(words))[:COMBED]
    combs = [(*comb(x[:, entry], y[:, entry]), entry) for entry in entries]
    for by, frequency, phase, entry in sorted(combs, reverse=True)[:MOST]:
        if by >= CLEARLY:
            yield _cosine(index_of(int(entry), explored.shape), frequency, phase)


def comb(x: NDArray[Any], y: NDArray[Any]) -> tuple[float, float, float]:
    """Return the largest difference of the Fourier transforms, in standard errors above chance; frequency and phase."""
    sides = [side[is_number(side)].astype(np.float64) for side in (x, y)]
    if min(side.size for side in sides) < FEWEST:
        return 0.0, 1.0, 0.0
    low, high = np.quantile(np.concatenate(sides), [0.01, 0.99])
    span = float(high - low)
    if not NARROWEST < span < np.inf:
        return 0.0, 1.0, 0.0
    inner = [side[(side >= low) & (side <= high)] - low for side in sides]
    on_x, on_y = (
        np.bincount(np.minimum((part * (BINS / span)).astype(np.intp), BINS - 1), minlength=BINS) / side.size
        for part, side in zip(inner, sides, strict=True)
    )
    waves = np.abs(np.fft.rfft(on_y - on_x, 2 * BINS))  # in steps of half a wave in the span
    waves[: 2 * SLOWEST] = 0.0
    waves[2 * BINS // 3 :] = 0.0
    frequencies = (float(waves.argmax()) + np.linspace(-1, 1, FINER)) / (2 * span)
    transforms = [_waves(part, frequencies) / side.size for part, side in zip(inner, sides, strict=True)]
    differences = transforms[1] - transforms[0]
    best = int(np.abs(differences).argmax())
    # Under equal laws the squared difference over this variance is exponential; the largest of BINS is near log(BINS).
    power = float(np.abs(differences[best]) ** 2) / (1 / sides[0].size + 1 / sides[1].size)
    phase = float(np.angle(differences[best]) + 2 * np.pi * frequencies[best] * low)
    return float(np.sqrt(2 * power) - np.sqrt(2 * np.log(BINS))), float(frequencies[best]), phase


def _waves(numbers: Floats, frequencies: Floats) -> NDArray[np.complex128]:
    """Return Fourier sums over numbers at equally spaced frequencies: each wave is the last one times one rotation."""
    wave, turn = np.exp(2j * np.pi * np.outer(frequencies[[0, 1]] - [0.0, frequencies[0]], numbers))
    sums = np.empty(len(frequencies), np.complex128)
    for place in range(len(frequencies)):
        sums[place] = wave.sum()
        wave *= turn
    return sums


def search_zeros(explored: Explored) -> Iterator[Statistic]:
    """Yield, if any zero is negative, signs of zeros of entries that differ most, and the number of negative zeros."""
    x, y = (_signs(side) for side in explored.first(GLIMPSE))
    if not ((x < 0).any() or (y < 0).any()):
        return
    for entry in largest(np.abs((y < 0).mean(axis=0) - (x < 0).mean(axis=0)), MOST):
        yield of_entry("sign of zero of {}", index_of(int(entry), explored.shape), _signs)
    if x.shape[1] > 1:
        yield Statistic(
            "negative zeros of output", lambda outputs: (_signs(outputs.reshape(len(outputs), -1)) < 0).sum(axis=1)
        )


def _signs(values: NDArray[Any]) -> NDArray[np.int8]:
    """Return the signs of zeros, and 0 for all other values."""
    return np.where(values == 0, 1 - 2 * np.signbit(values).astype(np.int8), np.int8(0))


def search_sums(explored: Explored) -> Iterator[Statistic]:
    """Yield the parities of sums of two, three or all entries whose centered products clearly differ."""
    entries = explored.center.size
    if entries < 2:
        return
    signs = []
    for side in explored.held:
        odd = np.mod(_integers(side[:PARITIES, :SUMMED]), 2).astype(np.float32)
        signs.append(odd - odd.mean(axis=0))
    error = 4 / np.sqrt(1 / len(signs[0]) + 1 / len(signs[1]))  # 1 / standard error of a product, if half are odd
    differing: list[tuple[float, tuple[int, ...]]] = []

    def look(parts: list[NDArray[np.float32]], chosen: tuple[int, ...] = ()) -> None:
        """Add to `differing` the two entries after the chosen ones whose product with these differs most."""
        after = chosen[-1] + 1 if chosen else 0
        on_x, on_y = (part[:, after:].T @ side[:, after:] / len(side) for part, side in zip(parts, signs, strict=True))
        by = np.triu(np.abs(on_y - on_x), 1)
        one, other = np.unravel_index(by.argmax(), by.shape)
        differing.append(
            (float(by[one, other]) * error * 2 ** len(chosen), (*chosen, int(one) + after, int(other) + after))
        )

    look(signs)
    if entries <= TRIPLED:
        for entry in range(entries - 2):
            look([side * side[:, [entry]] for side in signs], (entry,))
    if 3 < entries <= SUMMED:
        on_x, on_y = (np.prod(2 * side, axis=1).mean() for side in signs)
        differing.append((float(abs(on_y - on_x)) * error / 4, tuple(range(entries))))
    chance = np.sqrt(6 * np.log(entries))  # about the largest of all sums under equal laws
    for by, chosen in sorted(differing, reverse=True)[:MOST]:
        if by >= chance + CLEARLY:
            yield parity(chosen, explored.shape)


def parity(entries: tuple[int, ...], shape: tuple[int, ...]) -> Statistic:
    """Return the statistic of the parity of the sum of the entries' whole parts."""
    names = ", ".join(f"[{', '.join(map(str, index_of(entry, shape)))}]" for entry in entries[:3])
    more = f", ... ({len(entries)} entries)" if len(entries) > 3 else ""
    columns = list(entries)

    def score(outputs: NDArray[Any]) -> Floats:
        odd = np.mod(_integers(outputs.reshape(len(outputs), -1)[:, columns]), 2)
        return np.asarray(np.mod(odd.sum(axis=1), 2), np.float64)

    return Statistic(f"parity of the sum of output{names}{more}", score)


def _statistic_of(name: str, reading: Read, index: tuple[int, ...]) -> Statistic:
    """Return the statistic of a feature of one entry, -1 for values that are not numbers."""
    return of_entry(f"{name} {{}}", index, lambda values: np.where(is_number(values), reading(values), -1))


def _cosine(index: tuple[int, ...], frequency: float, phase: float) -> Statistic:
    """Return the statistic of a cosine of one entry, 0 for values that are not numbers."""

    def score(values: NDArray[Any]) -> Floats:
        numbers = is_number(values)
        turns = np.where(numbers, values, 0.0).astype(np.float64) * frequency
        return np.where(numbers, np.cos(2 * np.pi * (turns % 1.0) - phase), 0.0)

    return of_entry(f"cosine of {{}} with period {1 / frequency:.10g}", index, score)


def _wide(explored: Explored, *, fractions: bool = False) -> NDArray[np.bool_]:
    """Tell which entries span more whole numbers than a feature has values, or hold fractions if those count too."""
    both = [np.where(is_number(side), side, 0) for side in explored.first(GLIMPSE)]
    low, high = np.quantile(np.concatenate(both), [0.05, 0.95], axis=0, method="nearest")
    wide = np.asarray(high.astype(np.float64) - low > VALUES)
    if fractions:
        for side in both:
            if side.dtype.kind == "f":
                wide |= (np.floor(side) != side).any(axis=0)
    return wide


def _counts(reading: Read, values: NDArray[Any]) -> IntArray:
    """Return how often each value of a feature occurs, shape (entries, VALUES)."""
    entries = values.shape[1]
    flat = (reading(values) + VALUES * np.arange(entries))[is_number(values)]
    return np.bincount(flat, minlength=VALUES * entries).reshape(entries, VALUES)


def _differing(x: IntArray, y: IntArray) -> Floats:
    """Return how clearly rows of counts differ, shape (entries,): chi-squared as a normal deviate (Wilson-Hilferty)."""
    n, m = np.maximum(x.sum(axis=1, keepdims=True), 1), np.maximum(y.sum(axis=1, keepdims=True), 1)
    both = x + y
    expected = both * (n / (n + m))
    variance = np.where(both > 0, expected * (m / (n + m)), 1.0)
    squares = ((x - expected) ** 2 / variance).sum(axis=1)
    freedom = np.maximum((both > 0).sum(axis=1) - 1, 1)
    cube = 2 / (9 * freedom)
    return np.asarray((np.cbrt(squares / freedom) - (1 - cube)) / np.sqrt(cube))


def _integers(values: NDArray[Any]) -> NDArray[Any]:
    """Return the exact whole part of values; 0 for values that are not numbers."""
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    return values if values.dtype.kind in "iu" else np.floor(np.where(is_number(values), values, 0.0))


def _zeros(values: NDArray[Any], base: int) -> IntArray:
    """Return how often each whole part can be divided by a base; for a whole part of 0, return 0."""
    quotient, zeros = _integers(values), np.zeros(values.shape, np.int64)
    divides = quotient != 0
    for _ in range(VALUES - 1):
        divides &= np.mod(quotient, base) == 0
        if not divides.any():
            break
        quotient, zeros = np.where(divides, quotient // base, quotient), zeros + divides
    return zeros
