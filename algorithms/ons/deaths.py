"""Deaths by area: synthetic deaths for the pilot of the Office for National Statistics, and real deaths of Brazil.

The death records of 2018 that the pilot used are confidential. These facts of its paper hold exactly here:

- **the 13 regions** with their true numbers of deaths, the column "Actual" of Table 8: 529,655;
- **the 251 areas** below them and the numbers of categories of the other five variables (Table 5);
- **the true sizes of four areas**, E38000001 to E38000004 (Table 9);
- **Northern Ireland is ZC010 to ZC050**: their noisy values add up to its noisy value in Table 8 at all three budgets.
  No other noisy number of the paper is used, but all had been read: they are printed beside the true numbers.

One fact holds approximately: the numbers of the 5,020 cells of area by age by sex that are 0, 1, 2, ... (row sums of
Table 6, which has 5,019). Four settings were chosen by it, among about fifty combinations: the age bands, the spreads
`SIZE_SPREAD` and `AGE_SPREAD`, and the number of areas in Scotland. `synthetic_deaths` compares the numbers.

Everything else in `data/deaths.json` is our assumption, from general knowledge of mortality in England and Wales:

- **areas of a region**: England had 207 clinical commissioning groups until April 2018, and E38000003, which then
  merged, is still in Table 9. With 7 Welsh health boards, 5 Northern Irish areas and one for records without an area,
  31 remain for Scotland. Codes have the right form; only the four of Table 9 are certain to be in the right region;
- **sizes** of areas are lognormal within a region;
- **age and sex** are distributed as deaths in England and Wales. The tenth band, "not stated", is nearly empty: ten
  ordinary bands do not give as many zeros and as few ones as Table 6 has. Areas differ in the odds of dying before 65,
  by a lognormal factor. Visitors from Scotland and Northern Ireland, and records without an area, have the same law;
- **marital status** and **cause** depend on age and sex only, the **month** on the cause only (a cosine that peaks in
  January). All children are single: some cells are impossible.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.population import load
from algorithms.schema import Schema
from audit.arguments import whole_number

__all__ = ["REGIONS", "Deaths", "brazil_deaths", "few_deaths", "synthetic_deaths"]

Ints = NDArray[np.int64]
Real = NDArray[np.float64]

PLAUSIBLE = json.loads((Path(__file__).parent.parent / "data" / "deaths.json").read_text("utf-8"))
REGIONS: dict[str, int] = PLAUSIBLE["regions"]
"""Deaths by region, Table 8, "Actual": unknown, nine regions of England, Northern Ireland, Scotland and Wales."""

NAMED: dict[str, int] = PLAUSIBLE["named"]  # deaths of areas, Table 9, "Actual"
SIZE_SPREAD = 0.7  # standard deviation of the logarithm of an area's deaths
AGE_SPREAD = 0.2  # standard deviation of the logarithm of an area's odds of dying before 65
BEFORE_65 = 6  # age bands below 65
DEATHS = np.array([*PLAUSIBLE["deaths"].values()])  # shape (sexes, ages)
WINTER = np.cos(2 * np.pi * np.arange(12) / 12)
DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
SCHEMA = Schema(
    {
        "sex": tuple(PLAUSIBLE["deaths"]),
        "age": tuple(PLAUSIBLE["ages"]),
        "marital": tuple(PLAUSIBLE["statuses"]),
        "month": tuple(PLAUSIBLE["months"]),
        "cause": tuple(PLAUSIBLE["causes"]),
    }
)


@dataclass(frozen=True, eq=False)
class Deaths:
    """Deaths by area and variables: int32, shape (leaves, cells), read-only."""

    tree: Hierarchy
    schema: Schema
    histogram: NDArray[np.int32]

    def __post_init__(self) -> None:
        self.histogram.flags.writeable = False


def few_deaths() -> Deaths:
    """Make up deaths in four areas of two regions, two values a variable: small, because audits need many runs."""
    tree = Hierarchy.from_codes(["north", "north", "south", "south"], ["1", "2", "3", "4"])
    schema = Schema({name: ("a", "b") for name in SCHEMA.attributes})
    cells = np.arange(tree.n_leaves * schema.cells, dtype=np.int32).reshape(tree.n_leaves, -1)
    return Deaths(tree, schema, np.maximum(cells * 7 % 12 - 3, 0))


def synthetic_deaths(
    rng: int | np.random.Generator | np.random.SeedSequence | None = 0, *, people: int | None = None
) -> Deaths:
    """Make up the deaths of England and Wales in 2018, with the pilot's regions exact and the rest plausible.

    If `people` is smaller, they are divided among the regions in proportion to all 529,655, by largest remainders.
    Numbers of cells of area by age by sex, here on average over 20 seeds, and in Table 6:

    ====== ==== === === === === ==== ===== ===== ====== ======== =====
    deaths    0   1   2   3   4 5-10 11-25 26-50 51-100 101-1000 1000+
    ====== ==== === === === === ==== ===== ===== ====== ======== =====
    here   1222 273 167 124 101  442   558   433    435     1201    64
    pilot  1270 238 128 116 118  452   602   457    473     1103    62
    ====== ==== === === === === ==== ===== ===== ====== ======== =====
    """
    everybody = sum(REGIONS.values())
    number = everybody if people is None else people
    if whole_number("people", number, least=1) > everybody:
        raise ValueError(f"people must be at most {everybody}, got {number}")
    generator = np.random.default_rng(rng)
    areas = PLAUSIBLE["areas"]
    regions = [region for region, inside in areas.items() for _ in inside]
    names = [name for inside in areas.values() for name in inside]
    sizes = _sizes(int(number), regions, names, generator)
    odds = np.exp(AGE_SPREAD * generator.standard_normal(len(names)))
    shares = np.tile(DEATHS, (len(names), 1, 1))
    shares[:, :, :BEFORE_65] *= odds[:, None, None]
    shares /= shares.sum(axis=(1, 2), keepdims=True)
    groups = generator.multinomial(sizes, shares.reshape(len(names), -1))

    cells = _cells()
    histogram = np.empty((len(names), *cells.shape), np.int32)
    for number, law in enumerate(cells):  # one group at a time, to avoid an int64 copy of the whole
        histogram[:, number] = generator.multinomial(groups[:, number], law)
    return Deaths(Hierarchy.from_codes(regions, names), SCHEMA, histogram.reshape(len(names), -1))


def brazil_deaths() -> Deaths:
    """Load the deaths that Brazilian civil registries recorded in 2019: 1,188,630, by 5,153 cities and month."""
    months, counts = load("brazil", cells=("month",))
    cities = np.arange(months.n_nodes)[months.level(3)]  # nodes above months have smaller numbers, and form a tree
    tree = Hierarchy(months.parent[: cities[-1] + 1], months.offsets[:-1], cities, months.labels[: cities[-1] + 1])
    histogram = np.zeros((tree.n_leaves, len(DAYS)), np.int32)
    histogram[months.parent[months.leaves] - cities[0], [int(months.labels[node]) - 1 for node in months.leaves]] = (
        counts
    )
    return Deaths(tree, Schema({"month": SCHEMA.attributes["month"]}), histogram)


def _sizes(people: int, regions: list[str], names: list[str], rng: np.random.Generator) -> Ints:
    everybody = sum(REGIONS.values())
    sizes = np.array([people * NAMED.get(name, 0) // everybody for name in names])
    weights = np.exp(SIZE_SPREAD * rng.standard_normal(len(names)))
    weights[[name in NAMED for name in names]] = 0
    totals = _apportion(people, np.array(list(REGIONS.values()), np.float64))
    for region, total in zip(REGIONS, totals, strict=True):
        inside = np.array(regions) == region
        sizes[inside] += _apportion(total - sizes[inside].sum(), weights[inside])
    return sizes


def _apportion(total: int, weights: Real) -> Ints:
    """Divide a number in proportion to weights, by largest remainders; ties go to the first."""
    quota = total * weights / weights.sum()
    shares = np.floor(quota).astype(np.int64)
    shares[np.argsort(shares - quota, kind="stable")[: total - shares.sum()]] += 1
    return np.asarray(shares)


def _cells() -> Real:
    """Return the law of marital status, month and cause given sex and age, shape (20, 1080)."""
    parts, women, winter = (np.array(column, np.float64) for column in zip(*PLAUSIBLE["causes"].values(), strict=True))
    marital, cause = np.array([*PLAUSIBLE["marital"].values()]), np.stack([parts.T, parts.T * women])
    month = DAYS * (1 + winter[:, None] * WINTER)
    factors = (law / law.sum(axis=-1, keepdims=True) for law in (marital, month, cause))
    laws = np.einsum("sam,cn,sac->samnc", *factors).reshape(DEATHS.size, -1)
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))
