"""The questions: each asks one, states what it expects, and draws what it found. Run ``python -m experiments``."""
