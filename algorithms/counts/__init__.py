"""Noise on counts, side by side: what an epsilon means under each law. The laws are in `algorithms.noise`."""
