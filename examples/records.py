"""Audit a mechanism that takes records: one person added, and one person's record replaced."""

import csv

import numpy as np

from audit import NeighborPair, PureDP, measure_loss

with open("people.csv", newline="") as file:
    people = [{"age": int(row["age"]), "area": row["area"]} for row in csv.DictReader(file)]


def by_area(rows, size, rng):
    """Count people by area, with geometric noise: epsilon 1 for one person added or removed."""
    exact = np.array([sum(row["area"] == area for row in rows) for area in "ABC"])
    success = 1 - np.exp(-1.0)
    return exact + rng.geometric(success, (size, 3)) - rng.geometric(success, (size, 3))


added = NeighborPair.add_row(people, {"age": 80, "area": "B"})
print(measure_loss(by_area, added, PureDP(1.0), size=40_000, confidence=1 - 1e-6, rng=1))

# Who moves changes two counts, and the loss is twice as large.
moved = NeighborPair.replace_row(people, 0, {**people[0], "area": "C"})
print(measure_loss(by_area, moved, PureDP(1.0, "replace_one"), size=40_000, confidence=1 - 1e-6, rng=1))
