"""Experiments: each asks a question, states its expectation, and draws its result. Run ``python -m experiments``."""
