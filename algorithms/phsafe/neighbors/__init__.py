"""Neighboring databases of households: which pairs cost the most, and how far one person moves every query."""
