"""Every known bug is found, and no registered system that is sound is accused, at the confidence of publications."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.benchmarks import benchmarks
from algorithms.systems import systems
from audit.attacks import Attack
from audit.measure.loss import measure_loss
from experiments import known_bugs
from experiments.known_bugs import BUGS, FAULTY

SURE = 1 - 1e-6
QUICK, SIZE = 2_000, 2_000  # runs: of a bug that is looked for by default, and of audits of what is sound
LAWS = Attack.without("precision")  # of published algorithms, not of the floats that their noise is made of
BENCHMARKS = benchmarks()
# Their noise is made by an inverse distribution function: its support tells two databases apart.
UNSOUND = {"bottom-up-inverse-cdf"}
SOUND = [
    system
    for name, system in systems().items()
    if name not in UNSOUND
    and (BENCHMARKS[name].sound if name in BENCHMARKS else not name.startswith(("bug-", "gdpc-", "rdpc-", "laplace-")))
] + [systems()["rdpc-all"]]


def bugs():
    """All of them, each 5 times; the quick ones once by default."""
    for case in known_bugs.cases():
        if case.group in (BUGS, FAULTY):
            for audits in (1, 5):
                slow = [pytest.mark.slow] if audits > 1 or case.size > QUICK else []
                if audits > 1 or not slow:
                    yield pytest.param(case, audits, id=f"{case.name}-{audits}", marks=slow)


@pytest.mark.reliability(2)
@pytest.mark.parametrize(("case", "audits"), list(bugs()))
def test_a_known_bug_is_found_by_every_audit(case, audits, record_property):
    row = known_bugs.audited(case, np.random.SeedSequence(7).spawn(audits))
    found = sum(known_bugs.caught(row, audit) for audit in row["audits"])
    record_property("tried", audits)
    record_property("case", case.name)
    record_property("found", found)
    assert found == audits


@pytest.mark.reliability(2)
@pytest.mark.parametrize(
    ("system", "audits"),
    [
        *(pytest.param(systems()[name], 1, id=name) for name in ("gdpc", "topdown", "SVT1")),
        *(pytest.param(one, 100, id=f"{one.name}, in full", marks=pytest.mark.slow) for one in SOUND),
    ],
)
def test_no_sound_system_is_accused(system, audits, record_property):
    """False alarm: 1e-4 of 100 audits of a system."""
    mechanism, pair = system.mechanism(), system.pair()
    claim, size = system.claim.under(pair.relation), min(SIZE, system.runs // 10)
    attack = LAWS if system.name in BENCHMARKS else Attack()
    for stream in np.random.SeedSequence(8).spawn(audits):
        result = measure_loss(mechanism, pair, claim, attack=attack, size=size, confidence=SURE, rng=stream)
        assert result.verdict != "violated"
    record_property("tried", audits)


def test_what_is_not_audited_as_sound_has_a_known_bug():
    sound = {system.name for system in SOUND}
    others = {name: type(one.mechanism()).__module__ for name, one in systems().items() if name not in sound}
    faulty = {name for name, known in BENCHMARKS.items() if not known.sound}
    assert {name for name, module in others.items() if not module.startswith("algorithms.bugs.")} == faulty | UNSOUND
