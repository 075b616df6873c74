"""Known bugs are found, at the confidence of publications; sound mechanisms are accused no oftener than is stated."""

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.stats import beta

from algorithms.benchmarks import benchmarks
from algorithms.systems import systems
from audit.attacks import Attack
from audit.measure.loss import measure_loss
from audit.results.formatting import at_most
from experiments import known_bugs
from experiments.known_bugs import BUGS, FAULTY
from tests.helpers import in_full, most
from tests.reliability.sound import WAYS

SURE, USUAL = 1 - 1e-6, 0.99
QUICK, FULL, SMALL = 2_000, 200_000, 300  # runs: of a quick audit, of the default, of those that are made often
BENCHMARKS = benchmarks()
# Registered, and not sound: outputs of one database alone, by an inverse distribution function and by a record's key.
UNSOUND = {"bottom-up-inverse-cdf", "CellKey"}
# Sound as laws: the floats that their noise is made of tell two databases apart.
FLOATS = ("Laplace", "LaplaceParallel", "NoisyHist1", "NumericalSVT")
SOUND = [
    system
    for name, system in systems().items()
    if name not in UNSOUND
    and (BENCHMARKS[name].sound if name in BENCHMARKS else not name.startswith(("bug-", "gdpc-", "rdpc-", "laplace-")))
] + [systems()["rdpc-all"]]
MOST = 0.012  # of audits at .99 that accuse a sound mechanism: a higher rate would be seen


BRIEF = [case for case in known_bugs.cases() if case.group in (BUGS, FAULTY) and case.size <= QUICK]


@pytest.mark.parametrize("case", BRIEF, ids=lambda case: case.name)
def test_a_known_bug_is_found(case):
    """The experiment `known_bugs` audits all of them, more often."""
    row = known_bugs.audited(case, [np.random.SeedSequence(7)])
    assert known_bugs.caught(row, *row["audits"])


@pytest.mark.slow
@pytest.mark.reliability(row=11)
@pytest.mark.parametrize("name", [*sorted(UNSOUND), *FLOATS])
def test_a_registered_system_that_is_not_sound_is_found(name):
    """Negative control. Of floats by their last bits, where every audit looks."""
    result = audited(systems()[name], FULL if name in FLOATS else QUICK, np.random.SeedSequence(7))
    assert result.verdict == "violated"
    assert name in UNSOUND or result.attack == "precision"


def audited(system, size, stream, attack=None):
    """An audit that looks everywhere, at the last bits of floats too."""
    mechanism, pair = system.mechanism(), system.pair()
    claim, attack = system.claim.under(pair.relation), attack or Attack()
    return measure_loss(mechanism, pair, claim, attack=attack, size=size, confidence=SURE, rng=stream)


def sound(brief, full):
    """The quick audits of some, and those of all in full."""
    quick = [pytest.param(one, QUICK, id=one.name, marks=pytest.mark.quick) for one in brief]
    runs = [(one, min(FULL, getattr(one, "runs", FULL))) for one in full]
    return quick + [pytest.param(*case, id=f"{case[0].name}, in full", marks=pytest.mark.slow) for case in runs]


@pytest.mark.reliability(row=11)
@pytest.mark.parametrize(("system", "size"), sound(map(systems().get, ("gdpc", "topdown", "SVT1")), SOUND))
def test_no_registered_system_that_is_sound_is_accused(system, size):
    """False alarm: 1e-6. Where floats reveal a law, it is audited without them."""
    attack = Attack.without("precision") if system.name in FLOATS else Attack()
    assert audited(system, size, np.random.SeedSequence(8), attack).verdict != "violated"


@pytest.mark.reliability(row=11)
@pytest.mark.parametrize(("one", "size"), sound(WAYS[::9], WAYS))
def test_no_sound_mechanism_is_accused_whatever_its_outputs_are(one, size):
    """False alarm: 1e-6."""
    result = measure_loss(one.mechanism, one.pair, one.claim, size=size, confidence=SURE, rng=8)
    assert result.verdict != "violated"
    assert result.support is None


def accused(number, stream, confidence=USUAL):
    """Whether an audit calls a sound mechanism violated."""
    one = WAYS[number]
    result = measure_loss(one.mechanism, one.pair, one.claim, size=SMALL, confidence=confidence, rng=stream, n_jobs=1)
    return result.verdict == "violated"


@pytest.mark.reliability(row=11)
@pytest.mark.parametrize(("ways", "times"), in_full((3, 2), (len(WAYS), 360)))
def test_sound_mechanisms_are_accused_as_seldom_as_the_confidence_says(ways, times, record_property):
    """At .99 more accusations than the limit have probability 1e-4 if each has probability .01.

    In full, a true rate above `MOST` passes with probability .05 at most: that of few misses, by Clopper and Pearson.
    """
    streams = np.random.SeedSequence(9).spawn(ways * times)
    calls = (delayed(accused)(number % ways, stream) for number, stream in enumerate(streams))
    found = Parallel(n_jobs=2 if times > 2 else 1)(calls)
    accusations, audits = sum(found), len(found)
    rate = float(beta.ppf(0.95, accusations + 1, audits - accusations))
    record_property("tried", audits)
    if times > 2:
        record_property(
            "words",
            f"{audits:,} audits of {ways} sound mechanisms at confidence {USUAL:g}: {accusations} accused; with 95% "
            f"confidence the rate is at most {at_most(rate, 2)}",
        )
        assert audits >= 10_000
        assert rate <= MOST
    assert accusations <= most(audits, USUAL)


@pytest.mark.slow
def test_audits_that_accuse_too_often_are_seen():
    """Negative control: audits at confidence .8 accuse too often for .99."""
    streams = np.random.SeedSequence(10).spawn(20 * len(WAYS))
    found = [accused(number % len(WAYS), stream, 0.8) for number, stream in enumerate(streams)]
    assert sum(found) > most(len(found), USUAL)


def test_what_is_not_audited_as_sound_has_a_known_bug():
    names = {system.name for system in SOUND}
    others = {name: type(one.mechanism()).__module__ for name, one in systems().items() if name not in names}
    faulty = {name for name, known in BENCHMARKS.items() if not known.sound}
    assert {name for name, module in others.items() if not module.startswith("algorithms.bugs.")} == faulty | UNSOUND
    assert len(SOUND) + len(WAYS) >= 40
