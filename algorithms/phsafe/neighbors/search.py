"""Searches valid households for neighbors that cost more than those known: thousands are counted at once.

What a person leaving does to a household is computed for many households and every member who may leave, each case
under a ``MAFID`` of its own in one database, before and after, by the SQL of a release. Someone who joins undoes what
someone who leaves does, and a person replaced can be anyone: so all moves between two households are differences of two
leaves, and the longest of them is found by products of matrices. Persons replaced in place are tried one by one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from algorithms.phsafe.budget import Config, Settings, read_config
from algorithms.phsafe.neighbors.households import FIRST_MAFID, Household, Person, derived, without
from algorithms.phsafe.neighbors.pairs import check_model
from algorithms.phsafe.neighbors.stability import household_counts
from algorithms.phsafe.schema import HOUSEHOLDER, PARTNERS
from algorithms.phsafe.tables import ITERATIONS, QUERIES
from audit.claims import Relation

__all__ = ["Worst", "search_worst", "structures"]

BATCH = 10_000  # households counted at a time
ROWS = 1_000  # of a matrix of distances at a time
STATES = ("01", "02")
REGIONS = ("usa", "state")
ALL = ("all", "all")
OTHER_SEX = {"1": "2", "2": "1"}
OWN, GRANDCHILD, PARENT, OTHER, ROOMMATE, FOSTER = "25", "30", "29", "33", "34", "35"
ARRIVALS = (  # who may take the place of a member
    *(Person("21"), Person("22", 17), Person(OWN, 15), Person(OTHER)),
    *(Person("24"), Person(OWN, 2), Person(OWN, 15, "01", 1), Person(ROOMMATE)),
)

Changes = NDArray[np.int16]  # (cases, columns): by how much each cell of each query changes
Floats = NDArray[np.float64]


class Case(NamedTuple):
    """What happens to one household: a member leaves it, or is replaced in it."""

    before: Household
    after: Household

    @property
    def person(self) -> str:
        """Who is in the household only before, or who the householder was."""
        (gone,) = Counter(self.before.members) - Counter(self.after.members)
        return f"{gone.relship} of age {gone.age}"

    def __str__(self) -> str:
        people = len(self.before.members)
        event = "leaves" if len(self.after.members) < people else "is replaced in"
        return f"{self.person} {event} a household of {people}"


class Worst(NamedTuple):
    """The largest change: squared L2 of a query at a level, or rho of all; households of either side; in words."""

    size: float
    x: tuple[Household, ...]
    y: tuple[Household, ...]
    label: str


def search_worst(
    relation: Relation = "add_remove", *, config: Settings = "us", quick: bool = False
) -> dict[tuple[str, str], Worst]:
    """Search valid neighbors (model VAL) for the largest change of every query and level, and under `ALL` of a run.

    `config` has the thresholds, and the budgets by which the queries count where they are taken together. The `quick`
    search tries fewer households, and replaces householders alone.

    Guarantee: each change is that of a pair. It is a lower bound on the worst case: households of other shapes, or
    under other ``MAFID``, may cost more, up to the bounds in `algorithms.phsafe.neighbors.worst`.
    """
    check_model("VAL", relation)
    columns, mafids = _Columns(read_config(config)), itertools.count(FIRST_MAFID)
    cases = list(_leaves(mafids, quick=quick))
    leaves = columns.changes(cases)
    if relation == "add_remove":
        return columns.largest(cases, leaves)
    replaced = list(_replaced(mafids, quick=quick))
    worsts, moves = columns.largest(replaced, columns.changes(replaced)), columns.longest_moves(cases, leaves)
    return {place: move if (move := moves[place]).size > worst.size else worst for place, worst in worsts.items()}


class _Columns:
    """Where each query's cells stand among the columns of a matrix of changes, and what they weigh."""

    def __init__(self, config: Config) -> None:
        self.tau = config.tau
        self.places: dict[tuple[str, str], slice] = {}
        weights: list[list[float]] = []
        for name, query in QUERIES.items():
            for code in dict.fromkeys(level.split("_")[1] for level in query.levels):
                width = len(ITERATIONS[code]) * len(query.cells)
                self.places[name, code] = slice(len(weights), len(weights) + width)
                rho = [config.budget(name, f"{region}_{code}") / config.stability(name) ** 2 for region in REGIONS]
                weights += [rho] * width
        self.weights = dict(zip(REGIONS, np.array(weights).T, strict=True))

    def changes(self, cases: Sequence[Case]) -> Changes:
        """Count every household before and after, checked in full."""
        parts = []
        for start in range(0, len(cases), BATCH):
            before, after = (
                household_counts(*derived(homes), tau=self.tau, validation="full")
                for homes in zip(*cases[start : start + BATCH], strict=True)
            )
            changed = [(after[place] - counts).reshape(len(counts), -1) for place, counts in before.items()]
            parts.append(np.concatenate(changed, axis=1, dtype=np.int16))
        return np.concatenate(parts)

    def largest(self, cases: Sequence[Case], changes: Changes) -> dict[tuple[str, str], Worst]:
        """Return the largest change of one household."""

        def worst(sizes: Floats) -> Worst:
            case = cases[int(sizes.argmax())]
            return Worst(float(sizes.max()), (case.before,), (case.after,), str(case))

        worsts: dict[tuple[str, str], Worst] = {}
        together = np.zeros(len(cases))
        for (name, code), place in self.places.items():
            squared = (changes[:, place].astype(np.float64) ** 2).sum(axis=1)
            together += squared * sum(weights[place.start] for weights in self.weights.values())
            worsts |= dict.fromkeys(((name, f"{region}_{code}") for region in REGIONS), worst(squared))
        return worsts | {ALL: worst(together)}

    def longest_moves(self, cases: Sequence[Case], leaves: Changes) -> dict[tuple[str, str], Worst]:
        """Return the largest change of two households, one of which a person leaves and another of which one joins."""
        worsts = {}
        for (name, code), place in self.places.items():
            none, one = np.zeros(place.stop - place.start), np.ones(place.stop - place.start)
            for region, weights in (("usa", (one, none)), ("state", (none, one))):
                worsts[name, f"{region}_{code}"] = _longest_move(cases, leaves[:, place], *weights)
        return worsts | {ALL: _longest_move(cases, leaves, self.weights["usa"], self.weights["state"])}


