"""Runs that raise an exception or end the program: as much evidence as any output, and no more."""

import sys

import pytest

from audit.claims import PureDP
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from tests.audit.sampling.cases import THREE
from tests.helpers import noisy, refused_like


def overflow():
    raise ArithmeticError("a count is too large")


def failing(rate, give=noisy, fail=overflow):
    """Each run fails at a rate that depends on the database, and a batch wherever one of its runs does."""

    def mechanism(data, size, rng):
        if (rng.random(size) < rate(data)).any():
            fail()
        return give(data, size, rng)

    return mechanism


@pytest.mark.parametrize(
    ("give", "fail"), [(noisy, overflow), (lambda data, size, rng: rng.choice(["no", "yes"], size), sys.exit)]
)
def test_a_mechanism_that_now_and_then_fails_on_one_database_is_told_by_it(give, fail):
    mechanism = failing(lambda data: 0.1 * (data[1] == 40), give, fail)
    result = measure_loss(mechanism, THREE, PureDP(1), attack="entries", size=6000, rng=1)
    assert result.verdict == "violated"
    # About 210 runs fail, all on one side: logit(0.05 ** (1 / 210)) = 4.2, and 4.5 of 270. A rule may guess a little
    # more than that, and be wrong once or twice.
    assert 3.5 < result.measured.epsilon < 4.5
    assert "x if it raises" in result.event
    assert result.counts["x"]["guessed_x"] == pytest.approx(210, abs=60)


@pytest.mark.parametrize("attack", ["auto", pytest.param("trained", marks=pytest.mark.slow)])
def test_exceptions_on_both_databases_are_no_evidence(attack):
    """How often runs fail that fail at the same rate: `tests.audit.test_outputs`."""
    pair = NeighborPair.move_people([30, 40, 50], 0, 2)
    claim = PureDP(2, relation="replace_one")
    result = measure_loss(failing(lambda data: 0.3), pair, claim, attack=attack, size=10_000, rng=2)
    assert result.verdict != "violated"  # false alarm 0.05, and the seed is fixed
    assert 0.9 < result.measured.epsilon <= 2  # what the noise loses is found all the same


def one_at_a_time(fail, most=1):
    """A mechanism that raises in one of ten runs, and whenever it is asked for more than `most`."""

    def mechanism(data, size, rng):
        if size > most:
            fail()
        if (rng.random(size) < 0.1).any():
            overflow()
        return data[0] + rng.laplace(size=size)

    return mechanism


def refuse():
    raise NotImplementedError("one run\nat a time")


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (one_at_a_time(refuse), r"2 runs always raises NotImplementedError \(one run at a time\)"),
        (one_at_a_time(overflow), "2 runs always raises ArithmeticError .*; per_run makes one"),
        (one_at_a_time(refuse, most=4), "8 runs always raises NotImplementedError .*, which calls for 4 do not"),
    ],
    ids=["another", "the same", "larger"],
)
def test_a_mechanism_that_refuses_batches_is_told_so(mechanism, words):
    """Its batches would be drawn again until two runs raise, so that one of two runs seems to."""
    with refused_like(ValueError, f"^a call for {words}"):
        measure_loss(mechanism, THREE, PureDP(1), size=4000, rng=1)


def test_a_mechanism_that_always_ends_the_program_is_refused():
    with refused_like(RuntimeError, "^a mechanism must not end the program, got SystemExit: 3$"):
        measure_loss(failing(lambda data: 1.0, fail=lambda: sys.exit(3)), THREE, PureDP(1), size=4000, rng=1)
