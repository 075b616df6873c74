"""Coverage of bounds at laws that neither row 1 of docs/reliability.md has nor exact tests of `tests/audit/bounds`."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from audit.bounds import renyi
from audit.bounds.game import approx_game_lower, variation_game_lower
from audit.bounds.renyi import renyi_variational_lower
from tests.audit.audits import at_the_boundary
from tests.helpers import most

AUDITS, ALLOWED = 1000, most(1000)  # false alarm 1e-4 in every coverage test here


@pytest.mark.parametrize(
    ("epsilon", "delta", "share", "runs", "distance"),
    [
        (1.0, 1e-3, 0.01, 20_000, 1),
        (0.1, 0.1, 1.0, 20_000, 1),
        (0.1, 0.1, 0.15, 20_000, 1),
        (4.0, 0.1, 0.5, 2000, 1),
        (0.025, 1e-6, 1.0, 1000, 80),
    ],
)
def test_the_approximate_game_covers_the_worst_law(epsilon, delta, share, runs, distance):
    draws = np.random.default_rng(111).multinomial(runs, at_the_boundary(epsilon, delta, share, distance), AUDITS)
    for confidence in (0.95, 0.8):
        found = [
            approx_game_lower(v, v + w, runs, delta=delta, confidence=confidence, distance=distance)
            for v, w, _ in draws.tolist()
        ]
        assert (np.array(found) > epsilon).sum() <= most(AUDITS, confidence)  # 77, 251
    assert np.median(found) > 0.6 * epsilon or share - delta < 0.1  # it has power, but where most guesses are leaks


def test_counting_only_the_guesses_breaks_the_game():
    """The leak may sit where the guesses are. Other mistakes with delta are in row 1 of the page."""
    draws = np.random.default_rng(112).multinomial(20_000, at_the_boundary(1.0, 0.01, 0.1), AUDITS)
    found = [approx_game_lower(v, v + w, v + w, delta=0.01, confidence=0.95) for v, w, _ in draws.tolist()]
    assert (np.array(found) > 1.0).sum() > 5 * ALLOWED


@pytest.mark.parametrize(
    ("delta", "share", "runs", "least"),
    [(0.02, 1.0, 2000, 0), (0.02, 0.02, 2000, 0.5), (0.1, 0.4, 2000, 0.5), (0.9, 0.95, 50, 0.5)],
)
@pytest.mark.parametrize("named", [1, 2])
def test_the_game_of_total_variation_covers_every_share_of_guesses(delta, share, runs, least, named):
    """A rule that is right oftener than wrong by all that its databases allow, in whatever share it guesses."""
    excess, rng = delta * named / 2, np.random.default_rng(114)
    share = max(excess, share * named / 2)
    draws = rng.multinomial(runs, [(share + excess) / 2, (share - excess) / 2, 1 - share], AUDITS)
    right, guesses = draws[:, 0], draws[:, :2].sum(axis=1)
    for confidence in (0.95, 0.8):
        found = variation_game_lower(right, guesses, runs, named=named, confidence=confidence)
        assert (found > delta).sum() <= most(AUDITS, confidence)
    assert np.median(found) >= least * delta  # at confidence 0.8: it has power
    # Negative control: the plain difference is no bound, and neither is one that takes two databases for one.
    assert ((2 * right - guesses) * 2 / named / runs > delta).sum() > 5 * ALLOWED
    if named == 2 and least:
        twice = variation_game_lower(right, guesses, runs, named=1, confidence=0.95)
        assert (twice > delta).sum() > 5 * ALLOWED


def in_order_of_the_score(_, *counts):
    """Blocks of runs that begin with the highest scores."""
    parts = [np.array_split(np.repeat(np.arange(side.size), side)[::-1], renyi.BLOCKS) for side in counts]
    return [np.array([np.bincount(part, minlength=16) for part in side]) for side in parts]


@pytest.mark.slow  # by default rows of `tests/reliability/test_coverage.py` have it, in short
@pytest.mark.parametrize(("shift", "order", "runs"), [(1.0, 1.0, 2000), (2.0, 2.0, 300)])
def test_bets_on_a_score_cover_what_it_tells_of_normal_laws(shift, order, runs, monkeypatch):
    edges, rng = np.linspace(-2, 2, 15), np.random.default_rng(115)
    score = np.concatenate([[-2.0], (edges[1:] + edges[:-1]) / 2, [2.0]])
    q, p = (np.diff(norm.cdf(edges / shift + side * shift / 2), prepend=0, append=1) for side in (1, -1))
    first = p @ score if order == 1 else math.log(p @ np.exp((order - 1) * score)) / (order - 1)
    truth = first - math.log(q @ np.exp(order * score)) / order
    y, x = rng.multinomial(runs, p, AUDITS), rng.multinomial(runs, q, AUDITS)

    def misses(confidence, audits=AUDITS):
        bounds = [
            renyi_variational_lower(score, *one, order=order, confidence=confidence)
            for one in zip(y[:audits], x[:audits], strict=True)
        ]
        return sum(bound > truth for bound in bounds)

    assert misses(0.95) <= ALLOWED
    assert 150 < misses(0.5) <= 547  # half, and three standard deviations; and it is no empty bound
    # Negative control: the order of runs depends on their scores.
    monkeypatch.setattr(renyi, "_blocks", in_order_of_the_score)
    assert misses(0.95, 100) > most(100)
