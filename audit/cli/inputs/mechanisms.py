"""Mechanisms of the user's own, named module:object."""

from __future__ import annotations

import hashlib
import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from audit.cli.exits import words_of
from audit.cli.inputs.options import suggestion
from audit.io.files import recorded
from audit.mechanism import in_this_process
from audit.sampling.anew import import_anew

__all__ = ["blaming", "described", "own_mechanism", "source_of"]


def own_mechanism(name: str) -> Any:
    """Import a mechanism of the user's own."""
    module, _, path = name.partition(":")
    if "" in (*module.split("."), *path.split(".")):
        raise ValueError(f"a mechanism of your own is written module:object, got {name!r}")
    if "" not in sys.path:  # a module beside the user is found, and what it imports later; but no library is there
        sys.path.append("")
    try:
        with in_this_process():
            value: Any = importlib.import_module(module)
    except ImportError as error:
        file = f"; a file is named without .py, {module[:-3]}:{path}" if module.endswith(".py") else ""
        raise ValueError(f"{module!r} cannot be imported: {error}{file}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # theirs may be of any kind
        raise ValueError(f"{module!r} cannot be imported: {described(error)}") from error
    _check_not_hidden(module)
    for part in path.split("."):
        if not hasattr(value, part):
            raise ValueError(f"{module!r} has no {path!r}{suggestion(part, dir(value))}")
        value = getattr(value, part)
    if not callable(value) or isinstance(value, type):
        raise ValueError(f"{name} must be a mechanism, callable as (data, size, rng), got {type(value).__name__}")
    import_anew(value, name)
    return value


def source_of(name: str) -> dict[str, Any]:
    """Return the file that a mechanism was imported from, for a record; nothing for a registered system."""
    file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None) if ":" in name else None
    if file is None:
        return {}
    return {"imported": {"file": recorded(file), "sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()}}


def _check_not_hidden(module: str) -> None:
    """Refuse a module with the name of a library: the library was imported instead."""
    top = module.partition(".")[0]
    beside = PathFinder.find_spec(top, [str(Path.cwd())])
    origin = beside.origin if beside is not None else None
    imported = getattr(sys.modules[top], "__file__", None)
    if origin is not None and (imported is None or Path(imported).resolve() != Path(origin).resolve()):
        library = imported or "in Python itself"
        raise ValueError(f"a module of your own must not have the name of a library, got {top!r}, which is {library}")


def described(error: BaseException) -> str:
    """Return an error of the user's code in one line."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {words_of(error)} ({Path(place.filename).name}, line {place.lineno})"


@contextmanager
def blaming(name: str) -> Iterator[None]:
    """Turn any exception of a mechanism into one line with its name."""
    try:
        yield
    except (ValueError, TypeError, ConnectionError) as error:  # bad input, of the user or the mechanism; a cluster lost
        raise ValueError(f"{name}: {words_of(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # theirs may be of any kind
        raise ValueError(f"{name} failed: {described(error)}") from error
