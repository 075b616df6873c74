"""Saved results against themselves and against each other: verify and compare; nothing here runs a mechanism."""
