"""Comparison of laws of noise on counts at the same epsilon. The laws are in `algorithms.noise`."""
