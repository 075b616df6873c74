"""Assertions for test suites: the sound pass, the broken are seen, and an empty pass fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from algorithms.broken import ForgottenLevelRDPC, HalfNoiseGDPC, NotebookGDPC
from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from audit.claims import ZCDP, GaussianDP, PureDP
from audit.neighbors import NeighborPair
from audit.results import AuditResult
from audit.testing import assert_loss_detected, assert_loss_within

ROOT = Path(__file__).resolve().parent.parent
PAIR = NeighborPair.add_people([120, 75], 0)
LEAVES = NeighborPair.add_people([120] * 100, 0)
TREE = Hierarchy.regular(10, 2)
SOUND = [(GDPC(1.0), PAIR), (ADPC(1.0), PAIR), (RDPC(1.0, TREE), LEAVES), (RDPC(1.0, TREE, "all"), LEAVES)]
BROKEN = [
    (HalfNoiseGDPC(1.0), PAIR),
    (NotebookGDPC(0.5), PAIR),
    (ForgottenLevelRDPC(1.0, TREE), LEAVES),
    (ForgottenLevelRDPC(1.0, TREE, "all"), LEAVES),
]
SUITE = """
from algorithms.broken import HalfNoiseGDPC
from algorithms.flaxman import GDPC
from audit.neighbors import NeighborPair
from audit.testing import assert_loss_detected, assert_loss_within

PAIR = NeighborPair.add_people([120, 75], cell=0)


def test_sound():
    assert_loss_within(GDPC(1.0), PAIR, size=20_000)


def test_broken():
    assert_loss_within(HalfNoiseGDPC(1.0), PAIR, size=20_000)


def test_broken_is_seen():
    assert_loss_detected(HalfNoiseGDPC(1.0), PAIR, size=20_000)
"""


def name(value):
    return type(value).__name__ if callable(value) else ""


@pytest.mark.parametrize(("mechanism", "pair"), SOUND, ids=name)
def test_sound_exhibits_pass(mechanism, pair):
    """False alarm 1e-6 each."""
    result = assert_loss_within(mechanism, pair, size=20_000)
    assert isinstance(result, AuditResult)
    assert (result.verdict, result.confidence) == ("not refuted", 1 - 1e-6)
    assert 0.3 < result.measured.epsilon < 1.0
    with pytest.raises(AssertionError, match=r"no violation shown: .*: not refuted"):
        assert_loss_detected(mechanism, pair, size=20_000)


@pytest.mark.parametrize(("mechanism", "pair"), BROKEN, ids=name)
def test_broken_exhibits_are_detected(mechanism, pair):
    result = assert_loss_detected(mechanism, pair, size=20_000)
    assert mechanism.claim.epsilon < result.measured.epsilon < mechanism.true_loss
    with pytest.raises(AssertionError, match=rf"^{name(mechanism)}: promised .*: violated") as raised:
        assert_loss_within(mechanism, pair, size=20_000)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("assertion", [assert_loss_within, assert_loss_detected])
def test_a_check_without_power_fails(assertion):
    """Two thousand runs cannot tell 0.02 from twice as much: a pass would be empty."""
    with pytest.raises(AssertionError, match="no power") as raised:
        assertion(GDPC(0.02), PAIR, size=2000)
    assert "\n" not in str(raised.value)


def test_no_power_says_what_would_help():
    words = r"^no power: violations would have been seen from epsilon \S+ on, .*; more runs or a group pair would help"
    with pytest.raises(AssertionError, match=words):
        assert_loss_within(GDPC(0.02), PAIR, size=2000)
    group = NeighborPair.add_people([120, 75], 0, people=100)
    assert assert_loss_within(GDPC(0.02), group, size=2000).verdict == "not refuted"


@pytest.mark.parametrize(
    ("claim", "broken"), [(PureDP(2.0), PureDP(0.5)), (GaussianDP(1.8), GaussianDP(0.3)), (ZCDP(1.5), ZCDP(0.05))]
)
def test_a_stated_claim_goes_before_that_of_the_mechanism(claim, broken):
    """Geometric noise for epsilon 1 keeps the first of each family, and not the second."""
    assert assert_loss_within(GDPC(1.0), PAIR, claim, size=20_000).claim == claim
    assert assert_loss_detected(GDPC(1.0), PAIR, broken, size=20_000).claim == broken


def test_early_stopping_passes_through():
    early = assert_loss_detected(HalfNoiseGDPC(1.0), PAIR, stop="early", size=200_000)
    assert early.bound == "anytime-valid guessing game"
    assert early.size < 100_000
    assert assert_loss_within(GDPC(1.0), PAIR, stop="early", size=60_000).verdict == "not refuted"


def test_a_test_says_the_same_every_day():
    """Unless it is asked to search anew."""
    first, second = (assert_loss_within(GDPC(1.0), PAIR, size=10_000) for _ in range(2))
    assert first.counts == second.counts
    assert first.seed_entropy == 0
    fresh = [assert_loss_within(GDPC(1.0), PAIR, size=10_000, rng=None).seed_entropy for _ in range(2)]
    assert fresh[0] != fresh[1]


@pytest.mark.parametrize("assertion", [assert_loss_within, assert_loss_detected])
def test_a_claim_is_needed(assertion):
    def noisy(data, size, rng):
        return data + rng.laplace(size=(size, data.size))

    with pytest.raises(TypeError, match="noisy has no claim of its own: state one"):
        assertion(noisy, PAIR)
    with pytest.raises(ValueError, match="confidence must be in"):
        assertion(noisy, PAIR, PureDP(1.0), confidence=1.0)
    with pytest.raises(ValueError, match="the pair is add_remove"):
        assertion(noisy, PAIR, PureDP(1.0, "replace_one"))


def test_pytest_shows_one_readable_failure(tmp_path):
    """A suite of someone else's: one line says what is wrong, at the line of the test that failed."""
    (tmp_path / "test_release.py").write_text(SUITE, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", "--rootdir", str(tmp_path), "."],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("1 failed, 2 passed")
    errors = [line for line in lines if line.startswith("E ")]
    assert len(errors) == 1
    assert "HalfNoiseGDPC: promised epsilon 1 (add/remove), 20000 runs force at least 1." in errors[0]
    assert ": violated, " in errors[0]
    assert " would have been seen (1 person added to cell 0; " in errors[0]
    assert ">       assert_loss_within(HalfNoiseGDPC(1.0), PAIR, size=20_000)" in done.stdout.replace("    >", ">")
    assert "audit/testing.py" not in done.stdout
    assert "_promise" not in done.stdout
