"""Audit a mechanism of your own: it keeps the one promise and breaks the other."""

import numpy as np
from mymodule import noisy_counts

from audit import NeighborPair, PureDP, measure_loss

counts = np.loadtxt("counts.csv", dtype=int)
pair = NeighborPair.add_people(counts, cell=0)

for epsilon in (0.5, 1.0):
    result = measure_loss(noisy_counts, pair, PureDP(epsilon), size=40_000, confidence=1 - 1e-6, rng=1)
    print(result)
    result.to_json(f"noisy_counts-{epsilon:g}.json")
