"""Valid households of many shapes, among which the search looks for the worst."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from algorithms.phsafe.neighbors.households import Person
from algorithms.phsafe.schema import HOUSEHOLDER

__all__ = ["OTHER_SEX", "structures"]

OTHER_SEX = {"1": "2", "2": "1"}
OWN, GRANDCHILD, PARENT, OTHER, ROOMMATE, FOSTER = "25", "30", "29", "33", "34", "35"


def structures(*, quick: bool = False) -> Iterator[tuple[Person, ...]]:
    """Yield valid households of many shapes, of sizes around the thresholds of the tables.

    A householder, male or female, 40 or 17 years old, lives with a spouse or unmarried partner of either age or none,
    and with company that fills the size: children of each band of ages, grandchildren, parents, roommates, and
    mixtures.
    """
    sizes = (1, 2, 7, 8, 10, 11, 12) if quick else (1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13)
    partners = (None, "21", "22", "24") if quick else (None, "21", "22", "23", "24")
    races = (("02", 2),) if quick else (("02", 2), ("01", 1))
    seen = set()
    for size, partner, sex, age, partner_age, (race, hispanic) in itertools.product(
        sizes, partners, "12", (40, 17), (40, 17), races
    ):
        couple = [Person(HOUSEHOLDER, age, sex=sex)]
        if partner:
            couple.append(Person(partner, partner_age, sex=sex if partner in ("23", "24") else OTHER_SEX[sex]))
        for company in _company(size - len(couple), quick=quick):
            people = (*couple, *(Person(relship, years) for relship, years in company))
            members = tuple(person._replace(race=race, hispanic=hispanic) for person in people)
            if members not in seen:
                seen.add(members)
                yield members


def _company(count: int, *, quick: bool) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yield ways to fill a household up, as relationship and age."""
    if count < 0:
        return
    if count == 0:
        yield ()
        return
    child, small = (OWN, 15), (OWN, 2)
    alike = [child, small, (OTHER, 40), (ROOMMATE, 40), (GRANDCHILD, 9)]
    if not quick:
        alike += [(OWN, 5), (OWN, 9), (OWN, 30), (PARENT, 70), (FOSTER, 12)]
    for one in alike:
        yield (one,) * count
    for one in [(OTHER, 40), (ROOMMATE, 40), *([] if quick else [small, (GRANDCHILD, 9)])]:
        yield (child,) * (count - 1) + (one,)
    if not quick:
        yield (child,) * (count // 2) + ((OTHER, 40),) * (count - count // 2)
        yield (child,) + ((ROOMMATE, 40),) * (count - 1)
