"""What a result says of rare values is measured: how often they are found where they come once in so many runs."""

import numpy as np
import pytest

from audit.claims import PureDP
from audit.measure.loss import measure_loss
from tests.audit.attacks.rare import NEW, PAIR, SAME


def audited(made, rate, seed):
    return measure_loss(made(rate), PAIR, PureDP(1.0), size=20_000, rng=seed)


def found(made, runs, seeds):
    return sum(audited(made, 1 / runs, seed).verdict == "violated" for seed in seeds)


def announced(made):
    """The runs in which one is enough, as the middle one of five audits says that had none."""
    return float(np.median([audited(made, 0.0, seed).rare for seed in range(5)]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAME)
def test_a_value_of_one_database_alone_is_found_as_often_as_is_said(kind):
    """In four of five audits: of 40, fewer than 24 are with probability 1e-3 (binomial)."""
    runs = announced(SAME[kind])
    times = found(SAME[kind], runs, range(100, 140))
    print(f"{kind}: once in {runs:.0f} runs; found {times} of 40")
    assert times >= 24
    assert found(SAME[kind], 10 * runs, range(200, 210)) <= 3  # negative control


@pytest.mark.slow
@pytest.mark.parametrize("kind", NEW)
def test_what_is_new_among_others_is_found_at_twice_the_rate(kind):
    """In 15 of 20 audits and more, as measured; of so many, fewer than 12 are with probability 0.04 (binomial)."""
    runs = announced(NEW[kind])
    times = found(NEW[kind], runs / 2, range(100, 120))
    print(f"{kind}: once in {runs:.0f} runs; found {times} of 20 at twice that rate")
    assert times >= 12


@pytest.mark.slow
def test_nothing_is_new_where_both_databases_give_it():
    sound = [audited(made, 0.0, seed).verdict for made in NEW.values() for seed in range(300, 320)]
    assert "violated" not in sound