def _longest_move(cases: Sequence[Case], leaves: Changes, usa: Floats, state: Floats) -> Worst:
    """Return the move that is longest in the weighted columns, within a state or from one to another.

    Within a state, changes add up at both kinds of levels; across states, at the national levels alone.
    """
    unique, origin, inverse = np.unique(leaves, axis=0, return_index=True, return_inverse=True)
    last = np.zeros(len(unique), dtype=np.int64)
    last[inverse.ravel()] = np.arange(len(leaves))
    vectors = unique.astype(np.float64)
    norms = vectors**2 @ state
    size, i, j, apart = -1.0, 0, 0, False
    for start in range(0, len(vectors), ROWS):
        part = slice(start, start + ROWS)
        nation, same = (_distances(vectors[part], vectors, weights) for weights in (usa, usa + state))
        across = nation + norms[part, None] + norms
        alone = np.flatnonzero(origin[part] == last[part])
        across[alone, start + alone] = 0.0  # one household is not in two states
        for sizes, in_two in ((same, False), (across, True)):
            if sizes.max() > size * (1 + 1e-9):
                place = np.unravel_index(int(sizes.argmax()), sizes.shape)
                size, apart = float(sizes.max()), in_two
                i, j = int(origin[start + place[0]]), int(last[place[1]])
    leaving, joined = cases[i], cases[j]
    host = [home._replace(state=STATES[apart]) for home in (joined.after, joined.before)]
    label = f"{leaving} and joins another as {joined.person}{', in another state' * apart}"
    return Worst(size, (leaving.before, host[0]), (leaving.after, host[1]), label)


