"""What tests of whole audits share: laws that are the worst a promise allows, and audits of them in every way."""

import math

import numpy as np
from scipy.special import expit

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.measure.one_run import measure_loss_one_run
from audit.neighbors import NeighborPair

COUNTS = [120, 75]
PAIR = NeighborPair.add_people(COUNTS, 0)
COIN = NeighborPair.declared(0, 1, "add_remove")


def leaky(epsilon, delta):
    """Randomized response that tells the truth with probability `delta`: approximate privacy at its worst."""

    def mechanism(data, size, rng):
        bit = rng.random(size) < expit(epsilon if data else -epsilon)
        return np.where(rng.random(size) < delta, 3 * data - 1, bit)

    return mechanism


def at_the_boundary(epsilon, delta, share, distance=1):
    """Probabilities of a right guess, a wrong one and none, under the worst law that a promise allows."""
    pair = ApproxDP(epsilon, delta).group(distance)
    wrong = (share - pair.delta) / (1 + math.exp(pair.epsilon))
    assert 0 <= wrong < share <= 1
    return np.array([share - wrong, wrong, 1 - share])


def normal(data, size, rng):
    """A bit with normal noise of deviation 1, rounded: unrounded, the last bits of floats tell the bit."""
    return np.round(data + rng.normal(size=size), 6)


def gaussian(data, size, rng):
    """Normal noise of deviation 1 on every count."""
    return data + rng.normal(size=(size, *data.shape))


def shifted(data, size, rng):
    """Three times the bit, with the same noise."""
    return np.round(3 * data + rng.normal(size=size), 6)


def as_planned(truth):
    """The mechanism that a plan is for: a coin, or a count with normal noise."""
    if truth.epsilon_delta:
        right = truth.forgiven + (1 - truth.forgiven) * expit(truth.budget)
        return lambda bits, size, rng: np.where(rng.random((size, 1)) < right, 1, -1) * (2 * np.asarray(bits) - 1)
    return lambda bits, size, rng: 120 + 10 * (np.asarray(bits) + rng.standard_normal((size, 1)) / truth.shift)


def audits_of(mechanism, claim, how, size, seeds, pair=COIN):
    """Audits in one of four ways, one a seed; of outputs made elsewhere there are more on y."""
    if how not in ("outputs", "growing outputs"):
        return [measure_loss(mechanism, pair, claim, size=size, stop=how, rng=seed) for seed in seeds]
    results = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x, y = (mechanism(data, runs, rng) for data, runs in ((0, size // 2 - size // 10), (1, size // 2 + size // 10)))
        stop = "early" if how == "growing outputs" else "fixed"
        results.append(measure_loss_from_outputs(x, y, claim, relation="add_remove", rng=seed, stop=stop))
    return results


TIGHT = {
    "pure": (leaky(1.0, 0.0), PureDP(1.0), 500),
    "approximate": (leaky(1.0, 0.01), ApproxDP(1.0, 0.01), 500),
    "total variation": (leaky(0.0, 0.3), ApproxDP(0, 0.3), 500),
    "Gaussian": (normal, GaussianDP(1.0), 500),
    "zero-concentrated": (normal, ZCDP(0.5), 2000),
}


def given_laplace(seed, runs, runs_y=None, scale=1.0):
    """Outputs on either database of a count with Laplace noise, rounded."""
    rng = np.random.default_rng(seed)
    x, y = rng.laplace(0, scale, runs), rng.laplace(1, scale, runs if runs_y is None else runs_y)
    return np.round(x, 6), np.round(y, 6)


def says(*words):
    """A release of one word: each with the probabilities that it has on x and on y."""

    def mechanism(data, size, rng):
        return rng.choice([word for word, *_ in words], size, p=[chances[data] for _, *chances in words])

    return mechanism


def answers(right, wrong):
    """Tells the truth of the first counts, the opposite of the next, and of the others nothing."""

    def mechanism(data, size, rng):
        guesses = np.full(data.size, 0.5)
        guesses[:right], guesses[right : right + wrong] = data[:right], 1 - data[right : right + wrong]
        return np.tile(guesses, (size, 1))

    return mechanism


def one_run_losses(audits, mechanism, canaries, claim, **options):
    """What audits of one run measure, one a seed."""
    return [measure_loss_one_run(mechanism, canaries, claim, rng=k, **options).measured.budget for k in range(audits)]
