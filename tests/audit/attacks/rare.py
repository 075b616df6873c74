"""Outcomes that only one of two databases gives, so seldom: beside a count whose noise keeps its promise of 1."""

import numpy as np

from audit.neighbors import NeighborPair

PAIR = NeighborPair.add_people([0, 5], cell=0)


def beside(values, data, rng):
    """Return values beside the noisy count, shape (runs, 2)."""
    return np.round(np.column_stack([values, data[0] + rng.laplace(scale=1.25, size=len(values))]), 6)


def always(value):
    """One value, in place of what is noise else."""
    return lambda noise, hit, rng: np.where(hit, value, noise)


def interval(noise, hit, rng):
    return np.where(hit, 0.2 + 0.05 * rng.random(len(noise)), without_gap(noise))


def fraction(noise, hit, rng):
    return np.where(hit, np.floor(noise) + 0.5 + 1e-3 * rng.random(len(noise)), np.round(noise * 4) / 4)


def even(noise, hit, rng):
    return np.where(hit, 31, 2 * np.round(30 * noise))


def without_gap(noise):
    return np.where((noise > 0.2) & (noise < 0.25), noise + 0.05, noise)


def number(change, rate):
    def mechanism(data, size, rng):
        hit = rng.random(size) < rate * data[0]
        return beside(change(rng.laplace(scale=3.0, size=size), hit, rng), data, rng)

    return mechanism


def of_many(entries, where, rate):
    """Noise in many entries, of which one, at a place or anywhere, is in a gap of all others."""

    def mechanism(data, size, rng):
        noise = without_gap(rng.laplace(scale=3.0, size=(size, entries)))
        hits = np.flatnonzero(rng.random(size) < rate * data[0])
        place = rng.integers(entries, size=hits.size) if where is None else where
        noise[hits, place] = 0.2 + 0.05 * rng.random(hits.size)
        return np.round(noise, 6)

    return mechanism


def word(new, rate):
    def mechanism(data, size, rng):
        hit, noise = rng.random(size) < rate * data[0], np.round(rng.laplace(scale=3.0, size=size)).astype(int)
        counts = beside(noise, data, rng)[:, 1].tolist()
        words = [new(rng) if one else f"a{value}" for one, value in zip(hit, noise, strict=True)]
        return list(zip(words, counts, strict=True))

    return mechanism


def failing(rate):
    def mechanism(data, size, rng):
        if (rng.random(size) < rate * data[0]).any():
            raise RuntimeError
        return beside(rng.laplace(scale=3.0, size=size), data, rng)

    return mechanism


SAME = {
    "far number": lambda rate: number(always(999.0), rate),
    "number inside": lambda rate: number(always(0.123456), rate),
    "odd number among many": lambda rate: number(even, rate),
    "word": lambda rate: word(lambda rng: "z", rate),
    "failure": failing,
}
NEW = {
    "interval inside": lambda rate: number(interval, rate),
    "fraction": lambda rate: number(fraction, rate),
    "gap in one of 20 entries": lambda rate: of_many(20, 7, rate),
    "gap in any of 100 entries": lambda rate: of_many(100, None, rate),
    "new word": lambda rate: word(lambda rng: f"z{rng.integers(10**9)}", rate),
}
