"""Estimates of mechanisms that are run: what is subtracted, which entry is looked at, and what is refused."""

import numpy as np
import pytest

from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from audit.estimates.running import estimate_direct, estimate_loss, estimate_residuals, exact_output
from audit.neighbors import NeighborPair
from tests.helpers import geometric, refused_like, refuses

PAIR = NeighborPair.add_people([20, 7, 5], 1)
MANY = np.zeros(300_000)


class Squared:
    """Counts of a table of two rows with noise for epsilon 1; the second row has each count twice."""

    def exact(self, data):
        return np.stack([data, 2 * data])

    def __call__(self, data, size, rng):
        return self.exact(data) + geometric(1.0, (size, 2, data.size), rng)


class Silent:
    """Returns what it is told to."""

    def __init__(self, exact, outputs):
        self._exact, self._outputs = exact, outputs

    def exact(self, data):
        return self._exact(data)

    def __call__(self, data, size, rng):
        return self._outputs(data, size, rng)


def test_the_loss_of_known_noise_is_estimated():
    """Within 5 standard errors, which a sound estimator leaves once in a million: 0.5 by 0.02 from 9,000 errors."""
    data = np.full(9_000, 30)
    found = estimate_residuals(GDPC(0.5), data, rng=3)
    assert (found.size, found.areas) == (1, 9_000)
    assert found.value == pytest.approx(0.5, abs=0.05)
    other = estimate_residuals(GDPC(1.5), data, rng=3)
    assert other.value - found.value > 0.5


def test_the_entry_that_changes_most_is_looked_at_and_the_loss_is_that_of_its_change():
    """A person shifts it by 2, at noise for 1 each: the log-ratio is 2, by 0.03."""
    found = estimate_direct(Squared(), PAIR, runs=40_000, at=[2], rng=5)
    assert (found.settings["entry"], found.settings["entries_changed"]) == ([1, 1], 2)
    assert found.value == pytest.approx(2.0, abs=0.2)


def test_thresholds_reach_as_far_as_the_noise():
    near = estimate_direct(GDPC(1.0), PAIR, runs=2_000, rng=1)
    assert near.at.tolist() == list(range(-8, 9))
    far = estimate_direct(GDPC(0.02), PAIR, runs=2_000, rng=1)  # a standard deviation of 71
    assert len(far.at) == 17
    assert 120 < np.ptp(far.at) < 320
    assert -50 < far.at[8] < 50  # the median of 1,000 errors


def test_biased_counts_are_asked_around_their_median_error():
    biased = Silent(lambda data: data, lambda data, size, rng: data + 40 + geometric(1.0, (size, data.size), rng))
    found = estimate_direct(biased, PAIR, runs=2_000, rng=1)
    assert found.at.tolist() == list(range(32, 49))


def test_a_seed_decides_all():
    for run, data in ((estimate_residuals, PAIR.x), (estimate_direct, PAIR)):
        one, again, other = (run(GDPC(1.0), data, runs=400, rng=seed).to_dict() for seed in (7, 7, 8))
        assert one == again
        assert one["loss"] != other["loss"]
        assert one["settings"]["seed"] == 7


def test_an_exact_output_is_finite_numbers():
    assert exact_output(Squared(), np.array([3, 4])).tolist() == [[3, 4], [6, 8]]
    for error, message, exact in (
        (ValueError, "the exact output must be finite and below 2**53 in size, got nan", lambda data: [np.nan]),
        (TypeError, "the exact output must be real numbers, got dtype <U4", lambda data: ["many"]),
        (ValueError, "the exact output must be a filled array of 1 dimensions, got shape (0,)", lambda data: []),
    ):
        refuses(error, message, exact_output, Silent(exact, None), PAIR.x)


PLAIN = Silent(lambda data: data, lambda data, size, rng: np.zeros((size, 3)))
WORDS = Silent(lambda data: data, lambda data, size, rng: [["many"] * 3] * size)
NARROW = Silent(lambda data: data, lambda data, size, rng: np.zeros((size, 2)))
FIXED = Silent(lambda data: data, lambda data, size, rng: np.tile(data, (size, 1)))
GROWING, SAME = Silent(lambda data: np.zeros(data.sum()), None), Silent(lambda data: [1], None)
OF_SHAPE = "outputs must be numbers of the shape of the exact one, (3,), got"
OF_BOTH = "exact outputs must be of one shape on both databases, got (32,) and (33,)"
TOO_MANY = "runs must make at most 67,108,864 errors, got 1,000,000,000 runs of 3"
INVARIANT = "residuals must vary (an invariant count has no loss to estimate), got only 0.0"


