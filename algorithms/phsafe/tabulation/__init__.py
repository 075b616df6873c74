"""Exact tabulation of the three input frames; no noise is drawn here."""
