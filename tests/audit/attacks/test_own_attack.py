"""An attack of one's own: one class and one line, and every audit knows it."""

from functools import partial

import numpy as np
import pytest

from audit import NeighborPair, PureDP, Statistic, measure_loss
from audit.attacks import Attack, Exploration, register_attack
from audit.attacks.protocol import _registered, candidate_statistics
from audit.events import cell
from audit.outputs import Kind
from audit.sampling.runs import MechanismRuns
from tests.helpers import whole

PAIR = NeighborPair.add_people([120, 75], cell=0)


class Rounding:
    """Noise that is rounded less on one database: fractional bits of an entry that hardly moves."""

    name = "fractional bits"
    automatic = True

    def candidates(self, exploration):
        """Return how many bits the fractions of an entry have, where a few runs have any."""
        runs = max(2, exploration.choosing // 20)  # an audit may have few
        on_x, _ = exploration.outputs(runs, lambda outputs: outputs.reshape(len(outputs), -1) % 1)
        for entry in np.flatnonzero(np.concatenate(list(on_x)).any(axis=0)):
            yield Statistic(f"bits of output[{entry}]", partial(self.bits, entry))

    @staticmethod
    def bits(entry, outputs):
        """Return how many bits the fraction of an entry has, shape (runs,)."""
        fractions = outputs.reshape(len(outputs), -1)[:, entry, None] % 1 * 2.0 ** np.arange(9)
        return (fractions % 1 > 0).sum(axis=1)


def leaky(data, size, rng):
    """Normal noise so wide that sums tell nothing, in sixteenths on one database and in eighths on the other."""
    grid = 16 if data[0] > 120 else 8
    return np.rint((data + rng.normal(scale=1e4, size=(size, 2))) * grid) / grid


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr("audit.attacks.protocol._registered", dict(_registered))
    register_attack(Rounding())


@pytest.mark.parametrize(("gone", "verdict"), [((), "violated"), (("fractional_bits",), "not refuted")])
def test_no_audit_without_it_finds_the_leak(registered, gone, verdict):
    """4 s: what is not found is looked for by every other attack."""
    attack = Attack.without("novelty", "trained", *gone)  # novelty sees the gaps between eighths
    assert measure_loss(leaky, PAIR, PureDP(1.0), attack=attack, size=2000, rng=1).verdict == verdict


def test_it_cannot_spend_the_runs_that_choose(registered):
    runs = MechanismRuns(PAIR, np.random.SeedSequence(1), Kind((2,)), leaky)
    assert candidate_statistics(runs, Attack.named("fractional_bits"), 400).spent == 20
    Exploration(runs, 25).outputs(20, whole)
    with pytest.raises(ValueError, match="attacks may spend 80% of 24 selection runs, got 20"):
        Exploration(runs, 24).outputs(20, whole)
    with pytest.raises(ValueError, match="attacks may spend 80% of 2 selection runs"):
        candidate_statistics(runs, Attack.named("fractional_bits"), 2)


class Greedy:
    """All that attacks may spend."""

    name = "greedy"
    automatic = True

    def candidates(self, exploration):
        exploration.outputs(int(0.8 * exploration.choosing) - exploration.spent, whole)
        yield cell(0)


class Later(Rounding):
    """The same, once more."""

    name = "later"


def test_an_attack_that_gets_no_runs_is_skipped_and_the_result_says_so(monkeypatch):
    monkeypatch.setattr("audit.attacks.protocol._registered", dict(_registered))
    for attack in (Greedy(), Rounding(), Later()):
        register_attack(attack)
    result = measure_loss(leaky, PAIR, PureDP(1.0), size=400, rng=1)
    assert "fractional_bits" not in result.tried
    for name in ("fractional_bits", "later"):
        assert f"the attack {name} got no runs, as those before it spent them" in " ".join(result.notes)
