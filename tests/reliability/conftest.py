"""What needs an extra is not looked at without it."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("cosmic_ray") else ["mutation.py"]
