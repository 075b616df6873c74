"""Pairs of neighbors with the largest known privacy loss, for each query, level and model, and for a whole run.

Losses are squared L2 changes of counts. Under VAL they are the largest found, so lower bounds; 2 tau^2 (one ``MAFID``)
and 8 tau^2 (two) are proved upper bounds: at most tau rows leave a household and at most tau enter it, so the L2 norm
of its change is at most sqrt(2) tau. Under DER they are the maximum for each query. Under API they are attained, and
(2 tau + 1)^2 + 1 is an upper bound: two rows of units move tau persons each, and the person moves one row out of a cell
and one into another. `algorithms.phsafe.neighbors.pairs` defines the models.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from algorithms.phsafe.budget import Settings, read_config
from algorithms.phsafe.neighbors.households import (
    FIRST_MAFID,
    Household,
    Person,
    Unit,
    database,
    derived,
    joined,
    placed,
    placements,
    without,
)
from algorithms.phsafe.neighbors.pairs import HouseholdPair, Model, check_model
from algorithms.phsafe.schema import STATES
from algorithms.phsafe.tables import IN_HOUSEHOLD, QUERIES
from audit.claims import Relation

__all__ = ["joint_pair", "pair_of", "worst_pair"]

States = tuple[str, str]  # equal if there is only one state

A, B, C, D, E, F = range(FIRST_MAFID, FIRST_MAFID + 6_000_000, 1_000_000)

WOMAN, MAN, YOUTH = Person("20", sex="2"), Person("20"), Person("20", 17)
SPOUSE, PARTNER, YOUNG_PARTNER = Person("21"), Person("22", sex="2"), Person("22", 17, sex="2")
CHILD, YOUNG, SIBLING = Person("25", 15), Person("25", 2), Person("28", 15)
GRANDCHILD, RELATIVE, ROOMMATE = Person("30", 9), Person("33"), Person("34")
ENTRANT = {"PH1_num": RELATIVE, "PH4": RELATIVE, "PH3": GRANDCHILD, "PH6": YOUNG}  # other cell than `CHILD`
MARRIED = Unit("1", "01", "1")
SHIFTED = Unit("3", "06", "5", race="01", hispanic=1, tenure="3")  # unlike `MARRIED` in every cell and group
ONE_CELL = ("PH1_num", "PH4", "PH1_denom", "PH5_denom")  # cells that do not depend on rows of units


def worst_pair(
    table: str, level: str, model: Model = "VAL", relation: Relation = "add_remove", config: Settings | None = None
) -> HouseholdPair:
    """Return the known pair with the largest change of a query at a level, by default with the settings of 2020."""
    check_model(model, relation)
    read_config("us").budget(table, level)  # refuses unknown queries and levels
    taus, states = _settings(config)
    tau, replaced, total = taus.get(table, 1), relation == "replace_one", level.endswith("*")
    if model == "API":
        return _rows_elsewhere(table, tau, states, replaced)
    if model == "DER":
        return _row_changes(tau, states, replaced, vanishes=total and table in ONE_CELL)
    if table in ("PH2", "PH3", "PH6"):
        return _spouse_moves(tau, None, states) if replaced else _spouse_leaves(tau, states, counted=False)
    if replaced and not total:
        return _householder_changes(tau, states)
    across = replaced and level.startswith("state") and len(set(states)) == 2
    if table in ("PH1_num", "PH4") or (table == "PH5_denom" and not across):
        return _relative_leaves(table, taus["PH4" if table == "PH5_denom" else table], states, replaced)
    return _occupant_leaves(table, states, replaced, across)


def joint_pair(
    model: Model = "VAL", relation: Relation = "add_remove", config: Settings | None = None, *, in_place: bool = False
) -> HouseholdPair:
    """Return the known pair with the largest loss of a run, by the budgets of 2020; `in_place` replaces at home."""
    check_model(model, relation)
    taus, states = _settings(config)
    tau, replaced = max(taus.values()), relation == "replace_one"
    if in_place:
        if (model, relation) != ("VAL", "replace_one"):
            raise ValueError(f"in_place must be asked for under VAL and replace_one, got {model} and {relation}")
        return _householder_changes_all(tau, states)
    if model == "API":
        return _rows_elsewhere(None, tau, states, replaced)
    if model == "DER":
        return _row_changes(tau, states, replaced, vanishes=False)
    return _spouse_moves(tau, taus["PH3"], states) if replaced else _spouse_leaves(tau, states, counted=True)


def _settings(config: Settings | None) -> tuple[Mapping[str, int], States]:
    settings = read_config("us" if config is None else config)
    states = STATES[:2] if config is None else settings.states
    return settings.tau, (states[0], states[-1])


@cache
def pair_of(x: tuple[Household, ...], y: tuple[Household, ...], label: str, model: Model = "VAL") -> HouseholdPair:
    """Return neighbors; both databases contain an unchanged household, so that no frame is empty."""
    alone = Household(FIRST_MAFID + 99_000_000, (Person("20"),), "1", x[0].state, (Unit("4", "09", "5"),))
    people = [sum(len(home.members) for home in homes) for homes in (x, y)]
    relation: Relation = "replace_one" if people[0] == people[1] else "add_remove"
    frames = derived if model == "VAL" else database
    return HouseholdPair(frames([*x, alone]), frames([*y, alone]), model, relation, label)


def _leaves(label: str, home: Household, person: Person, *arrival: Household) -> HouseholdPair:
    """Return a pair in which a person leaves a home; `arrival` is another home before and after the person arrives."""
    return pair_of((home, *arrival[:1]), (without(home, person), *arrival[1:]), label)


def _crowded(home: Household, entrant: Person, tau: int, last: Person, condition: str = IN_HOUSEHOLD) -> Household:
    """Return the household with `entrant` added, under a ``MAFID`` for which truncation leaves out only `last`."""
    return placed(joined(home, entrant), tau, lambda order: order[tau] == last[:2], condition)


# Model VAL: databases are valid, and unit rows are derived from the members


def _married(tau: int, states: States, *, counted: bool) -> Household:
    """Return a family with a spouse; if `counted`, truncation keeps the spouse, and a child is the first left out."""
    family = Household(A, (WOMAN, SPOUSE, *(CHILD,) * tau), state=states[0])
    if not counted:
        return family
    return placed(family, tau, lambda order: SPOUSE[:2] in order[:tau] and order[tau] == CHILD[:2])


def _spouse_leaves(tau: int, states: States, *, counted: bool) -> HouseholdPair:
    """Let a spouse leave: all counted persons change household type; if `counted`, a child is counted instead."""
    family = _married(tau, states, counted=counted)
    label = f"a spouse{' who is counted' * counted} leaves a family of {len(family.members)}"
    return _leaves(label + ", and a child is counted instead" * counted, family, SPOUSE)


def _spouse_moves(tau: int, few: int | None, states: States) -> HouseholdPair:
    """Let a spouse leave one household and join another as a partner; the four household types all differ.

    With `few`, a child is counted for an adult in both households, and the partner is not among the first `few`.
    """
    family = _married(tau, states, counted=few is not None)
    label = f"leaves a family of {len(family.members)} and becomes"
    if few is None:
        other = Household(B, (MAN, *(CHILD,) * tau), state=states[0])
        label = f"a spouse {label} an unmarried partner in another"
        return _leaves(label, family, SPOUSE, other, joined(other, PARTNER))
    other = Household(B, (MAN, *(CHILD,) * (tau - 1)), state=states[0])
    grown = placed(
        joined(other, YOUNG_PARTNER), tau, lambda order: order[tau] == MAN[:2] and YOUNG_PARTNER[:2] not in order[:few]
    )
    label = f"a spouse who is counted {label} a partner of 17 in another, where the householder is then not counted"
    return _leaves(label, family, SPOUSE, grown._replace(members=other.members), grown)


def _householder_changes(tau: int, states: States) -> HouseholdPair:
    family = Household(A, (WOMAN, *(RELATIVE,) * max(1, tau - 1)), state=states[0])
    other = family._replace(members=(WOMAN._replace(race="01", hispanic=1), *family.members[1:]))
    label = f"the householder of a family of {len(family.members)} changes race and origin"
    return pair_of((family,), (other,), label)


def _householder_changes_all(tau: int, states: States) -> HouseholdPair:
    """As `_householder_changes`, but the householder is not counted, and also changes sex and so household type."""
    children = (CHILD,) * (tau + 1)
    families = (
        placements(Household(A, (head, *children), state=states[0]), tau)
        for head in (WOMAN, Person("20", 40, "01", 1, "1"))
    )
    family, other = next(
        (family, other)
        for (family, before), (other, after) in zip(*families, strict=True)
        if WOMAN[:2] in before[tau:] and WOMAN[:2] in after[tau:]
    )
    label = f"the householder of a family of {len(family.members)}, not counted, changes race, origin and sex"
    return pair_of((family,), (other,), label)


def _relative_leaves(table: str, tau: int, states: States, replaced: bool) -> HouseholdPair:
    """Let a child (PH1_num) or the last relative leave; if `replaced`, an adult elsewhere is counted for a child."""
    large, other = (Household(mafid, (WOMAN, *(CHILD,) * (tau - 1)), state=states[0]) for mafid in (A, B))
    if table == "PH1_num":
        family, leaver = _crowded(large, RELATIVE, tau, RELATIVE), CHILD
        label = f"a child leaves a family of {len(family.members)}, and an adult is counted instead"
        moved = (
            "a child leaves a large family and arrives as an adult in another; an adult is counted instead of a child"
        )
    else:
        family, leaver = Household(A, (YOUTH, SIBLING), state=states[0]), SIBLING
        label = "the last relative of a householder of 17 leaves"
        moved = f"{label.removesuffix('leaves')}arrives in a large family, as an adult counted instead of a child"
    if not replaced:
        return _leaves(label, family, leaver)
    grown = _crowded(other, RELATIVE, tau, CHILD)
    return _leaves(moved + ", twice" * (leaver == CHILD), family, leaver, without(grown, RELATIVE), grown)


def _occupant_leaves(table: str, states: States, replaced: bool, across: bool) -> HouseholdPair:
    """Let the only occupant leave; for families `across` states, let the last relative move to another family."""
    home, woman = Household(A, (WOMAN,), state=states[0]), Household(B, (WOMAN,), state=states[1])
    if table == "PH5_denom" and across:
        label = "the last relative of one householder joins another, in another state"
        return _leaves(label, joined(home, CHILD), CHILD, woman, joined(woman, CHILD))
    label = "the only occupant"
    if not replaced:
        return _leaves(f"{label} leaves", home, WOMAN)
    if table == "PH1_denom" and not across:
        other = Household(B, (MAN,), state=states[0])
        return _leaves(f"{label} joins another", home, WOMAN, other, joined(other, ROOMMATE))
    empty = Household(B, tenure="3", state=states[1])
    label += ", an owner, moves to a vacant rented unit" + " in another state" * (states[0] != states[1])
    return _leaves(label, home, WOMAN, empty, joined(empty, WOMAN))


# Models DER and API: rows of units are given


def _row_changes(tau: int, states: States, replaced: bool, *, vanishes: bool) -> HouseholdPair:
    """Move all counted persons of a unit to other cells; if `replaced`, of two units, in the same direction."""
    full, rows = (CHILD,) * (tau + 1), () if vanishes else (SHIFTED,)
    homes = [Household(mafid, full, state=states[0], units=(MARRIED,)) for mafid in (A, B)]
    x = (homes[0], *([without(homes[1], CHILD)] if replaced else []))
    y = (without(homes[0], CHILD), *([homes[1]] if replaced else []))
    what = "rows of units vanish" if vanishes else "rows of units change everywhere"
    many = "a person moves between two households" if replaced else f"one of {tau + 1} persons leaves"
    return pair_of(x, tuple(home._replace(units=rows) for home in y), f"{many}: {what}", "DER")


def _rows_elsewhere(table: str | None, tau: int, states: States, replaced: bool) -> HouseholdPair:
    """Delete the rows of two other households (four if `replaced`), and let the person's own change add to that."""
    homes = [Household(mafid, (CHILD,) * tau, state=states[0], units=(MARRIED,)) for mafid in (A, B, C, D, E, F)]
    gone, (home, host) = homes[: 4 if replaced else 2], homes[4:]
    if table in ENTRANT:  # counted once a child leaves; in the other household, in place of a child
        entrant, condition = ENTRANT[table], str(QUERIES[table].persons)
        home = _crowded(home, entrant, tau, entrant, condition)
        arrived = _crowded(host, entrant, tau, CHILD, condition)
        host = arrived._replace(members=host.members)
    else:
        home = home._replace(members=(CHILD,))
        host = host._replace(members=(), units=(SHIFTED,))
        arrived = joined(host, CHILD)
    x = (*gone, home, *((host,) if replaced else ()))
    y = (*(one._replace(units=()) for one in gone), without(home, CHILD), *((arrived,) if replaced else ()))
    label = f"{'four' if replaced else 'two'} rows of units vanish where the person is not"
    return pair_of(x, y, label, "API")
