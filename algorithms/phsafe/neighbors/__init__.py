"""Neighboring databases of households, and the change of every query between them; no noise is drawn here."""
