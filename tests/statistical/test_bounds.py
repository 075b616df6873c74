"""Coverage of the bounds at laws that row 1 of docs/reliability.md does not have: `test_coverage` has the others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from audit.bounds.game import approx_game_lower, variation_game_lower
from audit.bounds.one_run import one_run_p_value
from tests.audit.audits import at_the_boundary
from tests.helpers import most

AUDITS, ALLOWED = 1000, most(1000)  # false alarm 1e-4 in every coverage test here


def test_p_values_are_valid_and_a_forgotten_delta_is_not():
    """A p-value below alpha at most alpha of the time; one run that leaks every bit at once with probability delta."""
    epsilon, bits, rng = 1.0, 200, np.random.default_rng(110)
    guesses = rng.binomial(bits, expit(epsilon), AUDITS)
    values = np.array([one_run_p_value(int(v), bits, epsilon) for v in guesses])
    assert (values <= 0.05).sum() <= ALLOWED
    assert (values <= 0.06).sum() > 10
    delta = 0.1
    leaked = np.where(rng.random(AUDITS) < delta, bits, guesses)
    with_delta = [one_run_p_value(int(v), bits, epsilon, delta=delta) for v in leaked]
    without = [one_run_p_value(int(v), bits, epsilon) for v in leaked]
    assert (np.array(with_delta) <= 0.05).sum() <= ALLOWED
    assert (np.array(without) <= 0.05).sum() > ALLOWED


@pytest.mark.parametrize(
    ("epsilon", "delta", "share", "runs", "distance"),
    [(0.1, 0.1, 0.15, 20_000, 1), (4.0, 0.1, 0.5, 2000, 1), (0.025, 1e-6, 1.0, 1000, 80)],
)
def test_the_approximate_game_covers_the_worst_law(epsilon, delta, share, runs, distance):
    seen = np.random.default_rng(111).multinomial(runs, at_the_boundary(epsilon, delta, share, distance), AUDITS)
    for confidence in (0.95, 0.8):
        found = [
            approx_game_lower(v, v + w, runs, delta=delta, confidence=confidence, distance=distance)
            for v, w, _ in seen.tolist()
        ]
        assert (np.array(found) > epsilon).sum() <= most(AUDITS, confidence)  # 77, 251
    assert np.median(found) > 0.6 * epsilon or share - delta < 0.1  # it has power, but where most guesses are leaks


@pytest.mark.parametrize(
    ("delta", "share", "runs", "least"),
    [(0.02, 1.0, 2000, 0), (0.02, 0.02, 2000, 0.5), (0.1, 0.4, 2000, 0.5), (0.9, 0.95, 50, 0.5)],
)
@pytest.mark.parametrize("named", [1, 2])
def test_the_game_of_total_variation_covers_every_share_of_guesses(delta, share, runs, least, named):
    """A rule that is right oftener than wrong by all that its databases allow, in whatever share it guesses."""
    excess, rng = delta * named / 2, np.random.default_rng(114)
    share = max(excess, share * named / 2)
    seen = rng.multinomial(runs, [(share + excess) / 2, (share - excess) / 2, 1 - share], AUDITS)
    right, guesses = seen[:, 0], seen[:, :2].sum(axis=1)
    for confidence in (0.95, 0.8):
        found = variation_game_lower(right, guesses, runs, named=named, confidence=confidence)
        assert (found > delta).sum() <= most(AUDITS, confidence)
    assert np.median(found) >= least * delta  # at confidence 0.8: it has power
    # Negative control: the plain difference is no bound, and neither is one that takes two databases for one.
    assert ((2 * right - guesses) * 2 / named / runs > delta).sum() > 5 * ALLOWED
    if named == 2 and least:
        twice = variation_game_lower(right, guesses, runs, named=1, confidence=0.95)
        assert (twice > delta).sum() > 5 * ALLOWED
