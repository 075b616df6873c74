"""Noise that a test can read."""

from __future__ import annotations

import pytest

from algorithms.noise import Laplace


@pytest.fixture
def scripted(monkeypatch):
    """Replace the sampler by one that keeps the noise it hands out, with its scale, in order."""
    handed = []

    def sample(self, size, rng):
        handed.append((self.scale, rng.normal(0, 3, size)))
        return handed[-1][1].copy()

    monkeypatch.setattr(Laplace, "sample", sample)
    return handed
