"""Check a slow pipeline with one pair of runs: a noisy mean whose divisor is a true number."""

from algorithms.noise import Laplace, add_noise
from audit import NeighborPair, PureDP, replay


def mean(counts, size, rng):
    """Return a noisy total, divided by the number of areas where anybody lives."""
    total = add_noise(counts.sum(keepdims=True), Laplace(1.0), size, rng, query="total", sensitivity=1.0)
    return total / (counts > 0).sum()


def repaired(counts, size, rng):
    """Return the same with the number of all areas, which is public."""
    total = add_noise(counts.sum(keepdims=True), Laplace(1.0), size, rng, query="total", sensitivity=1.0)
    return total / counts.size


first_person = NeighborPair.add_people([120, 75, 0], cell=2)
for mechanism in (mean, repaired):
    seen = replay(mechanism, first_person, PureDP(1.0))
    print(mechanism.__name__, [violation.kind for violation in seen.violations] or "no violation")
