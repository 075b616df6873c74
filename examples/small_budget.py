"""Audit a small budget: plan the runs, and let the databases differ by a group of people."""

from algorithms.flaxman import GDPC
from audit import NeighborPair, PureDP, measure_loss, plan_size

epsilon = 0.05
claim = PureDP(epsilon)

for people in (1, 40):
    runs = plan_size(claim, violation=1.5, distance=people)
    print(f"{people} people: {runs:,} runs detect a loss of {1.5 * epsilon:g} with power 0.8")

# A pair that differs by w people may lose w times as much: the lower bound is divided by w.
group = NeighborPair.add_people([120, 75, 43], cell=0, people=40)
result = measure_loss(GDPC(epsilon), group, claim, size=20_000, rng=1)
print(result)
print(f"share of the budget that is proved: {result.measured.epsilon / epsilon:.2f}")
