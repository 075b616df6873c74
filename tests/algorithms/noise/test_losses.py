"""The losses of noise: known ones, bounds of others, and what a watcher sees."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from algorithms import noise
from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.bottom_up.mechanism import NoisyCounts
from algorithms.flaxman import ADPC, RDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.nist.mechanism import NistDp3
from algorithms.noise import DiscreteGaussian, Gaussian, Laplace, TwoTailedGeometric, add_noise
from algorithms.noise.gaussian import gaussian_loss
from algorithms.noise.geometric import GeometricBudget
from algorithms.noise.losses import losses_of_change
from algorithms.ons.laws import CountNoise
from algorithms.phsafe import measurement
from algorithms.systems import systems
from algorithms.topdown.budget import Budget
from audit.claims import GaussianDP


@pytest.mark.parametrize("mu", [3.0, *(pytest.param(mu, marks=pytest.mark.slow) for mu in (1e-3, 0.1, 1.0, 10.0))])
def test_the_table_of_normal_noise_is_an_upper_bound_close_to_the_profile(mu):
    law = gaussian_loss(mu)
    for one in (law, law.reverse()):
        assert one.probability.sum() == pytest.approx(1, abs=1e-12)
        for order in (1.5, 8):
            assert 0 <= one.renyi(order) / (order * mu**2 / 2) - 1 < 2e-5
        for epsilon in (0.0, 2 * mu):
            assert 0 <= one.delta_at(epsilon) / GaussianDP(mu).delta_at(epsilon) - 1 + 1e-12 < 5e-5
        assert one.maximum == math.inf
    assert not 0 <= gaussian_loss(1.01 * mu).renyi(2) / mu**2 - 1 < 2e-5  # a percent is seen


def test_tables_of_no_change_of_several_values_and_of_too_much():
    assert gaussian_loss(0.0).maximum == 0
    assert gaussian_loss(1e200).infinite_mass == 1
    [law] = losses_of_change(Gaussian(2.0), np.array([3.0, -4.0]))  # the L2 change is 2.5 scales
    assert law.renyi(2) == pytest.approx(2.5**2, rel=1e-5)
    for law in (Laplace(1.0), Gaussian(1.0), TwoTailedGeometric(1.0)):
        assert losses_of_change(law, np.zeros(3)) == []
        assert losses_of_change(law, np.array([math.nan]))[0].infinite_mass == 1


@pytest.mark.parametrize(
    ("law", "change", "largest"),
    [
        (TwoTailedGeometric(0.5), [0, -3, 1], 2.0),
        (Laplace(2.0), [0, -3, 1], 2.0),
        (Laplace(2.0), [0.5, -0.25], 0.375),
        (CountNoise("laplace", 0.5, rounded=False), [2], 1.0),
        (CountNoise("gaussian", 1.0, 0.1, rounded=False), [2], math.inf),
        (Gaussian(2.0), [1.0], math.inf),
        (DiscreteGaussian(2.0), [1], math.inf),
        (InverseCdf(1.0), [1], math.inf),
        (TwoTailedGeometric(0.5), [0.5], math.inf),  # whole noise does not hide a fraction
    ],
)
def test_largest_losses(law, change, largest):
    losses = losses_of_change(law, np.array(change))
    assert math.fsum(loss.maximum for loss in losses) == pytest.approx(largest, rel=1e-12)


def test_losses_that_are_not_known():
    assert losses_of_change(SimpleNamespace(), np.ones(1)) is None
    assert losses_of_change(CountNoise("laplace", 1.0), np.array([0.5])) is None
    assert losses_of_change(TwoTailedGeometric(1.0), np.array([2**40])) is None
    assert losses_of_change(TwoTailedGeometric(1e308), np.array([3])) is None
    assert losses_of_change(InverseCdf(1e-9), np.ones(1)) is None
    assert losses_of_change(DiscreteGaussian(1e9), np.ones(1)) is None
    assert losses_of_change(DiscreteGaussian(1.0), np.array([10**6])) is None


@pytest.mark.parametrize("law", [TwoTailedGeometric(0.5), Laplace(2.0), Gaussian(2.0), DiscreteGaussian(2.0)])
@pytest.mark.parametrize("exact", [[10, 0, 3], [[1.5], [2.5]], 7])
@pytest.mark.parametrize("size", [None, 4])
def test_noise_is_that_of_the_law_and_added(law, exact, size):
    shape = np.shape(exact) if size is None else (size, *np.shape(exact))
    exact = np.asarray(exact)
    expected = law.sample(shape, np.random.default_rng(1)) + exact
    exact.flags.writeable = False  # what noise is added to stays
    found = add_noise(exact, law, size, np.random.default_rng(1))
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


def test_a_watcher_sees_every_draw_once_and_may_answer():
    calls = []

    def watcher(draw, **call):
        calls.append(call)
        return draw() * 0

    rng = np.random.default_rng(0)
    with noise.watched(watcher):
        assert Gaussian(1.0).sample((2, 3), rng).tolist() == [[0] * 3] * 2
        assert add_noise([5], Laplace(2.0), 2, rng, query="q", sensitivity=(1, 2)).tolist() == [[0], [0]]
    assert calls[0] == {"law": Gaussian(1.0), "shape": (2, 3), "rng": rng}
    assert calls[1]["value"].tolist() == [5]
    assert (calls[1]["query"], calls[1]["sensitivity"], calls[1]["shape"]) == ("q", (1, 2), (2, 1))
    assert calls[2]["law"] == Laplace(2.0)  # the draw that it is made of
    assert len(calls) == 3
    assert Gaussian(1.0).sample(3, rng).any()
    assert len(calls) == 3


UNROUNDED, GAUSSIAN = {"rounded": False}, {"law": "gaussian", "delta": 0.05}


@pytest.mark.parametrize(
    ("system", "options", "owner", "attribute"),
    [
        ("gdpc", {}, GeometricBudget, "noise"),
        ("adpc", {}, ADPC, "noise"),
        ("rdpc", {}, RDPC, "noise"),
        ("gaussian-counts", {}, GaussianCounts, "noise"),
        ("bottom-up", {}, NoisyCounts, "law"),
        ("bottom-up-inverse-cdf", {}, NoisyCounts, "law"),
        *[("ons-independent", {"law": law}, CountNoise, "noise") for law in ("laplace", "geometric")],
        pytest.param("ons-independent", UNROUNDED, CountNoise, "noise", marks=pytest.mark.slow),
        ("ons-independent", GAUSSIAN, CountNoise, "noise"),
        *[("nist", {"stage": "measurements", "law": law}, NistDp3, "noise") for law in ("laplace", "geometric")],
        ("phsafe", {}, measurement, "noise_law"),  # its pair is made, 1 s
        ("topdown", {"stage": "measurements"}, Budget, "law"),
    ],
)
def test_the_exact_loss_of_a_system_follows_its_noise(system, options, owner, attribute, monkeypatch):
    """A quarter of the noise exceeds the promise, also where one person loses less than the promise allows."""
    whole = owner.__dict__[attribute]
    get = getattr(whole, "fget", None) or getattr(whole, "func", None)

    def quarter(*inputs):
        law = (get or whole)(*inputs)
        name, factor = ("epsilon", 4) if hasattr(law, "epsilon") else ("scale", 1 / 4)
        return replace(law, **{name: factor * getattr(law, name)})

    def excess():
        mechanism, pair = systems()[system].mechanism(**options), systems()[system].pair()
        allowed = max(1e-6, getattr(mechanism.claim, "delta", 0.0))
        return mechanism.exact_loss(pair).delta_at(mechanism.claim.epsilon_at(allowed)) / allowed

    assert excess() <= 1.01
    monkeypatch.setattr(owner, attribute, property(quarter) if get else quarter)
    assert excess() > 1.5
