"""What truncation drops, counted by hand and held against the golden tables' totals."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.explore import choose
from algorithms.phsafe.population import load_households
from algorithms.phsafe.truncation import truncation_bias


@pytest.fixture(scope="module")
def homes():
    found = load_households()
    return found.persons, found.units, found.geo


def test_bias_is_what_large_households_have_beyond_the_threshold(homes):
    persons = homes[0]
    config = choose("us", tau={"PH2": 4})
    bias = {(row[0], row[1]): row[3:6] for row in truncation_bias(*homes, config).rows()}
    housed = persons["MAFID"][persons["RTYPE"] == "3"]
    _, sizes = np.unique(housed, return_counts=True)
    for table, tau in (("PH1_num", 10), ("PH2", 4), ("PH7", 10)):
        lost = int(np.maximum(sizes - tau, 0).sum())
        assert bias[table, "usa_*"] == (housed.size, lost, lost / housed.size)
        assert bias[table, "state_*"] == bias[table, "usa_*"]
    assert bias["PH2", "usa_*"][1] > 100


def test_a_threshold_above_every_household_drops_nobody(homes):
    bias = truncation_bias(*homes, choose("us", tau=dict.fromkeys(read_config("us").tau, 99)))
    assert not bias["DROPPED"].any()
    assert not bias["LARGEST"].any()


def test_bias_stands_beside_the_margin_of_the_noise(homes):
    bias = truncation_bias(*homes, read_config("us"))
    assert len(bias) == 28  # six queries about persons: four at six levels, two at two
    assert set(bias["EXACT_MARGIN"].tolist()) == {500, 200, 68, 20}
    assert np.all(bias["LARGEST"] <= bias["DROPPED"])
