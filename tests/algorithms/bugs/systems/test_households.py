"""The known bugs of PHSafe: what each loses by its exact law, and that its runs follow that law."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from algorithms.bugs.systems.households import SharedNoise, TwoTauStability, UnitCountedTwice
from algorithms.noise.counts import Databases
from algorithms.phsafe import measurement
from algorithms.phsafe.budget import read_config
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.neighbors.worst import worst_pair

US = read_config("us")
PURE = replace(US, privacy_definition="puredp")
PH1, PH3, PH8 = ("PH1_num", "state_A-G"), ("PH3", "state_A-G"), ("PH8_denom", "state_A-G")
SHARED = (("PH1_num", "usa_*"), ("PH1_num", "usa_A-G"))


@cache
def tabulated(query, model, relation="add_remove"):
    return measurement.tabulated(worst_pair(*query, model, relation), US)


def test_noise_for_two_tau_rows_breaks_the_promise_only_where_unrelated_units_change():  # three pairs are counted
    bug = TwoTauStability(US, [PH3])
    assert bug.spent(tabulated(PH3, "API")) / bug.claim.budget == pytest.approx(170 / 144)
    for relation, most in (("add_remove", 1), ("replace_one", 2)):
        assert bug.spent(tabulated(PH3, "DER", relation)) <= most * bug.claim.budget
    assert TwoTauStability(US, [PH8]).laws == PHSafe(US, [PH8]).laws  # denominators are left alone
    laws = [kind(PURE, [PH1]).laws[PH1].epsilon for kind in (TwoTauStability, PHSafe)]
    assert laws[0] / laws[1] == pytest.approx(22 / 20)


def test_a_unit_counted_twice_costs_four_times_as_much():
    pair = tabulated(PH8, "DER")
    sound, bug = PHSafe(US, [PH8, PH3]), UnitCountedTwice(US, [PH8, PH3])
    alone = UnitCountedTwice(US, [PH8])
    assert alone.spent(pair) == pytest.approx(4 * PHSafe(US, [PH8]).spent(pair))
    people = [kind.exact(pair.x)[: -pair.x.counts[PH8].size] for kind in (sound, bug)]
    np.testing.assert_array_equal(*people)


def test_shared_noise_is_the_same_at_both_levels():  # its pair is validated and counted
    pair = tabulated(SHARED[1], "VAL")
    bug, rng = SharedNoise(US, SHARED), np.random.default_rng(1)
    noise = bug(pair.x, 1_000, rng) - bug.exact(pair.x)
    np.testing.assert_array_equal(noise[:, :2], noise[:, 2:4])
    sound = PHSafe(US, SHARED)(pair.x, 1_000, rng) - bug.exact(pair.x)
    assert np.mean(sound[:, :2] == sound[:, 2:4]) < 0.05  # 1 in 1,000 by chance
    # There is a witness where the levels change differently.
    assert math.isinf(bug.spent(pair))
    assert bug.exact_loss(pair).infinite_mass == 1
    outputs = bug(pair.x, 100, np.random.default_rng(2))
    assert np.all(np.isfinite(bug.log_likelihood(outputs, pair.x)))
    assert np.all(np.isneginf(bug.log_likelihood(outputs, pair.y)))
    with pytest.raises(ValueError, match="discrete Gaussian noise only, got puredp"):
        SharedNoise(PURE, SHARED)


def test_shared_noise_of_levels_that_change_alike_loses_what_one_of_them_does():
    pair, bug = tabulated(SHARED[1], "VAL"), SharedNoise(US, SHARED)
    same = Databases(pair.x, pair.x)
    assert (bug.spent(same), bug.exact_loss(same)) == (0, None)
    alone, sound = (kind(US, SHARED[1:]) for kind in (SharedNoise, PHSafe))
    assert alone.spent(pair) == pytest.approx(sound.spent(pair))
    outputs = alone(pair.x, 50, np.random.default_rng(3))
    np.testing.assert_allclose(alone.log_likelihood(outputs, pair.x), sound.log_likelihood(outputs, pair.x))
