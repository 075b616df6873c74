"""Who died where: synthetic deaths for the pilot of the Office for National Statistics, and the real ones of Brazil.

The death records of 2018 that the pilot used may not be passed on. Facts of its paper that hold exactly here:

- **the 13 regions** with their true numbers of deaths, the column "Actual" of Table 8: 529,655;
- **the 251 areas** below them and the numbers of categories of the other five variables (Table 5);
- **the true sizes of four areas**, E38000001 to E38000004 (Table 9);
- **Northern Ireland is ZC010 to ZC050**: their values after noise add up to its own in Table 8 at all three budgets.
  That is the only use made here of a number after noise; all of them stood beside the true ones and had been read.

One fact holds roughly: how many of the 5,020 cells of area by age by sex are 0, 1, 2, ... (row sums of Table 6, which
has 5,019). Four settings were chosen by it, among about fifty combinations: the age bands, the spreads `SIZE_SPREAD`
and `AGE_SPREAD`, and how many areas Scotland has. `synthetic_deaths` says how near that came.

Everything else is an assumption of ours, from general knowledge of mortality in England and Wales and rounded:

- **areas of a region** (`AREAS`): England had 207 clinical commissioning groups until April 2018, and E38000003, which
  then merged, is still in Table 9. With 7 Welsh health boards, 5 Northern Irish areas and one for what is missing, 31
  are left for Scotland. Codes have the right form; only the four of Table 9 are sure to be in the right region;
- **sizes** of areas are lognormal within a region;
- **age and sex** (`DEATHS`) as deaths fall in England and Wales. The tenth band, "not stated", is nearly empty: ten
  ordinary bands do not leave so many zeros beside so few ones as Table 6 has. Areas differ in the odds of dying before
  65, by a lognormal factor. Visitors from Scotland and Northern Ireland, and records without an area, are like others;
- **marital status** (`MARITAL`) and **cause** (`CAUSES`) depend on age and sex, the **month** on the cause (`WINTER`: a
  cosine that peaks in January), and none of them on anything else. Children are single: cells that nobody can be in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.population import load
from algorithms.schema import Schema
from audit.arguments import whole_number

__all__ = ["REGIONS", "Deaths", "brazil_deaths", "few_deaths", "synthetic_deaths"]

Ints = NDArray[np.int64]
Real = NDArray[np.float64]

REGIONS = {
    "NA": 965,
    "E12000001": 28075,
    "E12000002": 71299,
    "E12000003": 51692,
    "E12000004": 45015,
    "E12000005": 54562,
    "E12000006": 56406,
    "E12000007": 50541,
    "E12000008": 81052,
    "E12000009": 56667,
    "N99999999": 13,
    "S99999999": 170,
    "W99999999": 33198,
}
"""Deaths by region, Table 8, "Actual": unknown, the nine of England, Northern Ireland, Scotland and Wales."""

NAMED = {"E38000001": 1732, "E38000002": 1074, "E38000003": 1654, "E38000004": 1346}  # Table 9, "Actual"
# Airedale is in Yorkshire, Ashford and Aylesbury Vale are in the South East, Barking and Dagenham is in London.
HOME = {"E38000001": "E12000003", "E38000002": "E12000008", "E38000003": "E12000008", "E38000004": "E12000007"}
AREAS = dict(zip(REGIONS, (1, 11, 32, 23, 20, 22, 20, 32, 35, 12, 5, 31, 7), strict=True))
SIZE_SPREAD = 0.7  # of the logarithm of the deaths of an area
AGE_SPREAD = 0.2  # of the logarithm of an area's odds of dying before 65

SEXES = ("male", "female")
AGES = ("0-4", "5-14", "15-34", "35-44", "45-54", "55-64", "65-74", "75-84", "85+", "not stated")
BEFORE_65 = 6  # bands
STATUSES = ("single", "married", "civil partnered", "widowed", "divorced", "not stated")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# Thousands of deaths by sex and age, England and Wales, about 2018.
DEATHS = np.array(
    [
        [1.57, 0.30, 4.6, 5.3, 12.4, 23.3, 48.3, 78.5, 90.0, 0.003],
        [1.29, 0.23, 2.1, 3.3, 8.4, 15.6, 34.4, 70.5, 141.0, 0.003],
    ]
)
# Percent by sex, age and marital status.
MARITAL = np.array(
    [
        [
            [100, 0, 0, 0, 0, 0],
            [100, 0, 0, 0, 0, 0],
            [86, 10.5, 0.2, 0.1, 2, 1.2],
            [52, 32, 0.5, 0.5, 13.5, 1.5],
            [35, 39, 0.5, 1.5, 22.5, 1.5],
            [21, 50, 0.4, 4, 23, 1.6],
            [12, 61, 0.3, 9, 16.5, 1.2],
            [7, 63, 0.1, 20.5, 8.6, 0.8],
            [5, 48, 0.05, 43, 3.4, 0.55],
            [30, 20, 0, 0, 0, 50],
        ],
        [
            [100, 0, 0, 0, 0, 0],
            [100, 0, 0, 0, 0, 0],
            [78, 17.5, 0.2, 0.3, 3, 1],
            [40, 42, 0.6, 1.4, 15, 1],
            [26, 47, 0.6, 4, 21.5, 0.9],
            [15, 53, 0.4, 10, 20.8, 0.8],
            [8, 52, 0.2, 24, 15.2, 0.6],
            [5, 34, 0.1, 52, 8.5, 0.4],
            [6, 10, 0.02, 79.5, 4.2, 0.28],
            [30, 20, 0, 0, 0, 50],
        ],
    ]
)
# Chapters of ICD-10, the small ones put together: parts of the deaths of an age band, from "0-4" to "not stated"; women
# for each man among those of an age; and how much more often in mid-January than on the average of the year.
CAUSES = {
    "A-B infectious": ((3, 3, 2, 2, 1.5, 1.2, 1, 1, 0.9, 1), 1.0, 0.1),
    "C-D48 neoplasms": ((3, 27, 14, 26, 38, 45, 45, 31, 15, 5), 1.0, 0.02),
    "D50-D89 blood": ((1, 2, 1, 0.5, 0.3, 0.2, 0.2, 0.2, 0.2, 0), 1.0, 0.1),
    "E endocrine": ((3, 6, 3, 3, 2.5, 2, 1.6, 1.5, 1.3, 1), 1.0, 0.15),
    "F mental": ((0, 0, 2, 2, 1.5, 1.2, 2.5, 9, 17.5, 1), 1.35, 0.2),
    "G-H nervous system and senses": ((6, 18, 6, 5, 4, 4, 5, 7.5, 7.5, 1), 1.0, 0.2),
    "I circulatory": ((2, 5, 9, 17, 23, 24, 24, 26, 27.5, 20), 0.85, 0.18),
    "J respiratory": ((5, 6, 3, 5, 7, 9, 11.5, 15, 17, 5), 1.0, 0.5),
    "K digestive": ((1, 1, 4, 14, 12, 7, 4.5, 4, 3.5, 3), 0.95, 0.06),
    "L skin": ((0, 0, 0, 0.3, 0.2, 0.2, 0.2, 0.3, 0.6, 0), 1.3, 0.1),
    "M musculoskeletal": ((0, 1, 1, 1, 0.7, 0.7, 0.7, 0.9, 0.9, 0), 2.0, 0.1),
    "N-O genitourinary and pregnancy": ((0, 0, 1, 1, 0.8, 0.8, 1, 1.7, 2.6, 0), 1.1, 0.12),
    "P-Q perinatal and congenital": ((60, 10, 3, 1, 0.6, 0.3, 0.2, 0.1, 0.1, 0), 1.0, 0.0),
    "R ill-defined": ((12, 3, 3, 3, 1.5, 0.8, 0.4, 0.3, 4, 33), 1.5, 0.15),
    "U-Y external": ((4, 18, 48, 19, 7, 3.5, 2, 1.8, 2.2, 30), 0.5, -0.03),
}
WINTER = np.cos(2 * np.pi * np.arange(12) / 12)
DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])

SCHEMA = Schema({"sex": SEXES, "age": AGES, "marital": STATUSES, "month": MONTHS, "cause": tuple(CAUSES)})


@dataclass(frozen=True, eq=False)
class Deaths:
    """Deaths by area of residence and the variables of a schema: histogram of int32, shape (leaves, cells), read-only.

    Areas are regions, and areas within them; in Brazil regions, states, and cities.
    """

    tree: Hierarchy
    schema: Schema
    histogram: NDArray[np.int32]

    def __post_init__(self) -> None:
        self.histogram.flags.writeable = False


def few_deaths() -> Deaths:
    """Make up the deaths of four areas in two regions, two values a variable: for audits, which take many runs."""
    tree = Hierarchy.from_codes(["north", "north", "south", "south"], ["1", "2", "3", "4"])
    schema = Schema({name: ("a", "b") for name in SCHEMA.attributes})
    cells = np.arange(tree.n_leaves * schema.cells, dtype=np.int32).reshape(tree.n_leaves, -1)
    return Deaths(tree, schema, np.maximum(cells * 7 % 12 - 3, 0))


def synthetic_deaths(
    rng: int | np.random.Generator | np.random.SeedSequence | None = 0, *, people: int | None = None
) -> Deaths:
    """Make up the deaths of England and Wales in 2018, with the pilot's regions exact and the rest plausible.

    The head of the module says what is a fact, and what an assumption. Fewer `people` are shared among the regions as
    all 529,655 are, by largest remainders. Cells of area by age by sex, on the average of 20 seeds, and in Table 6:

    ====== ==== === === === === ==== ===== ===== ====== ======== =====
    deaths    0   1   2   3   4 5-10 11-25 26-50 51-100 101-1000 1000+
    ====== ==== === === === === ==== ===== ===== ====== ======== =====
    here   1222 273 167 124 101  442   558   433    435     1201    64
    pilot  1270 238 128 116 118  452   602   457    473     1103    62
    ====== ==== === === === === ==== ===== ===== ====== ======== =====
    """
    everybody = sum(REGIONS.values())
    wanted = everybody if people is None else people
    if whole_number("people", wanted, least=1) > everybody:
        raise ValueError(f"people must be at most {everybody}, got {wanted}")
    generator = np.random.default_rng(rng)
    regions, names = _areas()
    sizes = _sizes(int(wanted), regions, names, generator)
    odds = np.exp(AGE_SPREAD * generator.standard_normal(len(names)))
    shares = np.tile(DEATHS, (len(names), 1, 1))
    shares[:, :, :BEFORE_65] *= odds[:, None, None]
    shares /= shares.sum(axis=(1, 2), keepdims=True)
    groups = generator.multinomial(sizes, shares.reshape(len(names), -1))

    cells = _cells()
    histogram = np.empty((len(names), *cells.shape), np.int32)
    for number, law in enumerate(cells):  # one group at a time: no copy of the whole in int64
        histogram[:, number] = generator.multinomial(groups[:, number], law)
    return Deaths(Hierarchy.from_codes(regions, names), SCHEMA, histogram.reshape(len(names), -1))


def brazil_deaths() -> Deaths:
    """Load the deaths that Brazilian civil registries recorded in 2019: 1,188,630, by 5,153 cities and month."""
    months, counts = load("brazil", cells=("month",))
    cities = np.arange(months.n_nodes)[months.level(3)]  # nodes are numbered level by level: the upper ones are a tree
    tree = Hierarchy(months.parent[: cities[-1] + 1], months.offsets[:-1], cities, months.labels[: cities[-1] + 1])
    histogram = np.zeros((tree.n_leaves, len(MONTHS)), np.int32)
    histogram[months.parent[months.leaves] - cities[0], [int(months.labels[node]) - 1 for node in months.leaves]] = (
        counts
    )
    return Deaths(tree, Schema({"month": MONTHS}), histogram)


def _areas() -> tuple[list[str], list[str]]:
    """Return the region of each area, and its name."""
    regions, names = [], []
    english = len(NAMED)
    for region, number in AREAS.items():
        known = [name for name, home in HOME.items() if home == region]
        rest = number - len(known)
        if region.startswith("E"):
            known += [f"E38{english + place:06}" for place in range(1, rest + 1)]
            english += rest
        else:
            form = {"NA": "NA", "N99999999": "ZC0{}0", "S99999999": "S120000{:02}", "W99999999": "W110000{:02}"}[region]
            known = [form.format(place) for place in range(1, number + 1)]
        regions += [region] * number
        names += known
    return regions, names


def _sizes(people: int, regions: list[str], names: list[str], rng: np.random.Generator) -> Ints:
    """Divide the deaths among regions, and those of each region among its areas."""
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
    """Divide a number in proportion to weights, by largest remainders, the first of equal ones first."""
    quota = total * weights / weights.sum()
    shares = np.floor(quota).astype(np.int64)
    shares[np.argsort(shares - quota, kind="stable")[: total - shares.sum()]] += 1
    return np.asarray(shares)


def _cells() -> Real:
    """Return the law of marital status, month and cause given sex and age, shape (20, 1080)."""
    parts, women, winter = (np.array(column, np.float64) for column in zip(*CAUSES.values(), strict=True))
    cause = np.stack([parts.T, parts.T * women])
    month = DAYS * (1 + winter[:, None] * WINTER)
    factors = (law / law.sum(axis=-1, keepdims=True) for law in (MARITAL, month, cause))
    laws = np.einsum("sam,cn,sac->samnc", *factors).reshape(len(SEXES) * len(AGES), -1)
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))
