"""Neighboring databases of households, and how far one person moves every query; no noise is drawn here."""
