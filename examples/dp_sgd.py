"""Audit DP-SGD, where each run is a training: one that keeps its promise, and one with half of the noise or less."""

from functools import partial

import numpy as np

from audit import GaussianDP, NeighborPair, measure_loss, per_run

PEOPLE, STEPS, RATE, CLIP, SIGMA = 200, 200, 0.05, 1.0, 10.0
PROMISE = GaussianDP(np.sqrt(STEPS) / SIGMA)  # everybody is in every batch: mu = sqrt(steps) / sigma


def train(persons, rng, sigma=SIGMA):
    """Return the weights of a logistic regression; columns are features, the last one is the label, 1 or -1."""
    x, label = persons[:, :-1], persons[:, -1]
    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        gradients = -(label / (1 + np.exp(label * (x @ weights))))[:, None] * x
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        total = (gradients / np.maximum(1, norms / CLIP)).sum(axis=0)  # each person's own gradient is clipped
        weights = weights - RATE * (total + rng.normal(scale=sigma * CLIP, size=weights.size)) / PEOPLE
    return np.round(weights, 9)


rng = np.random.default_rng(1)
features = np.column_stack([np.ones(PEOPLE), rng.normal(size=(PEOPLE, 2)), np.zeros(PEOPLE)])
labels = np.where(features @ [0.5, 1, -1, 0] + rng.logistic(size=PEOPLE) > 0, 1.0, -1.0)
# The canary alone has the last feature: large enough for a gradient that is clipped in nearly every step.
pair = NeighborPair.add_record(np.column_stack([features, labels]), [0, 0, 0, 20.0, 1.0])

for words, sigma in {"as promised": SIGMA, "half of the noise": SIGMA / 2, "noise / people": SIGMA / PEOPLE}.items():
    training = per_run(partial(train, sigma=sigma))
    result = measure_loss(training, pair, PROMISE, size=600, stop="early", rng=1)
    print(f"{words}: {result.verdict} after {result.size} trainings")
