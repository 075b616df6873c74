"""The sheet `counts`: printed probabilities, closed forms, and laws that are summed term by term."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.counts.explorer import Rounded, mean_error, sheet
from algorithms.noise import Gaussian, Laplace, TwoTailedGeometric
from audit.claims import GaussianDP
from audit.explorer.views import Explored
from tests.algorithms.ons.test_ons import PRINTED
from tests.helpers import refuses


def results(state):
    return Explored(sheet(), state).results


def masses(law):
    """Probabilities of -n to n, beyond which there is nothing."""
    reach = int(60 * law.law.scale) + 40
    beyond = law.sf(np.arange(reach))
    half = np.append(1 - 2 * beyond[0], beyond[:-1] - beyond[1:])
    return np.concatenate([half[:0:-1], half])


def test_the_pilots_probabilities_as_printed():
    found = results({})
    for law, printed in PRINTED.items():
        for place, probability in enumerate(printed):
            assert round(found[f"counts/pilot/epsilon_{place}/{law}"], 4) == probability


def test_closed_forms():
    found = results({"counts/all/all/epsilon": 0.7})
    assert found["counts/geometric/all/unchanged"] == pytest.approx(math.tanh(0.35), rel=1e-12)
    assert found["counts/geometric/all/error"] == pytest.approx(1 / math.sinh(0.7), rel=1e-12)
    assert found["counts/laplace/all/unchanged"] == pytest.approx(1 - math.exp(-0.35), rel=1e-12)
    assert found["counts/laplace/all/error"] == pytest.approx(1 / (2 * math.sinh(0.35)), rel=1e-12)
    assert found["counts/laplace/all/sigma"] == pytest.approx(math.sqrt(2) / 0.7, rel=1e-12)
    kept = GaussianDP(1 / found["counts/gaussian/all/sigma"]).delta_at(0.7)
    assert kept == pytest.approx(1e-6, rel=1e-9)
    assert found["counts/ons/all/epsilon"] == 0.7 / 14


def test_a_margin_s_least_epsilon_and_the_risk():
    found = results({"counts/all/all/epsilon": 0.7})
    assert found["counts/all/all/guessed"] == pytest.approx(1 / (1 + math.exp(-0.7)), rel=1e-12)
    margin = found["counts/curve/point 03/margin"]
    for part, wanted in ((1, margin), (1 - 1e-8, margin + 1)):
        state = {"counts/all/all/epsilon": part * found["counts/curve/point 03/epsilon"]}
        assert results(state)["counts/geometric/all/margin"] == wanted


def test_textbook_noise_at_ten_needs_more_than_its_delta():
    found = results({"counts/all/all/epsilon": 10.0, "counts/ons/all/tables": 1})
    assert found["counts/ons/all/kept_delta"] == pytest.approx(0.21337, abs=1e-5)


def test_the_tail_of_an_inverse_distribution_function():
    found = results({"counts/all/all/epsilon": 1.0, "counts/bottom_up/all/bits": 4})
    law = InverseCdf(1.0, bits=4)  # magnitudes 0 to 3 of 4, 2, 1 and 1 of eight uniforms
    assert found["counts/bottom_up/all/reach"] == law.reach == 3
    assert found["counts/bottom_up/all/unchanged"] == 0.5
    assert found["counts/bottom_up/all/infinite"] == 1 / 16  # the largest value of one database, and no other
    assert found["counts/bottom_up/all/beyond"] == pytest.approx(2 * math.exp(-4) / (1 + math.exp(-1)), rel=1e-12)


@pytest.mark.parametrize("law", [Laplace(30.0), Gaussian(0.1), Gaussian(3.49), Gaussian(3.51), Gaussian(50.0)])
def test_mean_errors_of_rounded_noise_summed_term_by_term(law):
    total = one = masses(Rounded(law))
    for cells in (1, 2, 3):
        middle = len(total) // 2
        wanted = total @ np.abs(np.arange(-middle, middle + 1))
        assert mean_error(Rounded(law), cells) == pytest.approx(wanted, rel=1e-12)
        total = np.convolve(total, one)


@settings(max_examples=15)  # each computes a sheet
@given(st.floats(0.01, 20), st.floats(0.5, 0.9999), st.integers(1, 10**6))
def test_margins_cover_and_errors_add_up_slower_than_counts(epsilon, confidence, cells):
    state = {"epsilon": epsilon, "confidence": confidence, "cells": cells}
    found = results({f"counts/all/all/{name}": value for name, value in state.items()})
    for law in ("geometric", "laplace", "gaussian"):
        place = f"counts/{law}/all"
        assert found[f"{place}/covers"] >= confidence - 1e-12
        one = found[f"{place}/error"]
        assert one * (1 - 1e-12) <= found[f"counts/sum/all/{law}"] <= cells * one * (1 + 1e-12)


def test_sums_have_cells_and_settings_their_names_and_ranges():
    for law in (Rounded(Laplace(1.0)), TwoTailedGeometric(1.0)):
        refuses(ValueError, "cells must be at least 1, got 0", mean_error, law, 0)
    wrong = "counts/all/all/cells must be a whole number from 1 to 1e+06, got 'few'"
    refuses(ValueError, wrong, sheet().command(), ["cells=few"])
    with pytest.raises(ValueError, match="--set takes NAME=VALUE, where NAME is the end of one of "):
        sheet().command()(["budgets=1"])
