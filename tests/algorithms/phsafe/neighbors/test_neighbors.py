"""Neighbors of households: the pairs reach the numbers known for them, and what is no neighbor is refused."""

import subprocess
import sys

import pytest

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.neighbors.households import (
    FIRST_MAFID,
    Household,
    Person,
    Unit,
    database,
    joined,
    placed,
    without,
)
from algorithms.phsafe.neighbors.pairs import HouseholdPair
from algorithms.phsafe.neighbors.stability import stability_change
from algorithms.phsafe.neighbors.worst import joint_pair, pair_of, worst_pair
from experiments.phsafe.slack import EXPECTED, JOINT, rho_spent

US = read_config("us")


def expected(model, relation, table, level):
    numbers = EXPECTED[f"{model} {relation}"][table]
    return numbers[2] if level == "state_*" and len(numbers) == 3 else numbers[0 if level.endswith("*") else 1]


VALID = [("PH1_num", "usa_*", "replace_one"), ("PH4", "usa_A-G", "add_remove"), ("PH5_denom", "state_*", "replace_one")]


@pytest.mark.parametrize(("table", "level", "relation"), VALID)
def test_a_pair_reaches_its_number(table, level, relation):  # both databases are validated
    """The experiment `phsafe_spent` holds all of them."""
    pair = worst_pair(table, level, "VAL", relation)
    assert (pair.model, pair.relation) == ("VAL", relation)
    change = stability_change(pair.x, pair.y, tables=table)
    result = dict(zip(change["LEVEL"], change["L2_SQUARED"], strict=True))
    assert result[level] == expected("VAL", relation, table, level)


@pytest.mark.parametrize(
    ("relation", "in_place"), [("add_remove", False), ("replace_one", False), ("replace_one", True)]
)
def test_a_valid_pair_costs_so_much_over_all_queries(relation, in_place):  # all is validated, and counted twice
    pair = joint_pair("VAL", relation, in_place=in_place)
    spent = rho_spent(stability_change(pair.x, pair.y), US)
    assert spent == pytest.approx(JOINT[f"VAL {relation}" + ", in place" * in_place], abs=5e-6)


OTHER_SETTINGS = {**US.to_dict(), "tau": {**US.tau, "PH2": 3, "PH3": 2}, "state_filter": ["11", "56"]}


def test_other_thresholds():  # its pair is counted twice
    config = OTHER_SETTINGS
    pair = worst_pair("PH2", "usa_*", config=config)
    assert pair.label == "a spouse leaves a family of 5"
    change = stability_change(pair.x, pair.y, config=config, tables=["PH2"])
    assert change["L2_SQUARED"].tolist() == [18, 18]
    assert worst_pair("PH3", "state_A-G", "API", config=config) is worst_pair("PH3", "usa_*", "API", config=config)


def test_other_states(monkeypatch):
    monkeypatch.setattr("algorithms.phsafe.neighbors.pairs.tabulate", lambda *of_a_valid_database: None)
    states = worst_pair("PH1_denom", "state_*", relation="replace_one", config=OTHER_SETTINGS).x[2]["TABBLKST"]
    assert {"11", "56"} == set(states)
    alone = worst_pair("PH1_denom", "state_*", relation="replace_one", config="pr")
    assert alone.label == "the only occupant joins another"


HEAD, CHILD, ROW = Person("20", sex="2"), Person("25", 5), Unit("3", "06", "5")
HOME = Household(FIRST_MAFID, (HEAD, CHILD), units=(ROW,))
LEFT = without(HOME, CHILD)
OTHER = Household(FIRST_MAFID + 1, (HEAD,), units=(ROW,))
BYSTANDER = Household(FIRST_MAFID + 2, (HEAD,), units=(ROW,))


def bare(household):
    """A household without a row of units."""
    return household._replace(units=())


def pair(x, y, model="DER", relation="add_remove"):
    return HouseholdPair(database(x), database(y), model, relation)


def test_neighbors_differ_by_one_person():
    assert pair([HOME, OTHER], [LEFT, OTHER]).label == ""
    assert pair([HOME, OTHER], [LEFT, joined(OTHER, CHILD)], relation="replace_one").relation == "replace_one"
    anywhere = [LEFT, bare(OTHER), BYSTANDER]  # where rows of units are declared to change
    assert pair([HOME, OTHER, BYSTANDER], anywhere, "API").model == "API"


def test_a_household_is_under_the_first_number_that_will_do():
    assert placed(HOME, 1, lambda order: True) == HOME
    assert placed(HOME, 1, lambda order: order[0] == CHILD[:2], "true").mafid - HOME.mafid < 10


def test_the_first_number_is_found_without_pandas():  # in a new process, as DuckDB keeps what it has imported
    found = "import sys; sys.modules['pandas'] = None; from algorithms.phsafe.neighbors.households import *"
    found += f"; home = Household({HOME.mafid}, {HOME.members})"
    found += "; assert placed(home, 1, lambda order: True) == home"
    subprocess.run([sys.executable, "-c", found], check=True, timeout=60)


@pytest.mark.parametrize(
    ("x", "y", "model", "words"),
    [
        ([HOME], [HOME], "DER", "persons must differ as add_remove has it, got 0 out and 0 in"),
        ([HOME, OTHER], [LEFT, joined(OTHER, CHILD)], "DER", "persons must differ as add_remove has it, got 1 out and"),
        ([HOME], [LEFT._replace(state="02")], "DER", "geo must be the same in both databases"),
        ([HOME, OTHER], [LEFT, OTHER._replace(state="02")], "API", "geo must be the same in both"),
        ([HOME, OTHER], [LEFT, bare(OTHER)], "DER", f"only where the person is or was, got MAFID {OTHER.mafid}"),
        (
            *([HOME, OTHER, BYSTANDER], [*map(bare, (LEFT, OTHER, BYSTANDER))], "API"),
            "at most 2 rows of units may differ under API, got 3",
        ),
        ([HOME], [LEFT._replace(units=(ROW, ROW))], "DER", "a MAFID must have one row of units under DER, got two"),
        ([HOME], [LEFT], "VAL", "FINAL_POP must be that of the members"),
    ],
)
def test_what_is_no_neighbor_is_refused(x, y, model, words):
    with pytest.raises(ValueError, match=words):
        pair(x, y, model)


def test_pairs_that_cannot_be_made_are_refused(monkeypatch):
    monkeypatch.setattr("algorithms.phsafe.neighbors.households.TRIED", 100)
    nobody, moved = (without(HOME, HEAD),), (LEFT._replace(tenure="3"),)
    for act, words in (
        (lambda: pair_of((HOME,), nobody, "nobody lives there"), "an occupied unit must have one householder"),
        (lambda: pair_of((HOME,), moved, ""), "must keep its tenure under VAL, got 1 and 3"),
        (lambda: worst_pair("PH2", "usa_*", "ANY"), "model must be one of VAL, DER, API, got 'ANY'"),
        (lambda: joint_pair("DER", "moved"), r"relation must be .*, got 'moved'"),
        (lambda: pair([HOME], [LEFT], relation="replace_one"), "must differ as replace_one has it, got 1 out and 0 in"),
        (lambda: joint_pair("DER", in_place=True), "under VAL and replace_one, got DER and add_remove"),
        (lambda: placed(HOME, 1, lambda order: len(order) > 2), "one of 100 MAFIDs must give the order .* got none"),
    ):
        with pytest.raises(ValueError, match=words):
            act()
