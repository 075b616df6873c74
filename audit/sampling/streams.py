"""Seeds, and the independent random streams of one audit."""

from __future__ import annotations

import enum

import numpy as np

from audit.io.files import DIGITS

__all__ = ["Phase", "Seed", "entropy_of", "halves", "seed_sequence", "stream"]

Seed = int | np.random.Generator | np.random.SeedSequence | None

POOL = np.random.SeedSequence(0).pool_size


class Phase(enum.IntEnum):
    """Numbers of the independent random streams of one audit."""

    SHAPE, PROBE, EXPLORE, LEARN, SELECT, COUNT, COINS, BET, WRITTEN, ANEW, COMPARE, LOTS = range(12)


def seed_sequence(rng: Seed) -> np.random.SeedSequence:
    """Return the root of all random streams of an audit: one number, which reproduces it. A generator is advanced."""
    if isinstance(rng, np.random.SeedSequence):
        if isinstance(rng.entropy, int) and not rng.spawn_key and rng.pool_size == POOL:
            return rng
        return np.random.SeedSequence(int.from_bytes(rng.generate_state(4).tobytes(), "little"))
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(int.from_bytes(rng.bytes(16), "little"))
    if rng is None:
        return np.random.SeedSequence()
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer):
        raise TypeError(f"rng must be None, an integer, a Generator or a SeedSequence, got {rng!r}")
    if rng < 0:
        raise ValueError(f"rng must not be a negative integer, got {rng}")
    if rng >= 10**DIGITS:
        raise ValueError(f"rng must have at most {DIGITS} digits, got one of {rng.bit_length()} bits")
    return np.random.SeedSequence(int(rng))


def entropy_of(root: np.random.SeedSequence) -> int:
    """Return the number that makes `root` again; `seed_sequence` guarantees that there is one."""
    assert isinstance(root.entropy, int)
    return root.entropy


def stream(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Return the stream of a key below `root`: always the same one, whatever else was spawned."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key), pool_size=root.pool_size)


def halves(runs: int) -> tuple[int, int]:
    """Divide runs equally: as many on `x` as on `y`, or one more."""
    return runs - runs // 2, runs // 2
