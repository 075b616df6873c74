"""Answers are checked, runs cut into blocks and distinct rows, and integrals over Laplace noise are exact."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.benchmarks.benchmark import check_answers, check_pair, unique_rows
from algorithms.noise.counts import chunks
from algorithms.noise.quadrature import Panels, laplace_log_cdf
from audit.neighbors import NeighborPair
from tests.helpers import refused, refuses


def test_answers_become_floats_of_their_own():
    given_in = np.array([1, 2])
    answers = check_answers(given_in)
    answers += 1
    assert given_in.tolist() == [1, 2]
    assert answers.dtype == np.float64
    assert check_answers(3).tolist() == [3.0]


@given(st.integers(0, 3000), st.integers(1, 2**18))
def test_chunks_cover_every_run_once(size, cells):
    pieces = list(chunks(size, cells))
    assert [run for piece in pieces for run in range(piece.start, piece.stop)] == list(range(size))
    assert all((piece.stop - piece.start) * cells <= max(2**17, cells) for piece in pieces)


@pytest.mark.parametrize("dtype", [np.int8, np.float64, bool])
def test_distinct_rows_are_found(dtype):
    table = np.random.default_rng(1).integers(0, 2, (300, 4)).astype(dtype)
    rows, which = unique_rows(table)
    np.testing.assert_array_equal(rows[which], table)
    assert len(rows) == 16 == len({tuple(row) for row in rows.tolist()})
    rows, which = unique_rows(table[::2, ::2])  # not contiguous
    np.testing.assert_array_equal(rows[which], table[::2, ::2])


@pytest.mark.parametrize("kinks", [[0.0], [-3.0, 0.0, 40.0]])
@pytest.mark.parametrize("powers", [(1, 0), (0, 1), (3, 4)])
def test_integrals_of_powers_of_the_distribution_function(kinks, powers):
    """Of f F^a (1 - F)^b over the line: a beta function."""
    panels = Panels(kinks, 2.0, (1 + sum(powers)) / 2.0)
    log_cdf, log_sf = laplace_log_cdf(panels.points, 2.0), laplace_log_cdf(-panels.points, 2.0)
    log_density = -np.abs(panels.points) / 2.0 - math.log(4.0)
    a, b = powers
    found = panels.log_integrals(
        log_density, (np.array([[a], [0]]), log_cdf[None]), (np.array([[b], [0]]), log_sf[None])
    )
    expected = math.lgamma(a + 1) + math.lgamma(b + 1) - math.lgamma(a + b + 2)
    np.testing.assert_allclose(found, [expected, 0.0], rtol=0, atol=1e-13)


def test_many_integrals_are_worked_out_in_blocks(monkeypatch):
    panels = Panels([0.0], 1.0, 2.0)
    chosen = np.arange(7.0)[:, None]
    factors = laplace_log_cdf(panels.points, 1.0)[None]
    log_density = -np.abs(panels.points) - math.log(2)
    whole = panels.log_integrals(log_density, (chosen, factors))
    monkeypatch.setattr("algorithms.noise.quadrature.BLOCK", 2 * panels.points.size)
    np.testing.assert_allclose(panels.log_integrals(log_density, (chosen, factors)), whole, rtol=1e-12)
    np.testing.assert_allclose(whole, -np.log(np.arange(1, 8)), atol=1e-12)


def test_bad_input_is_refused_in_one_line():
    refuses(TypeError, "queries must be answered by real numbers, got dtype <U1", check_answers, ["a"])
    refuses(ValueError, "queries must be one answer each, at least one, got shape (0,)", check_answers, [])
    refuses(ValueError, "queries must be one answer each, at least one, got shape (1, 1)", check_answers, [[1]])
    refuses(ValueError, "queries must have finite answers, got nan", check_answers, [1, math.nan])
    with refused(ValueError, "the two databases must answer the same queries, got 2 and 1"):
        check_pair(NeighborPair.declared([1, 2], [1], "add_remove"))
    refuses(ValueError, "answers must be near enough for 16384 panels, got 1e+09", Panels, [0, 1000000000.0], 1.0, 3.0)