def _distances(some: Floats, others: Floats, weights: Floats) -> Floats:
    """Return the squared weighted distances, shape (some, others)."""
    squares = [(vectors**2) @ weights for vectors in (some, others)]
    return np.asarray(squares[0][:, None] + squares[1] - 2 * ((some * weights) @ others.T))


# Households


def structures(*, quick: bool = False) -> Iterator[tuple[Person, ...]]:
    """Yield valid households of many shapes, of sizes around the thresholds of the tables.

    A householder, male or female, 40 or 17 years old, lives with a spouse or unmarried partner of either age or none,
    and with company that fills the size: children of each band of ages, grandchildren, parents, roommates, and
    mixtures.
    """
    sizes = (1, 2, 7, 8, 10, 11, 12) if quick else (1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13)
    partners = (None, "21", "22", "24") if quick else (None, "21", "22", "23", "24")
    races = (("02", 2),) if quick else (("02", 2), ("01", 1))
    known = set()
    for size, partner, sex, age, partner_age, (race, hispanic) in itertools.product(
        sizes, partners, "12", (40, 17), (40, 17), races
    ):
        couple = [Person(HOUSEHOLDER, age, sex=sex)]
        if partner:
            couple.append(Person(partner, partner_age, sex=sex if partner in ("23", "24") else OTHER_SEX[sex]))
        for company in _company(size - len(couple), quick=quick):
            people = (*couple, *(Person(relship, years) for relship, years in company))
            members = tuple(person._replace(race=race, hispanic=hispanic) for person in people)
            if members not in known:
                known.add(members)
                yield members


def _company(count: int, *, quick: bool) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yield ways to fill a household up, as relationship and age."""
    if count == 0:
        yield ()
    if count <= 0:
        return
    child, small, other, roommate, grandchild = (OWN, 15), (OWN, 2), (OTHER, 40), (ROOMMATE, 40), (GRANDCHILD, 9)
    more = () if quick else ((OWN, 5), (OWN, 9), (OWN, 30), (PARENT, 70), (FOSTER, 12))
    for person in (child, small, other, roommate, grandchild, *more):
        yield (person,) * count
    for person in (other, roommate, *(() if quick else (small, grandchild))):
        yield (child,) * (count - 1) + (person,)
    if not quick:
        yield (child,) * (count // 2) + (other,) * (count - count // 2)
        yield (child,) + (roommate,) * (count - 1)


def _members(*, quick: bool) -> Iterator[tuple[Household, Person]]:
    """Yield every structure as a household, once for each of its members who differ."""
    for number, members in enumerate(structures(quick=quick)):
        home = Household(0, members, tenure="123"[number % 3])
        yield from ((home, person) for person in dict.fromkeys(members))


def _leaves(mafids: Iterator[int], *, quick: bool) -> Iterator[Case]:
    """Yield every structure without each of its members; a householder only leaves an empty unit behind."""
    for home, person in _members(quick=quick):
        if person.relship != HOUSEHOLDER or len(home.members) == 1:
            before = home._replace(mafid=next(mafids))
            yield Case(before, without(before, person))


def _replaced(mafids: Iterator[int], *, quick: bool) -> Iterator[Case]:
    """Yield structures of one race with one member replaced by somebody else in the same household."""
    for home, person in _members(quick=quick):
        place = home.members.index(person)
        for other in _others(person, quick=quick) if home.members[0].race == Person("").race else ():
            members = (*home.members[:place], other, *home.members[place + 1 :])
            if sum(member.relship in PARTNERS for member in members) <= 1:  # or the household is not valid
                before = home._replace(mafid=next(mafids))
                yield Case(before, before._replace(members=members))


def _others(person: Person, *, quick: bool) -> Iterator[Person]:
    """Yield who may be in a person's place; a householder stays one."""
    if person.relship != HOUSEHOLDER:
        yield from (other for other in (() if quick else ARRIVALS) if other != person)
        return
    other = person._replace(sex=OTHER_SEX[person.sex])
    yield from (other, *(one._replace(race="01", hispanic=1) for one in (person, other, person._replace(age=30))))
