"""Audit a count of OpenDP: the adapter knows what the library promises. Needs the extra `release`."""

import opendp.prelude as dp

from audit import NeighborPair, measure_loss
from audit.adapters import opendp

dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)


def noise():
    """Build the measurement: in every worker process anew, since it cannot be pickled."""
    return space >> dp.m.then_laplace(scale=2.0)


mechanism = opendp.mechanism(noise, entrywise=True)  # one call makes many runs
pair = NeighborPair.add_people([120, 75, 43], cell=0)
print(mechanism.claim)
print(measure_loss(mechanism, pair, mechanism.claim, size=40_000, confidence=1 - 1e-6))
