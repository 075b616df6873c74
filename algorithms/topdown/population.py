"""A synthetic population similar to the enumeration districts of 1940, for the end-to-end preset.

The complete census of 1940, on which the Census Bureau tested TopDown end to end, may not be redistributed. These
facts, from the evaluation by Petti and Flaxman ("Differential privacy in the 2020 US census: what will it do?
Quantifying the accuracy/privacy tradeoff", Gates Open Research 3:1722, 2019), hold here:

- **districts** have a median of 865 people and a mean of 982, counties a median of 18,679;
- **strata**: of the 24 cells of age, ethnicity and race, about 4 in a district are not empty (982 / 246, the mean
  numbers of people in a district and in a nonempty stratum; here 4.3), and half of these are small (median 88 people;
  here about 50);
- **empty strata** number 0 to 23;
- **the schema**: 8 types of housing, 2 ages, 2 ethnicities and 6 races, 192 cells.

Everything else is our assumption:

- sizes are lognormal, with an effect of the county. Sizes, the odds of Black people and the scores below are permuted
  quantiles, not independent draws, so that two populations of one shape differ in assignment and hardly in totals;
- the odds of a Black person to a white person are lognormal, by county and by district within it. The log odds of all
  other minorities are linear in two common exponential scores, of the county and of the district: most districts are
  nearly homogeneous, and a few are mixed. Age is independent of both;
- one district in about 80 is nearly empty: about 20 adults, hardly mixed, in one facility, such as an army post or a
  poor farm; of the others one in 14 has group quarters, with at most half of its people;
- an occupied housing unit has 3.7 people on average, with a spread of 8% over districts; one unit in 15 is vacant.

Shares of minorities are therefore not those of 1940, and every county has 20 districts, unlike real counties. The odds
and their spreads were chosen among about twenty settings, by the facts above and by comparing errors with the published
errors: agreement with these is no independent evidence about 1940.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from algorithms.hierarchy import Hierarchy
from audit.arguments import whole_number

__all__ = ["Population1940", "synthetic_1940"]

Ints = NDArray[np.int64]
Real = NDArray[np.float64]

STRATA = 24
CELLS = 8 * STRATA

# Median people of a district, and standard deviations of its logarithm over counties and over districts in a county.
SIZE, COUNTY_SIZE, DISTRICT_SIZE = 878, 0.3, 0.4

# Odds relative to white non-Hispanic people in a typical district, by ethnicity and race.
ODDS = np.array([1, 2e-3, 1.5e-6, 5e-7, 5e-7, 5e-7, 5e-6, 1e-7, 1e-7, 5e-8, 5e-8, 5e-8])
BLACK = 1
COUNTY_BLACK, DISTRICT_BLACK = 2.6, 1.4  # standard deviations of the log odds
COUNTY_MIX, DISTRICT_MIX = 2.0, 1.3  # increase of the log odds by one unit of an exponential score
COUNTY_GROUP, DISTRICT_GROUP = 1.0, 0.5  # standard deviations of each minority's own effect on its log odds

ADULTS = np.array([0.65, 0.97, 0.97, 0.95, 1, 0.9, 0.97, 0.9])  # share of adults, by type of housing
FACILITIES = np.array([0.005, 0.0025, 0.01, 0.0015, 0.006, 0.03, 0.02])  # share of districts with facilities, by type
RESIDENTS = np.array([60, 150, 30, 200, 60, 15, 10])  # median people in a district's facilities, by type
SPREAD = 0.8  # standard deviation of the logarithm of that number
OUTPOST = 0.0125  # share of nearly empty districts, which have one facility of the first five types
OUTPOST_LESS_MIXED = 8  # decrease of the log odds of minorities there
PEOPLE_PER_UNIT, UNIT_SPREAD, VACANT = 3.7, 0.08, 1 / 14


class Population1940(NamedTuple):
    """People and places by enumeration district."""

    tree: Hierarchy  # nation > state > county > enumeration district
    histogram: Ints  # people by the cells of the preset's schema, shape (districts, 192)
    facilities: Ints  # housing units, occupied or vacant, and facilities by type, shape (districts, 8)


def synthetic_1940(
    rng: int | np.random.Generator | np.random.SeedSequence | None,
    *,
    states: int = 4,
    counties: int = 15,
    districts: int = 20,
) -> Population1940:
    """Make up a nation similar to that of 1940: `states`, `counties` in each, and enumeration `districts` in each."""
    for name, number in (("states", states), ("counties", counties), ("districts", districts)):
        whole_number(name, number, least=1)
    generator = np.random.default_rng(rng)
    county = np.repeat(np.arange(states * counties), districts)
    size = COUNTY_SIZE * _normal(states * counties, generator)[county]
    people = np.rint(SIZE * np.exp(size + DISTRICT_SIZE * _normal(county.size, generator))).astype(np.int64)
    outpost = generator.random(county.size) < OUTPOST
    people[outpost] = np.maximum(people[outpost] // 40, 1)

    facilities, residents = _group_quarters(people, outpost, generator)
    households = residents[:, 0]
    occupied = np.rint(households / (PEOPLE_PER_UNIT * np.exp(UNIT_SPREAD * generator.normal(size=county.size))))
    units = np.maximum(occupied, -(-households // 99)).astype(np.int64)
    facilities[:, 0] = units + generator.binomial(units, VACANT)

    groups = _groups(county, outpost, generator)
    adults = np.where(outpost[:, None], 1, ADULTS)
    ages = np.stack([1 - adults, adults], axis=2)
    cells = ages[..., None] * groups[:, None, None, :]
    histogram = generator.multinomial(residents, cells.reshape(-1, 8, STRATA)).reshape(-1, CELLS)

    codes = product(*([f"{code:04}" for code in range(1, n + 1)] for n in (states, counties, districts)))
    return Population1940(Hierarchy.from_codes(*zip(*codes, strict=True)), histogram, facilities)


def _group_quarters(people: Ints, outpost: NDArray[np.bool_], rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw facilities and residents by type of housing, shape (districts, 8) each; housing units are left at 0."""
    shape = (people.size, len(FACILITIES))
    number = np.where(rng.random(shape) < FACILITIES, rng.integers(1, 3, shape), 0)
    kind = rng.integers(5, size=people.size)
    number[outpost] = np.eye(len(FACILITIES), dtype=np.int64)[kind[outpost]]

    sizes = np.where(number, RESIDENTS * np.exp(SPREAD * rng.normal(size=shape)), 0)
    most = np.where(outpost, people, people // 2)
    share = most / np.maximum(sizes.sum(axis=1), most)
    residents = np.maximum(np.floor(sizes * share[:, None]).astype(np.int64), number)
    residents[outpost] = number[outpost] * people[outpost, None]
    at_home = people - residents.sum(axis=1)
    return np.column_stack([np.zeros_like(people), number]), np.column_stack([at_home, residents])


def _groups(county: Ints, outpost: NDArray[np.bool_], rng: np.random.Generator) -> Real:
    """Draw the shares of ethnicities and races in each district, shape (districts, 12)."""
    counties, districts = county[-1] + 1, county.size
    mix = COUNTY_MIX * -np.log(_ranks(counties, rng))[county] + DISTRICT_MIX * -np.log(_ranks(districts, rng))
    own = COUNTY_GROUP * rng.normal(size=(counties, ODDS.size))[county]
    log_odds = np.log(ODDS) + mix[:, None] + own + DISTRICT_GROUP * rng.normal(size=(districts, ODDS.size))
    black = COUNTY_BLACK * _normal(counties, rng)[county] + DISTRICT_BLACK * _normal(districts, rng)
    log_odds[:, BLACK] = np.log(ODDS[BLACK]) + black
    log_odds[:, 0] = 0
    log_odds[outpost, 1:] -= OUTPOST_LESS_MIXED
    odds = np.exp(log_odds)
    shares: Real = odds / odds.sum(axis=1, keepdims=True)
    return shares


def _ranks(size: int, rng: np.random.Generator) -> Real:
    return rng.permutation((np.arange(size) + 0.5) / size)


def _normal(size: int, rng: np.random.Generator) -> Real:
    return np.asarray(ndtri(_ranks(size, rng)))
