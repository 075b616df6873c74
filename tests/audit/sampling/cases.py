"""Mechanisms, databases and small audits that the tests of sampling share."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audit.claims import PureDP
from audit.events import Event
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.outputs import Kind, kind_of, read_outputs
from audit.sampling.blocks import draw
from audit.sampling.calls import Caller
from audit.sampling.runs import GivenRuns, MechanismRuns
from tests.helpers import noisy

PAIR = NeighborPair.add_people([120, 75], 0)
CLAIM = PureDP(1.0)
SIZE = 1500
DATA = np.arange(16.0)
PAIRS = [NeighborPair.add_people([5, other], 0) for other in range(6)]  # equally bad, all of them
STEP = Event.at_least(0, 6, low=5)  # no other event shows more of geometric noise
SEED = np.random.SeedSequence(2020)
ROOT = np.random.SeedSequence(2021)
THREE = NeighborPair.add_people([30, 40, 50], cell=1)


@dataclass(frozen=True)
class Laplace:
    """Noise on every count, a few runs at a time."""

    scale: float = 1.0
    runs_per_block: int = 50
    threads: ClassVar[bool] = True

    def __call__(self, data, size, rng):
        return data + rng.laplace(scale=self.scale, size=(size, data.size))


def audit(mechanism=None, *, pair=PAIR, claim=CLAIM, rng=7, size=SIZE, **options):
    return measure_loss(mechanism or Laplace(), pair, claim, size=size, rng=rng, **options)


def same(first, second):
    """Whether two audits are one but for their times."""
    timeless = [
        {**result.to_dict(), "seconds": 0, "provenance": {**result.provenance, "created": ""}}
        for result in (first, second)
    ]
    return timeless[0] == timeless[1]


ALONE = functools.cache(audit)


def geometric(data, size, rng):
    draws = rng.geometric(1 - math.exp(-1), (2, size, data.size))
    return data + draws[0] - draws[1]


def in_threads(mechanism):
    """A mechanism that says that threads may share it: they start at once, and see what the test sees."""
    mechanism.threads = True
    return mechanism


def noting(sizes, give=noisy):
    """A mechanism that notes how many runs it is asked for."""

    def mechanism(data, size, rng):
        sizes.append(size)
        return give(data, size, rng)

    return in_threads(mechanism)


@in_threads
def same_noise(data, size, rng):
    return noisy(data, size, np.random.default_rng(1))


def first_entry(outputs):
    return outputs[:, :1].copy()


def drawn(mechanism=noisy, data=DATA, size=42, *, reduce=first_entry, seed=SEED, shape=None, **options):
    kind = Kind(np.shape(data) if shape is None else shape)
    return list(draw(Caller(mechanism, data, kind), size, reduce=reduce, seed=seed, **options))


def runs_of(mechanism=noisy, pair=THREE, shape=(3,), *, root=ROOT, progress=None):
    return MechanismRuns(pair, root, Kind(shape), mechanism, 1, (progress if progress is not None else []).append)


def given_runs(x, y, pair=THREE):
    kind = kind_of((x, y))
    outputs = read_outputs(x, kind), read_outputs(y, kind)
    return GivenRuns(pair, ROOT, kind, outputs, [np.arange(len(side)) for side in outputs])
