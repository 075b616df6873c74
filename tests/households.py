"""Valid households drawn at random in the production layout, where a test or a benchmark needs others or more."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np

from algorithms.phsafe.population import HISPANIC, NOT_HISPANIC, Households, People, assembled, draw, scrambled
from algorithms.phsafe.schema import FRAMES, STATES
from algorithms.release.frames import Frame

CHUNK = 500_000  # people drawn, and written, at a time
SIZES = np.array([28, 34.5, 15, 13, 5.8, 2.2, 0.8, 0.35, 0.15, 0.08, 0.05, 0.03])  # of households, from 1 on
MEMBERS = np.array([62, 2, 3, 4, 4, 7, 1, 1, 5, 4, 1, 6])  # by relationship, from 25 on
COUPLES = np.array([84, 13, 2, 1])  # by relationship, from 21 on
YOUNGEST, OLDEST = np.array([(15, 90)] + [(18, 90)] * 4 + [(0, 40)] * 12 + [(0, 99)] * 2).T  # by relationship, from 20
IN_QUARTERS = 40  # people for one in group quarters, and people in each of them


def synthetic_households(people: int, rng: int, states: int = len(STATES), *, sex: bool = False) -> Households:
    """Return so many people, at least a unit a state; with `sex`, persons have a last column QSEX."""
    parts = zip(*((part.persons, part.units, part.geo) for part in _parts(people, rng, states, sex)), strict=True)
    return Households(*(Frame.concatenate(frames) for frames in parts))


def write_csv(homes: Households, folder: str | Path) -> None:
    """Write persons.csv, units.csv and geo.csv into a new folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in FRAMES:
        getattr(homes, name).to_csv(Path(folder) / f"{name}.csv")


def write_parquet(homes: Households, folder: Path) -> None:
    """Write persons.parquet, units.parquet and geo.parquet into a new folder."""
    folder.mkdir(parents=True)
    for name in FRAMES:
        with duckdb.connect() as connection:
            connection.register("frame", getattr(homes, name).to_dict())
            connection.view("frame").write_parquet(str(folder / f"{name}.parquet"))


def write_synthetic_households(folder: Path, people: int, rng: int) -> None:
    """Write the same files of synthetic households, without holding them all."""
    for place, part in enumerate(_parts(people, rng, len(STATES), sex=False)):
        write_parquet(part, folder / f"part{place}")
    for name in FRAMES:
        duckdb.read_parquet(str(folder / f"part*/{name}.parquet")).write_parquet(str(folder / f"{name}.parquet"))


def _parts(people: int, seed: int, states: int, sex: bool) -> Iterator[Households]:
    """Yield households in parts that have no MAFID in common."""
    rng = np.random.default_rng(seed)
    mafids, before = scrambled(rng), 0
    for start in range(0, people, CHUNK):
        members, kind = _members(min(CHUNK, people - start), rng)
        codes = np.array(STATES[:states], dtype=object)[np.arange(kind.size) % states]
        yield assembled(members, kind, codes, mafids(before + np.arange(kind.size)), rng, sex=sex)
        before += kind.size


def _members(people: int, rng: np.random.Generator) -> tuple[People, np.ndarray]:
    """Draw persons, and the kinds of units: households, group quarters, and a vacant unit for ten households."""
    housed = people - people // IN_QUARTERS
    ends = np.cumsum(1 + draw(SIZES, housed, rng))
    ends = np.minimum(ends[: np.searchsorted(ends, housed) + 1], housed)
    first, sizes = np.r_[0, ends[:-1]], np.diff(ends, prepend=0)
    quarters = ends.size + np.arange(people - housed) // IN_QUARTERS
    kind = np.repeat([2, 4, 2], [ends.size, np.unique(quarters).size, ends.size // 10])

    relship = 25 + draw(MEMBERS, people, rng)
    relship[first] = 20
    second = first[(sizes > 1) & (rng.random(sizes.size) < 0.6)] + 1
    relship[second] = 21 + draw(COUPLES, second.size, rng)
    relship[housed:] = 37 + (rng.random(people - housed) < 0.5)
    sex = 1 + (rng.random(people) < 0.51)
    sex[second] = np.where(relship[second] > 22, sex[second - 1], 3 - sex[second - 1])
    span = (OLDEST - YOUNGEST)[relship - 20]
    age = YOUNGEST[relship - 20] + (rng.random(people) * span).astype(np.int64)
    origin = draw(np.concatenate([0.8 * NOT_HISPANIC, 0.2 * HISPANIC]), people, rng)
    unit = np.r_[np.repeat(np.arange(ends.size), sizes), quarters]
    return People(unit, relship, age, sex, 1 + origin // 63, 1 + origin % 63), kind
