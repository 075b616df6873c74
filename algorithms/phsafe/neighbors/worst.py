"""The pairs of neighbors that cost the most, of all that are known: for each query, level and model, and a run.

VAL numbers are the best found, so lower bounds; 2 tau^2 (one ``MAFID``) and 8 tau^2 (two) are proved bounds: at most
tau rows leave a household and at most tau enter it, so that its change is at most sqrt(2) tau long. DER numbers are the
largest there are, query by query. API numbers are reached; that nothing lies above (2 tau + 1)^2 + 1 follows from two
rows of units that move tau persons each, and a person who moves one out of a cell and one into another. What the models
allow is said in `algorithms.phsafe.neighbors.pairs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from algorithms.phsafe.budget import Settings, read_config
from algorithms.phsafe.neighbors import valid
from algorithms.phsafe.neighbors.households import (
    FIRST_MAFID,
    Household,
    Person,
    Unit,
    accompanied,
    database,
    joined,
    placed,
    without,
)
from algorithms.phsafe.neighbors.pairs import HouseholdPair, Model, check_model
from algorithms.phsafe.schema import STATES
from algorithms.phsafe.tables import QUERIES, TAU
from audit.claims import Relation

__all__ = ["joint_pair", "worst_pair"]

States = tuple[str, str]  # the same twice where there is only one

A, B, C, D, E, F = range(FIRST_MAFID, FIRST_MAFID + 6_000_000, 1_000_000)

CHILD, YOUNG, GRANDCHILD, RELATIVE = Person("25", 15), Person("25", 2), Person("30", 9), Person("33")
ENTRANT = {"PH1_num": RELATIVE, "PH4": RELATIVE, "PH3": GRANDCHILD, "PH6": YOUNG}  # not in the cell of `CHILD`
MARRIED = Unit("1", "01", "1")
SHIFTED = Unit("3", "06", "5", race="01", hispanic=1, tenure="3")  # other cells and population groups everywhere
ONE_CELL = ("PH1_num", "PH4", "PH1_denom", "PH5_denom")  # in which no row of units tells where a person counts


def worst_pair(
    table: str, level: str, model: Model = "VAL", relation: Relation = "add_remove", config: Settings | None = None
) -> HouseholdPair:
    """Return the pair of neighbors that moves a query at a level the most, of all that are known.

    Thresholds and states are those of `config`; by default those of the 2020 Census, in the fifty states.
    """
    check_model(model, relation)
    if table not in QUERIES:
        raise ValueError(f"table must be one of {', '.join(QUERIES)}, got {table!r}")
    if level not in QUERIES[table].levels:
        raise ValueError(f"level of {table} must be one of {', '.join(QUERIES[table].levels)}, got {level!r}")
    taus, states = _settings(config)
    tau, replaced, total = taus.get(table, 1), relation == "replace_one", level.endswith("*")
    if model == "API":
        return _rows_elsewhere(ENTRANT.get(table), tau, states, replaced)
    if model == "DER":
        return _row_changes(tau, states, replaced, vanishes=total and table in ONE_CELL)
    if table in ("PH2", "PH3", "PH6"):
        return valid.spouse_moves(tau, states) if replaced else valid.spouse_leaves(tau, states)
    if replaced and not total:
        return valid.householder_changes(tau, states)
    if table == "PH1_num":
        return valid.child_leaves(tau, states, replaced)
    across = replaced and level.startswith("state") and len(set(states)) == 2
    if table == "PH4" or (table == "PH5_denom" and not across):
        return valid.relative_leaves(taus["PH4"], states, replaced)
    if table == "PH5_denom":
        return valid.relative_moves(states)
    if table == "PH1_denom" and not across:
        return valid.occupant_leaves(states, replaced)
    return valid.occupant_moves(states) if replaced else valid.occupant_leaves(states, False)


def joint_pair(
    model: Model = "VAL", relation: Relation = "add_remove", config: Settings | None = None, *, in_place: bool = False
) -> HouseholdPair:
    """Return the pair of neighbors that costs the most over all queries and levels of a run, of all that are known.

    As `worst_pair`; the budgets are taken for those of the 2020 Census. Replaced `in_place`, a person stays at home.
    """
    check_model(model, relation)
    taus, states = _settings(config)
    tau, replaced = max(taus.values()), relation == "replace_one"
    if in_place:
        if (model, relation) != ("VAL", "replace_one"):
            raise ValueError(f"in_place must be asked for under VAL and replace_one, got {model} and {relation}")
        return valid.householder_changes_all(tau, states)
    if model == "API":
        return _rows_elsewhere(None, tau, states, replaced)
    if model == "DER":
        return _row_changes(tau, states, replaced, vanishes=False)
    return (
        valid.spouse_moves_jointly(tau, taus["PH3"], states) if replaced else valid.spouse_leaves_jointly(tau, states)
    )


@cache
def _row_changes(tau: int, states: States, replaced: bool, vanishes: bool) -> HouseholdPair:
    """Everyone who is counted moves in one direction, twice if a person is replaced: joins need not undo leaves."""
    full, after = (CHILD,) * (tau + 1), () if vanishes else (SHIFTED,)
    before = Household(A, full, state=states[0], units=(MARRIED,))
    x, y = [before], [before._replace(members=full[1:], units=after)]
    if replaced:
        x.append(Household(B, full[1:], state=states[0], units=(MARRIED,)))
        y.append(Household(B, full, state=states[0], units=after))
    what = "rows of units vanish" if vanishes else "rows of units change everywhere"
    many = "a person moves between two households" if replaced else f"one of {tau + 1} persons leaves"
    return _given(x, y, "DER", replaced, f"{many}: {what}")


@cache
def _rows_elsewhere(entrant: Person | None, tau: int, states: States, replaced: bool) -> HouseholdPair:
    """Rows of two households vanish, where the person is not; all of the person's own change adds to it."""
    sources = [Household(mafid, (CHILD,) * tau, state=states[0], units=(MARRIED,)) for mafid in (A, B, C, D)]
    gone = sources if replaced else sources[:2]
    x, y = list(gone), [home._replace(units=()) for home in gone]
    home = Household(E, (CHILD,) * (tau if entrant else 1), state=states[0], units=(MARRIED,))
    if entrant:  # who is not counted until a child leaves
        home = placed(
            joined(home, entrant), tau, lambda order: order[tau] == (entrant.relship, entrant.age), _universe(entrant)
        )
    x.append(home)
    y.append(without(home, CHILD))
    if replaced:
        host = Household(F, (CHILD,) * tau, state=states[0], units=(MARRIED,))
        if entrant:  # who is counted instead of a child at once
            arrived = placed(
                joined(host, entrant), tau, lambda order: order[tau] == (CHILD.relship, CHILD.age), _universe(entrant)
            )
            host = arrived._replace(members=host.members)
        else:
            host = host._replace(members=(), units=(SHIFTED,))
            arrived = joined(host, CHILD)
        x.append(host)
        y.append(arrived)
    label = f"{'four' if replaced else 'two'} rows of units vanish where the person is not"
    return _given(x, y, "API", replaced, label)


def _universe(entrant: Person) -> str:
    """Return the universe of the query that such a person moves; hashes are the same in all, but not who is hashed."""
    name = next(name for name, person in ENTRANT.items() if person == entrant)
    return str(QUERIES[name].persons)


def _given(x: Sequence[Household], y: Sequence[Household], model: Model, replaced: bool, label: str) -> HouseholdPair:
    relation: Relation = "replace_one" if replaced else "add_remove"
    return HouseholdPair(database(accompanied(x)), database(accompanied(y)), model, relation, label)


def _settings(config: Settings | None) -> tuple[Mapping[str, int], States]:
    if config is None:
        return TAU, (STATES[0], STATES[1])
    settings = read_config(config)
    return settings.tau, (settings.states[0], settings.states[-1])
