"""Mechanisms of one's own that a shell can name."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from audit.cli.exits import words_of

__all__ = ["blaming", "described", "own_mechanism"]


def own_mechanism(name: str) -> Any:
    """Import a mechanism of the user's own."""
    module, _, path = name.partition(":")
    if "" in (*module.split("."), *path.split(".")):
        raise ValueError(f"a mechanism of your own is written module:object, got {name!r}")
    if "" not in sys.path:  # a module beside the user is found, as `python -m` would, and so is what it imports later
        sys.path.insert(0, "")
        if any(Path(other).is_dir() or Path(f"{other}.py").exists() for other in ("audit", "algorithms")):
            sys.path.insert(0, str(Path(__file__).parents[3]))  # workers look for our packages, not for these
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"{module!r} cannot be imported: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # theirs may be of any kind
        raise ValueError(f"{module!r} cannot be imported: {described(error)}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{module!r} has no {path!r}")
        found = getattr(found, part)
    if not callable(found) or isinstance(found, type):
        raise ValueError(f"{name} must be a mechanism, callable as (data, size, rng), got {type(found).__name__}")
    return found


def described(error: BaseException) -> str:
    """Return an error of code that is not ours in one line."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {words_of(error)} ({Path(place.filename).name}, line {place.lineno})"


@contextmanager
def blaming(name: str) -> Iterator[None]:
    """Turn whatever a mechanism raises into one line with its name."""
    try:
        yield
    except (ValueError, TypeError) as error:  # bad input, the user's or the mechanism's
        raise ValueError(f"{name}: {words_of(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # theirs may be of any kind
        raise ValueError(f"{name} failed: {described(error)}") from error
