"""Audit outputs that another system wrote: a.csv on one database, b.csv on its neighbor, one independent run a line."""

import numpy as np

from audit import PureDP, measure_loss_from_outputs

on_x = np.loadtxt("a.csv", skiprows=1, dtype=int)  # written by noisy_count.R
on_y = np.loadtxt("b.csv", skiprows=1, dtype=int)

# That the databases are neighbors, and the runs independent, is the word of whoever made the files.
for epsilon in (0.5, 1.0):
    result = measure_loss_from_outputs(on_x, on_y, PureDP(epsilon), relation="add_remove", confidence=1 - 1e-6, rng=1)
    print(result)