@pytest.mark.parametrize(
    ("words", "estimate", "mechanism", "data", "options"),
    [
        ("runs must be at least 20, got 19", estimate_direct, PLAIN, PAIR, {"runs": 19}),
        ("pair must be a NeighborPair, got tuple", estimate_direct, PLAIN, (PAIR.x, PAIR.y), {}),
        (OF_BOTH, estimate_direct, GROWING, PAIR, {}),
        ("exact outputs must differ between the two databases, got the same", estimate_direct, SAME, PAIR, {}),
        (f"{OF_SHAPE} words or rows of several lengths", estimate_direct, WORDS, PAIR, {}),
        (f"{OF_SHAPE} (2,) in 3334 runs", estimate_residuals, NARROW, PAIR.x, {}),
        (TOO_MANY, estimate_residuals, PLAIN, PAIR.x, {"runs": 10**9}),
        (INVARIANT, estimate_residuals, FIXED, PAIR.x, {}),
        ("blocks must be of at most 262,144 entries, got 300,000", estimate_residuals, PLAIN, MANY, {"blocks": MANY}),
    ],
)
def test_bad_input_is_refused(words, estimate, mechanism, data, options):
    refuses(TypeError if words.startswith("pair") else ValueError, words, estimate, mechanism, data, **options)


# Several laws of noise: each by itself, weighed by what the pair changes, and added up

COUNTS = np.full(9_000, 30)
ONE = NeighborPair.add_people(COUNTS, 0)
MOVED = NeighborPair.move_people(COUNTS, 0, 1)


class Both:
    """Two releases of the same counts side by side."""

    def __init__(self, *releases):
        self.releases = releases

    def components(self):
        return self.releases


@pytest.mark.parametrize("method", ["lag_tail", "kde", "histogram"])
def test_losses_of_independent_parts_add_up(method):
    """0.3 and 0.7, each by 2% in 9,000 errors (the KDE besides smooths): beyond 0.1 once in a million."""
    found = estimate_loss(Both(GDPC(0.3), GDPC(0.7)), ONE, method=method, rng=1)
    assert found.value == pytest.approx(1.0, abs=0.1)
    assert found.loss == pytest.approx([0.3, 0.7], abs=0.07)
    assert found.value == pytest.approx(found.loss.sum())
    assert (found.statistic, found.areas, found.settings["weights"]) == ("sum over components", 18_000, [1, 1])
    halves = (found.high - found.low) / 2
    assert (found.interval[1] - found.interval[0]) / 2 == pytest.approx(np.hypot(*halves))  # not their sum


def test_rho_grows_with_the_square_of_a_change():
    """0.1 and 0.4 of one person, by 1.5% in 9,000 errors."""
    three = NeighborPair.add_people(COUNTS, 0, 3)
    release = Both(GaussianCounts(0.1), GaussianCounts(0.4))
    one, group = (estimate_loss(release, pair, method="slope", rng=1) for pair in (ONE, three))
    assert one.value == pytest.approx(0.5, abs=0.04)
    assert (one.statistic, group.value) == ("rho", one.value)  # of three people 9 times as much, for one 9 times less
    assert group.settings["weights"] == [1, 1]
    moved = estimate_loss(release, MOVED, method="slope", rng=1)
    assert moved.settings["weights"] == [2, 2]

    class Doubled(GaussianCounts):
        def exact(self, counts):
            return 2 * counts

        def __call__(self, counts, size, rng):
            return super().__call__(2 * counts, size, rng)

    doubled = estimate_loss(Both(Doubled(0.1), GaussianCounts(0.4)), ONE, method="slope", rng=1)
    assert doubled.settings["weights"] == [4, 1]


def test_counts_on_both_databases_are_added_up_too():
    """Of 20,000 runs a log-ratio near 0 is right to 0.03; the largest of 17 is higher."""
    pair = NeighborPair.declared(np.array([5, 3]), np.array([7, 4]), "add_remove", distance=3)
    found = estimate_loss(Both(GDPC(0.3), GDPC(0.7)), pair, method="direct", runs=20_000, rng=1)
    assert found.settings["weights"] == [1.5, 1.5]
    assert 0.9 < found.value < 2


def test_a_mechanism_of_one_law_is_estimated_as_it_is():
    by_itself = estimate_residuals(GDPC(0.5), COUNTS, method="kde", rng=1)
    assert estimate_loss(GDPC(0.5), ONE, method="kde", rng=1).to_dict() == by_itself.to_dict()
    counted = estimate_direct(GDPC(0.5), ONE, runs=1000, rng=1)
    assert estimate_loss(GDPC(0.5), ONE, method="direct", runs=1000, rng=1).to_dict() == counted.to_dict()


def test_a_pair_that_changes_nothing_is_refused():
    class Blind(GDPC):
        def exact(self, counts):
            return np.zeros(len(counts))

    with refused_like(ValueError, "change is for one law of noise"):
        estimate_loss(Both(GDPC(1.0)), ONE, method="slope", change=2)
    with refused_like(ValueError, "must differ in an exact output, got none that changes"):
        estimate_loss(Both(Blind(1.0)), ONE, method="lag_tail")
