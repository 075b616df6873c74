"""What needs an extra is not looked at without it."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("cosmic_ray") else ["mutation.py"]
