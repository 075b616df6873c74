"""Searches valid households for neighbors that cost more than those known: thousands are counted at once.

What a person leaving does to a household is computed for many households and every member who may leave, each case
under a ``MAFID`` of its own in one database, before and after, by the SQL of a release. Someone who joins undoes what
someone who leaves does, and a person replaced can be anyone: so all moves between two households are differences of two
leaves, and the longest of them is found by products of matrices. Persons replaced in place are tried one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from algorithms.phsafe.budget import Config, Settings, read_config
from algorithms.phsafe.neighbors.households import FIRST_MAFID, Household, Person, derived
from algorithms.phsafe.neighbors.pairs import HouseholdPair, check_model
from algorithms.phsafe.neighbors.stability import household_counts
from algorithms.phsafe.neighbors.structures import OTHER_SEX, structures
from algorithms.phsafe.neighbors.valid import valid_pair
from algorithms.phsafe.schema import HOUSEHOLDER, PARTNERS
from algorithms.phsafe.tables import ITERATIONS, QUERIES
from audit.claims import Relation

__all__ = ["Worst", "search_worst"]

BATCH = 10_000  # households counted at a time
STATES = ("01", "02")
ARRIVALS = (  # who may take the place of a member
    *(Person("21"), Person("22", 17), Person("25", 15), Person("33")),
    *(Person("24"), Person("25", 2), Person("25", 15, "01", 1), Person("34")),
)

REGIONS = ("usa", "state")
ALL = ("all", "all")

Changes = NDArray[np.int16]  # (cases, columns): by how much each cell of each query changes
Floats = NDArray[np.float64]


class Case(NamedTuple):
    """What happens to one household."""

    before: Household
    after: Household


@dataclass(frozen=True)
class Worst:
    """The largest change that was found.

    Attributes
    ----------
    size : float
        Squared L2 change of a query at a level; over all of them, the rho that is spent.
    x, y : tuple of Household
        Households of either database.
    label : str
        What happens, in words.
    """

    size: float
    x: tuple[Household, ...]
    y: tuple[Household, ...]
    label: str

    @cached_property
    def pair(self) -> HouseholdPair:
        """The neighbors, checked."""
        return valid_pair(self.x, self.y, self.label)


def search_worst(
    relation: Relation = "add_remove", *, config: Settings = "us", quick: bool = False, first: int = FIRST_MAFID
) -> dict[tuple[str, str], Worst]:
    """Search valid neighbors (model VAL) for the largest change of every query at every level.

    Parameters
    ----------
    relation : {"add_remove", "replace_one"}
        Whether one person is removed, or replaced: in place, or by moving.
    config : what `read_config` takes
        Thresholds, and the budgets by which the queries count where they are taken together.
    quick : bool
        Whether to try fewer households, and to replace householders alone.
    first : int
        ``MAFID`` of the first case. Another one is another order of truncation in every household: the search is the
        same whenever this is.

    Returns
    -------
    dict of (str, str) to Worst
        By query and level; of all together under ``("all", "all")``.

    Raises
    ------
    ValueError
        If there is no such relation.

    Notes
    -----
    Guarantee: each is reached by its pair. It is a lower bound on the worst case: households of other shapes, or
    under other ``MAFID``, may cost more, up to the bounds in `algorithms.phsafe.neighbors.worst`.
    """
    check_model("VAL", relation)
    settings = read_config(config)
    columns = _Columns(settings)
    mafids = count(first)
    leaves = list(_leaves(mafids, quick=quick))
    changes = columns.changes(leaves)
    if relation == "add_remove":
        return columns.largest(leaves, changes)
    replaced = list(_replaced(mafids, quick=quick))
    found = columns.largest(replaced, columns.changes(replaced))
    for place, worst in columns.longest_moves(leaves, changes).items():
        if worst.size > found[place].size:
            found[place] = worst
    return found


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
            befores, afters = zip(*cases[start : start + BATCH], strict=True)
            before, after = (
                household_counts(*derived(homes), tau=self.tau, validation="full") for homes in (befores, afters)
            )
            changed = [(after[place] - before[place]).reshape(len(befores), -1) for place in self.places]
            parts.append(np.concatenate(changed, axis=1, dtype=np.int16))
        return np.concatenate(parts)

    def largest(self, cases: Sequence[Case], changes: Changes) -> dict[tuple[str, str], Worst]:
        """Return the largest change of one household."""

        def worst(sizes: Floats) -> Worst:
            case = cases[int(sizes.argmax())]
            return Worst(float(sizes.max()), (case.before,), (case.after,), _told(case))

        found: dict[tuple[str, str], Worst] = {}
        together = np.zeros(len(cases))
        for (name, code), place in self.places.items():
            squared = (changes[:, place].astype(np.float64) ** 2).sum(axis=1)
            together += squared * sum(weights[place.start] for weights in self.weights.values())
            found |= dict.fromkeys(((name, f"{region}_{code}") for region in REGIONS), worst(squared))
        return found | {ALL: worst(together)}

    def longest_moves(self, cases: Sequence[Case], leaves: Changes) -> dict[tuple[str, str], Worst]:
        """Return the largest change of two households, one of which a person leaves and another of which one joins."""
        found = {}
        for (name, code), place in self.places.items():
            none, one = np.zeros(place.stop - place.start), np.ones(place.stop - place.start)
            for region, weights in (("usa", (one, none)), ("state", (none, one))):
                found[name, f"{region}_{code}"] = _longest_move(cases, leaves[:, place], *weights)
        return found | {ALL: _longest_move(cases, leaves, self.weights["usa"], self.weights["state"])}


def _longest_move(cases: Sequence[Case], leaves: Changes, usa: Floats, state: Floats) -> Worst:
    """Return the move that is longest in the weighted columns, within a state or from one to another.

    Within a state, changes add up at both kinds of levels; across states, at the national levels alone.
    """
    unique, origin, inverse = np.unique(leaves, axis=0, return_index=True, return_inverse=True)
    last = np.zeros(len(unique), dtype=np.int64)
    last[inverse.ravel()] = np.arange(len(leaves))
    vectors = unique.astype(np.float64)
    norms = vectors**2 @ state
    found, i, j, apart = -1.0, 0, 0, False
    for start in range(0, len(vectors), 1_000):
        part = slice(start, start + 1_000)
        nation, same = (_distances(vectors[part], vectors, weights) for weights in (usa, usa + state))
        across = nation + norms[part, None] + norms
        alone = np.flatnonzero(origin[part] == last[part])
        across[alone, start + alone] = 0.0  # one household is not in two states
        for sizes, states in ((same, 1), (across, 2)):
            if sizes.max() > found * (1 + 1e-9):
                place = np.unravel_index(int(sizes.argmax()), sizes.shape)
                found, apart = float(sizes.max()), states == 2
                i, j = int(origin[start + place[0]]), int(last[place[1]])
    left, joined = cases[i], cases[j]
    host = [home._replace(state=STATES[apart]) for home in (joined.after, joined.before)]
    label = f"{_told(left)} and joins another as {_member(joined)}{', in another state' * apart}"
    return Worst(found, (left.before, host[0]), (left.after, host[1]), label)


def _distances(some: Floats, others: Floats, weights: Floats) -> Floats:
    """Return the squared weighted distances, shape (some, others)."""
    squares = [(vectors**2) @ weights for vectors in (some, others)]
    return np.asarray(squares[0][:, None] + squares[1] - 2 * ((some * weights) @ others.T))


def _leaves(mafids: Iterator[int], *, quick: bool) -> Iterator[Case]:
    """Yield every structure without each of its members; a householder only leaves an empty unit behind."""
    for number, members in enumerate(structures(quick=quick)):
        for person in dict.fromkeys(members):
            if person.relship != HOUSEHOLDER or len(members) == 1:
                place = members.index(person)
                before = Household(next(mafids), members, tenure="123"[number % 3])
                yield Case(before, before._replace(members=members[:place] + members[place + 1 :]))


def _replaced(mafids: Iterator[int], *, quick: bool) -> Iterator[Case]:
    """Yield structures of one race with one member replaced by somebody else in the same household."""
    for number, members in enumerate(structures(quick=quick)):
        for person in dict.fromkeys(members) if members[0].race == Person("").race else ():
            for other in _others(person, quick=quick):
                place = members.index(person)
                replaced = (*members[:place], other, *members[place + 1 :])
                if sum(member.relship in PARTNERS for member in replaced) <= 1:  # or the household is not valid
                    before = Household(next(mafids), members, tenure="123"[number % 3])
                    yield Case(before, before._replace(members=replaced))


def _others(person: Person, *, quick: bool) -> Iterator[Person]:
    """Yield who may be in a person's place; a householder stays one."""
    if person.relship != HOUSEHOLDER:
        yield from (other for other in (() if quick else ARRIVALS) if other != person)
        return
    other = person._replace(sex=OTHER_SEX[person.sex])
    yield from (other, *(one._replace(race="01", hispanic=1) for one in (person, other, person._replace(age=30))))


def _member(case: Case) -> str:
    """Return who is in a household only before, or who the householder was."""
    (gone,) = Counter(case.before.members) - Counter(case.after.members)
    return f"{gone.relship} of age {gone.age}"


def _told(case: Case) -> str:
    people = len(case.before.members)
    what = "leaves" if len(case.after.members) < people else "is replaced in"
    return f"{_member(case)} {what} a household of {people}"
