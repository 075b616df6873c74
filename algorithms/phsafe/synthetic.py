"""Synthetic households of any number, in the production layout.

They are drawn from rough shares of our own, stated below, and only look like the United States: their states have the
sizes of the 2020 census.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from algorithms.phsafe.population import (
    DIVISION,
    HISPANIC,
    NOT_HISPANIC,
    POPULATION,
    VACANT,
    Households,
    Ints,
    People,
    assembled,
    draw,
    paths_in,
    scrambled,
    write_parquet,
)
from algorithms.phsafe.schema import STATES
from algorithms.tables.frames import Frame
from audit.io.temporary import STAGED, temporary_folder

__all__ = ["LARGEST_SYNTHETIC", "synthetic_households", "write_synthetic_households"]

LARGEST_SYNTHETIC = 700_000_000
"""Most synthetic people: with vacant units, more might need more MAFIDs than there are."""

CHUNK = 500_000  # synthetic people drawn, and written, at a time
LARGEST_FIRST = sorted(STATES, key=lambda state: -POPULATION[DIVISION[state]][state])
HISPANIC_SHARE = 0.187

# Synthetic households. Sizes 1 to 16; who the second person is, if there is one: nobody's partner, or 21 to 24.
SIZES = np.array([28, 34.5, 15, 13, 5.8, 2.2, 0.8, 0.35, 0.15, 0.08, 0.05, 0.03, 0.02, 0.01, 0.006, 0.004])
COUPLES = {0: 0.38, 21: 0.52, 22: 0.08, 23: 0.012, 24: 0.008}
# Anybody else: share, fewest and most years older than the householder, least age.
OTHERS = {
    20: (0, 0, 0, 15),
    **dict.fromkeys((21, 22, 23, 24), (0, -8, 8, 18)),
    25: (0.62, -42, -18, 0),
    26: (0.02, -42, -20, 0),
    27: (0.03, -35, -12, 0),
    28: (0.04, -12, 12, 0),
    29: (0.04, 18, 38, 33),
    30: (0.07, -65, -38, 0),
    31: (0.01, 15, 38, 33),
    32: (0.01, -35, -12, 18),
    33: (0.05, -40, 25, 0),
    34: (0.04, -15, 15, 15),
    35: (0.01, -50, -15, 0),
    36: (0.06, -30, 25, 0),
}
GROUP_QUARTERS = {8: 0.6, 40: 0.25, 150: 0.12, 900: 0.03}  # sizes
IN_GROUP_QUARTERS = 0.025  # of the people
OF_ANOTHER_RACE = 0.06  # of the members, chance of a race and ethnicity of their own


def synthetic_households(
    people: int, rng: int | np.random.Generator | np.random.SeedSequence | None, states: int = 51, *, sex: bool = False
) -> Households:
    """Draw so many people in valid households, in states of the sizes of the United States', the largest first.

    Households have 1 to 16 members; one unit is vacant for ten of them. With `sex`, persons get a last column QSEX. A
    million people take a fifth of a gigabyte: `write_synthetic_households` draws the same ones, half a million at a
    time.
    """
    chunks = list(_chunks(people, rng, states, sex))
    parts = zip(*((chunk.persons, chunk.units, chunk.geo) for chunk in chunks), strict=True)
    return Households(*(Frame.concatenate(frames) for frames in parts))


def write_synthetic_households(
    folder: str | os.PathLike[str],
    people: int,
    rng: int | np.random.Generator | np.random.SeedSequence | None,
    *,
    states: int = 51,
    sex: bool = False,
) -> tuple[Path, Path, Path]:
    """Write the households of `synthetic_households` as Parquet files, without holding them all."""
    chunks = _chunks(people, rng, states, sex)
    paths = paths_in(folder, "parquet")
    with temporary_folder(STAGED, Path(folder)) as parts:
        written = [chunk.write(parts / f"{place}", "parquet") for place, chunk in enumerate(chunks)]
        for path, files in zip(paths, zip(*written, strict=True), strict=True):
            write_parquet([str(file) for file in files], path)
    return paths


def _chunks(
    people: int, rng: int | np.random.Generator | np.random.SeedSequence | None, states: int, sex: bool
) -> Iterator[Households]:
    """Check the numbers, and return the synthetic households in parts that have no MAFID in common."""
    for name, value in (("people", people), ("states", states)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} must be an integer, got {value!r}")
    if not 1 <= states <= len(STATES):
        raise ValueError(f"states must be between 1 and {len(STATES)}, got {states}")
    if not 20 * states <= people <= LARGEST_SYNTHETIC:  # households of 16 at most: each state can have one
        raise ValueError(f"people must be between {20 * states} and {LARGEST_SYNTHETIC}, got {people}")
    return _drawn(int(people), np.random.default_rng(rng), int(states), sex)


def _drawn(people: int, rng: np.random.Generator, states: int, sex: bool) -> Iterator[Households]:
    codes = np.array(LARGEST_FIRST[:states], dtype=object)
    shares = np.array([POPULATION[DIVISION[state]][state] for state in codes])
    mafids, units = scrambled(rng), 0
    for start in range(0, people, CHUNK):
        size = min(CHUNK, people - start)
        institutional = int(IN_GROUP_QUARTERS * size)
        homes = _sizes(size - institutional, np.arange(1, SIZES.size + 1), SIZES, rng)
        others = _sizes(institutional, np.array(list(GROUP_QUARTERS)), np.array(list(GROUP_QUARTERS.values())), rng)
        kind = np.repeat([2, 4, 2], [homes.size, others.size, int(VACANT * homes.size)])
        place = draw(shares, kind.size, rng)
        if start == 0:
            place[:states] = np.arange(states)  # a household in each
        members = _members(homes, others, rng)
        yield assembled(members, kind, codes[place], mafids(units + np.arange(kind.size)), rng, sex=sex)
        units += kind.size


def _sizes(people: int, sizes: Ints, shares: NDArray[np.float64], rng: np.random.Generator) -> Ints:
    """Draw sizes of units until they hold exactly so many people; the last is cut to fit."""
    result = np.zeros(0, dtype=np.int64)
    while (total := int(result.sum())) < people:
        count = int((people - total) * shares.sum() / (sizes @ shares)) + 1
        result = np.append(result, sizes[draw(shares, count, rng)])
    filled = np.minimum(np.cumsum(result), people)
    return np.diff(filled[: np.searchsorted(filled, people) + 1], prepend=0)


def _members(homes: Ints, others: Ints, rng: np.random.Generator) -> People:
    """Draw the persons of households and of group quarters of the given sizes."""
    people, housed = int(homes.sum() + others.sum()), int(homes.sum())
    unit = np.repeat(np.arange(homes.size + others.size), np.append(homes, others))
    first = np.cumsum(homes) - homes
    table = np.array([OTHERS.get(code, (0, 0, 0, 0)) for code in range(39)])
    low, high, least = table[:, 1:].astype(np.int64).T

    relship = draw(table[:, 0], people, rng)
    couple = np.array(list(COUPLES))[draw(np.array(list(COUPLES.values())), homes.size, rng)]
    coupled = (homes > 1) & (couple > 0)
    relship[first] = 20
    relship[first[coupled] + 1] = couple[coupled]
    relship[housed:] = 37 + (rng.random(people - housed) < 0.5)

    sex = 1 + (rng.random(people) < 0.51)
    same = couple[coupled] > 22
    sex[first[coupled] + 1] = np.where(same, sex[first[coupled]], 3 - sex[first[coupled]])

    # Ages are those of the householder, shifted; larger households have younger ones.
    youth = np.where(homes > 2, 0.55, 1.0)
    head_age = 15 + (80 * youth * (rng.random(homes.size) + rng.random(homes.size)) / 2).astype(np.int64)
    age = low[relship] + (rng.random(people) * (high - low + 1)[relship]).astype(np.int64)
    age[:housed] += head_age[unit[:housed]]
    age = np.clip(age, least[relship], 115)
    age[housed:] = 100 * rng.random(people - housed)

    # Race and ethnicity are those of the householder, most often.
    chooser = np.arange(people)
    alike = rng.random(housed) >= OF_ANOTHER_RACE
    chooser[:housed][alike] = first[unit[:housed][alike]]
    both = np.concatenate([(1 - HISPANIC_SHARE) * NOT_HISPANIC, HISPANIC_SHARE * HISPANIC])
    origin = draw(both, people, rng)[chooser]
    return People(unit, relship, age, sex, 1 + origin // 63, 1 + origin % 63)
