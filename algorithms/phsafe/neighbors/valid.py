"""Valid neighbors (model VAL) that cost the most, of all that are known: who leaves or moves, and its effect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from algorithms.phsafe.neighbors.households import (
    FIRST_MAFID,
    Household,
    Person,
    accompanied,
    candidates,
    derived,
    joined,
    placed,
    ranked,
    without,
)
from algorithms.phsafe.neighbors.pairs import HouseholdPair
from algorithms.phsafe.tables import IN_HOUSEHOLD
from audit.claims import Relation

__all__ = [
    "child_leaves",
    "householder_changes",
    "householder_changes_all",
    "occupant_leaves",
    "occupant_moves",
    "relative_leaves",
    "relative_moves",
    "spouse_leaves",
    "spouse_leaves_jointly",
    "spouse_moves",
    "spouse_moves_jointly",
    "valid_pair",
]

States = tuple[str, str]  # the same twice where there is only one

A, B = FIRST_MAFID, FIRST_MAFID + 1_000_000

WOMAN, MAN, YOUTH = Person("20", sex="2"), Person("20"), Person("20", 17)
SPOUSE, PARTNER, YOUNG_PARTNER = Person("21"), Person("22", sex="2"), Person("22", 17, sex="2")
CHILD, SIBLING, RELATIVE, ROOMMATE = Person("25", 15), Person("28", 15), Person("33"), Person("34")


def valid_pair(x: Sequence[Household], y: Sequence[Household], label: str) -> HouseholdPair:
    """Return neighbors under VAL: households whose unit rows follow from the members, and one more in both."""
    people = [sum(len(home.members) for home in homes) for homes in (x, y)]
    relation: Relation = "replace_one" if people[0] == people[1] else "add_remove"
    return HouseholdPair(derived(accompanied(x)), derived(accompanied(y)), "VAL", relation, label)


@cache
def spouse_leaves(tau: int, states: States) -> HouseholdPair:
    """Let a spouse leave: everyone else who is counted is then in another type of household."""
    family = Household(A, (WOMAN, SPOUSE, *(CHILD,) * tau), state=states[0])
    return valid_pair([family], [without(family, SPOUSE)], f"a spouse leaves a family of {len(family.members)}")


@cache
def spouse_leaves_jointly(tau: int, states: States) -> HouseholdPair:
    """As `spouse_leaves`, and a child replaces the spouse in the truncated sample."""
    family = Household(A, (WOMAN, SPOUSE, *(CHILD,) * tau), state=states[0])
    family = placed(family, tau, lambda order: SPOUSE[:2] in order[:tau] and order[tau] == CHILD[:2])
    label = f"a spouse who is counted leaves a family of {len(family.members)}, and a child is counted instead"
    return valid_pair([family], [without(family, SPOUSE)], label)


@cache
def spouse_moves(tau: int, states: States) -> HouseholdPair:
    """Let a spouse leave one household and join another as a partner; none of the four types is the same."""
    family = Household(A, (WOMAN, SPOUSE, *(CHILD,) * tau), state=states[0])
    other = Household(B, (MAN, *(CHILD,) * tau), state=states[0])
    label = f"a spouse leaves a family of {len(family.members)} and becomes an unmarried partner in another"
    return valid_pair([family, other], [without(family, SPOUSE), joined(other, PARTNER)], label)


@cache
def spouse_moves_jointly(tau: int, few: int, states: States) -> HouseholdPair:
    """As `spouse_moves`, and in both households someone under 18 replaces an adult in the truncated sample.

    The partner is not among the first `few`, who are counted as children.
    """
    family = placed(
        Household(A, (WOMAN, SPOUSE, *(CHILD,) * tau), state=states[0]),
        tau,
        lambda order: SPOUSE[:2] in order[:tau] and order[tau] == CHILD[:2],
    )
    other = (MAN, *(CHILD,) * (tau - 1))
    grown = placed(
        Household(B, (*other, YOUNG_PARTNER), state=states[0]),
        tau,
        lambda order: order[tau] == MAN[:2] and YOUNG_PARTNER[:2] not in order[:few],
    )
    label = (
        f"a spouse who is counted leaves a family of {len(family.members)} and becomes a partner of 17 in another, "
        "where the householder is then not counted"
    )
    return valid_pair([family, grown._replace(members=other)], [without(family, SPOUSE), grown], label)


@cache
def householder_changes(tau: int, states: States) -> HouseholdPair:
    """Let the householder change race and origin: all who are counted are then in other population groups."""
    family = Household(A, (WOMAN, *(RELATIVE,) * max(1, tau - 1)), state=states[0])
    other = family._replace(members=(WOMAN._replace(race="01", hispanic=1), *family.members[1:]))
    return valid_pair(
        [family], [other], f"the householder of a family of {len(family.members)} changes race and origin"
    )


@cache
def householder_changes_all(tau: int, states: States) -> HouseholdPair:
    """As `householder_changes`, and the householder, not counted, changes sex and so the type of household."""
    families = candidates(Household(A, (WOMAN, *(CHILD,) * (tau + 1)), state=states[0]))
    others = [family._replace(members=(Person("20", 40, "01", 1, "1"), *family.members[1:])) for family in families]
    orders = [ranked(homes, IN_HOUSEHOLD, tau) for homes in (families, others)]
    family, other = next(
        (family, other)
        for family, other in zip(families, others, strict=True)
        if all(WOMAN[:2] in order[family.mafid][tau:] for order in orders)
    )
    label = f"the householder of a family of {len(family.members)}, not counted, changes race, origin and sex"
    return valid_pair([family], [other], label)


@cache
def child_leaves(tau: int, states: States, replaced: bool) -> HouseholdPair:
    """Let a child leave, and an adult be counted instead; who is replaced arrives elsewhere as an adult."""
    template = Household(A, (WOMAN, *(CHILD,) * (tau - 1), RELATIVE), state=states[0])
    family = placed(template, tau, lambda order: order[tau] == RELATIVE[:2])
    if not replaced:
        label = f"a child leaves a family of {len(family.members)}, and an adult is counted instead"
        return valid_pair([family], [without(family, CHILD)], label)
    grown = placed(template._replace(mafid=B), tau, lambda order: order[tau] == CHILD[:2])
    label = "a child leaves a large family and arrives as an adult in another; an adult is counted instead of a child"
    return valid_pair([family, without(grown, RELATIVE)], [without(family, CHILD), grown], f"{label}, twice")


@cache
def relative_leaves(tau: int, states: States, replaced: bool) -> HouseholdPair:
    """Let the last relative leave: the family ends. Who is replaced arrives in a large family as an adult."""
    family = Household(A, (YOUTH, SIBLING), state=states[0])
    if not replaced:
        return valid_pair([family], [without(family, SIBLING)], "the last relative of a householder of 17 leaves")
    template = Household(B, (WOMAN, *(CHILD,) * (tau - 1), RELATIVE), state=states[0])
    grown = placed(template, tau, lambda order: order[tau] == CHILD[:2])
    label = "the last relative of a householder of 17 arrives in a large family, as an adult counted instead of a child"
    return valid_pair([family, without(grown, RELATIVE)], [without(family, SIBLING), grown], label)


@cache
def relative_moves(states: States) -> HouseholdPair:
    """Let the last relative of one householder join another: one family ends, another begins."""
    family, alone = Household(A, (WOMAN, CHILD), state=states[0]), Household(B, (WOMAN,), state=states[1])
    label = "the last relative of one householder joins another, in another state"
    return valid_pair([family, alone], [without(family, CHILD), joined(alone, CHILD)], label)


@cache
def occupant_leaves(states: States, replaced: bool) -> HouseholdPair:
    """Let the only occupant leave: the unit is then vacant. Who is replaced joins another household."""
    home, other = Household(A, (WOMAN,), state=states[0]), Household(B, (MAN,), state=states[0])
    if not replaced:
        return valid_pair([home], [without(home, WOMAN)], "the only occupant leaves")
    return valid_pair([home, other], [without(home, WOMAN), joined(other, ROOMMATE)], "the only occupant joins another")


@cache
def occupant_moves(states: States) -> HouseholdPair:
    """Let the only occupant move to a vacant unit: one unit is then vacant, the other occupied."""
    home, empty = Household(A, (WOMAN,), state=states[0]), Household(B, tenure="3", state=states[1])
    label = "the only occupant, an owner, moves to a vacant rented unit" + " in another state" * (
        states[0] != states[1]
    )
    return valid_pair([home, empty], [without(home, WOMAN), joined(empty, WOMAN)], label)
