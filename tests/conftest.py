"""One profile for all properties: the same examples on every machine, however slow it is."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("plaudit", deadline=None, derandomize=True, database=None)
settings.load_profile("plaudit")
