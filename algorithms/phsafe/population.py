"""The bundled simulated households in the production layout, and the assembly of frames from persons.

They are not real people. The bundled persons are a *simulated* population, the 2020 decennial census sample of the
package pseudopeople: households, and everybody's relationship, age, sex, housing type and broad race or ethnicity.
Other columns are assigned here when the sample is loaded, from one fixed seed:

- **states**: each unit is put into one of six pseudo-states with probabilities from 0.40 down to 0.002. They have real
  FIPS codes so that region codes are valid, but do not describe those states; the source is one fictional place;
- **race of "Latino" and of "Multiracial or Other"**: drawn among the 63 codes, with one draw for all such members of a
  household, and one draw for each person in group quarters;
- **tenure**: drawn given the householder's age, and whether the householder is married;
- **vacant units**: one for every ten households;
- **MAFIDs**: distinct, in no order; all codes of places below the state are constants, which no table reads.

Children, spouses and partners of either kind and the two kinds of group quarters are from the source. Its 16
householders under 18, the youngest of them 1, are kept as edge cases for the tabulation.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from algorithms.phsafe.schema import GEO, MAFID, UNITS
from algorithms.phsafe.tabulation.derive import derive_units
from algorithms.release.frames import Frame

__all__ = ["Households", "People", "assembled", "draw", "load_households", "scrambled"]

Ints = NDArray[np.int64]

SEED = 2020  # seed of all assigned columns

PSEUDO_STATES = {"06": 0.40, "48": 0.28, "36": 0.17, "27": 0.10, "15": 0.048, "56": 0.002}
DIVISIONS = {"06": "9", "48": "7", "36": "2", "27": "4", "15": "9", "56": "8"}  # census divisions and regions by state
REGIONS = {"06": "4", "48": "3", "36": "1", "27": "2", "15": "4", "56": "4"}
BELOW_STATE = {
    **{"TABBLKCOU": "001", "TABTRACTCE": "000100", "TABBLK": "1000", "TABBLKGRPCE": "1"},
    **{"PLACEFP": "99999", "AIANNHCE": "9999"},
}
VACANT = 0.1  # vacant units per household


def _race_shares(*alone: float) -> NDArray[np.float64]:
    """Return the shares of the 63 codes: six single races, and the rest in proportion to 1/k for k = 1..57."""
    several = 1 / np.arange(1, 58)
    return np.array([*alone, *(several / several.sum() * (1 - sum(alone)))])


# Shares of single races are roughly those of the 2020 census; the division of the rest is an assumption.
NOT_HISPANIC = _race_shares(0.71, 0.15, 0.008, 0.074, 0.002, 0.006)
HISPANIC = _race_shares(0.203, 0.019, 0.024, 0.004, 0.001, 0.422)

RELATIONSHIPS = (  # in the order of their codes, from 20 on
    *("Reference person", "Opposite-sex spouse", "Opposite-sex unmarried partner"),
    *("Same-sex spouse", "Same-sex unmarried partner", "Biological child", "Adopted child", "Stepchild", "Sibling"),
    *("Parent", "Grandchild", "Parent-in-law", "Child-in-law", "Other relative", "Roommate or housemate"),
    *("Foster child", "Other nonrelative"),
    *("Institutionalized group quarters population", "Noninstitutionalized group quarters population"),
)
RACE = {"White": 1, "Black": 2, "AIAN": 3, "Asian": 4, "NHOPI": 5, "Latino": 0, "Multiracial or Other": 0}

ONE_DIGIT = np.array([f"{code}" for code in range(10)], dtype=object)
TWO_DIGITS = np.array([f"{code:02}" for code in range(100)], dtype=object)


@dataclass(frozen=True, eq=False)
class Households:
    """Persons, their units, and the places of units, with the columns and order of the production layout.

    Persons may have a last column QSEX (``"1"`` male, ``"2"`` female), which is not in that layout. Units are
    households, group quarters and vacant units: all their columns except the tenure are derived from the members.
    """

    persons: Frame
    units: Frame
    geo: Frame


class People(NamedTuple):
    """Persons as numbers, with the index of the unit that each lives in; arrays of shape (people,)."""

    unit: Ints
    relship: Ints
    age: Ints
    sex: Ints
    hisp: Ints
    race: Ints


def load_households(*, sex: bool = False) -> Households:
    """Load the bundled households, a simulated population: the same rows every time.

    9,606 persons in 4,070 households, 781 in 6 group quarters, and 407 vacant units. With `sex` the persons get a last
    column QSEX, without which household types cannot be derived.
    """
    packed = resources.files("algorithms").joinpath("data", "pseudopeople.csv.gz").read_bytes()
    rows = list(csv.reader(gzip.decompress(packed).decode("utf-8").splitlines()))[1:]
    household, _, relationship, group, sexes, ages = zip(*rows, strict=True)
    households = np.array(household)
    unit = np.cumsum(np.r_[0, households[1:] != households[:-1]])
    relship = 20 + np.array([RELATIONSHIPS.index(value) for value in relationship])
    latino = np.array([value == "Latino" for value in group])
    known = np.array([RACE[value] for value in group])

    rng = np.random.default_rng(SEED)
    head = np.flatnonzero(relship == 20)
    drawn_by = np.arange(unit.size)
    in_household = relship < 37
    drawn_by[in_household] = head[np.searchsorted(unit[head], unit[in_household])]
    of_latino = 1 + draw(HISPANIC, unit.size, rng)[drawn_by]
    several_or_other = NOT_HISPANIC[5:]  # codes 06 to 63
    of_others = 6 + draw(several_or_other, unit.size, rng)[drawn_by]
    race = np.select([known > 0, latino], [known, of_latino], of_others)
    sex_code = np.array([1 + (value == "Female") for value in sexes])
    people = People(unit, relship, np.array(ages, dtype=np.int64), sex_code, 1 + latino, race)

    kind = np.full(unit[-1] + 1, 4)
    kind[unit[head]] = 2
    kind = np.append(kind, np.full(int(VACANT * head.size), 2))
    states = np.array(list(PSEUDO_STATES), dtype=object)
    state = states[draw(np.array(list(PSEUDO_STATES.values())), kind.size, rng)]
    return assembled(people, kind, state, scrambled(rng)(np.arange(kind.size)), rng, sex=sex)


def assembled(
    people: People, kind: Ints, state: NDArray[np.object_], mafid: Ints, rng: np.random.Generator, *, sex: bool
) -> Households:
    """Assemble the frames: draw a tenure, derive the other columns of the units, and write codes as text."""
    head, spouse = people.relship == 20, np.isin(people.relship, (21, 23))
    age, occupied, married = (np.zeros(kind.size, dtype=np.int64) for _ in range(3))
    age[people.unit[head]], occupied[people.unit[head]], married[people.unit[spouse]] = people.age[head], 1, 1
    tenure = np.where(occupied == 1, _tenure(age, married == 1, rng), 0)
    persons = {
        "RTYPE": ONE_DIGIT[np.where(kind == 2, 3, 5)[people.unit]],
        "MAFID": mafid[people.unit],
        "QAGE": people.age,
        "CENHISP": people.hisp,
        "CENRACE": TWO_DIGITS[people.race],
        "RELSHIP": TWO_DIGITS[people.relship],
        "QSEX": ONE_DIGIT[people.sex],
    }
    keys = {"RTYPE": ONE_DIGIT[kind], "MAFID": mafid}
    units = derive_units(Frame(persons), Frame({**keys, "TEN": ONE_DIGIT[tenure]}))
    place = np.empty(kind.size, dtype=np.int64)
    place[np.argsort(mafid)] = np.arange(kind.size)  # `derive_units` orders units by MAFID
    if not sex:
        del persons["QSEX"]
    regions, divisions = ([known.get(code, "0") for code in state] for known in (REGIONS, DIVISIONS))
    places = {
        **keys,
        "TABBLKST": state,
        "DIVISIONCE": np.array(divisions, dtype=object),
        "REGIONCE": np.array(regions, dtype=object),
        **{name: np.broadcast_to(np.array(code, dtype=object), kind.size) for name, code in BELOW_STATE.items()},
    }
    geo = Frame({name: places[name] for name in GEO})
    return Households(Frame(persons), Frame({name: units[name][place] for name in UNITS}), geo)


def _tenure(age: Ints, married: NDArray[np.bool_], rng: np.random.Generator) -> Ints:
    """Draw tenures: owned with a mortgage (1) or without (2), rented (3), rent-free (4); the shares are our own."""
    owner = np.interp(age, (20, 35, 45, 65, 80), (0.15, 0.40, 0.55, 0.70, 0.72)) + np.where(married, 0.15, -0.05)
    mortgage = np.interp(age, (30, 60, 80), (0.9, 0.6, 0.2))
    owns, owes, pays = (rng.random(age.size) < chance for chance in (owner, mortgage, 0.95))
    return np.where(owns, np.where(owes, 1, 2), np.where(pays, 3, 4))


def draw(shares: NDArray[np.float64], size: int, rng: np.random.Generator) -> Ints:
    """Draw indices with probabilities in proportion to shares, from uniforms, which numpy keeps across versions."""
    bounds = np.cumsum(shares)[:-1] / np.sum(shares)
    return np.searchsorted(bounds, rng.random(size), side="right")


def scrambled(rng: np.random.Generator) -> Callable[[Ints], Ints]:
    """Return a pseudo-random permutation from 0, 1, ... onto the MAFIDs (affine, so that nothing is stored)."""
    modulus = MAFID.most - MAFID.least + 1
    factor = modulus // 4 + int(rng.random() * modulus / 2)
    while math.gcd(factor, modulus) != 1:
        factor += 1
    shift = int(rng.random() * modulus)
    return lambda index: MAFID.least + (index * factor + shift) % modulus
