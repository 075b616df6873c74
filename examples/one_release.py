"""Audit one single release: secret coins decide who is in each area, and the audit guesses them."""

from algorithms.flaxman import GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from audit import Canaries, PureDP, measure_loss_one_run

# 100,000 areas of 100 people, and one person more or not in each.
areas = Canaries([100] * 100_000)
result = measure_loss_one_run(GDPC(1.0), areas, PureDP(1.0), confidence=1 - 1e-6, rng=1)
print(result)

# One release proves little about tables that add up: the count of a region depends on many people's coins at once.
tree = Hierarchy.regular(10, 3)
leaves = Canaries([100] * tree.n_leaves)
print(measure_loss_one_run(RDPC(1.0, tree), leaves, PureDP(1.0), confidence=1 - 1e-6, rng=1))
