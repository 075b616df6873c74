"""Verify saved results against their own counts, and compare them with each other. Nothing here runs a mechanism."""
