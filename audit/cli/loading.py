"""What a shell can name: systems, mechanisms of one's own, files of numbers."""

from __future__ import annotations

import importlib
import itertools
import math
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.installed import offered

__all__ = [
    "bundled",
    "described",
    "named_mechanism",
    "own_mechanism",
    "read_counts",
    "read_numbers",
    "systems_of_counts",
]

LARGEST_INPUT = 2**31  # bytes of a file of outputs or counts


def bundled() -> set[str]:
    """Return the names of the bundled data."""
    return set(offered("systems").EXTRACTS)


def systems_of_counts() -> dict[str, Any]:
    """Return the systems that can be audited on any counts, by name: nothing runs."""
    return {name: system for name, system in offered("systems").systems().items() if system.of_counts}


def named_mechanism(name: str, settings: dict[str, Any]) -> Any:
    """Return the mechanism of a system, or say which there are."""
    known, epsilon = systems_of_counts(), settings["epsilon"]
    there = [other for other, system in known.items() if system.below == math.inf or epsilon < system.below]
    if name not in there:
        hint = f" ({name} needs an epsilon below {known[name].below:g})" if name in known else ""
        raise ValueError(f"no algorithm for epsilon {epsilon:g} is called {name!r}{hint}; there are {', '.join(there)}")
    try:
        return known[name].mechanism(**settings)
    except ImportError as error:
        raise ValueError(str(error)) from error


def own_mechanism(name: str) -> Any:
    """Import a mechanism of the user's own."""
    module, _, path = name.partition(":")
    if "" in (*module.split("."), *path.split(".")):
        raise ValueError(f"a mechanism of your own is written module:object, got {name!r}")
    if "" not in sys.path:  # a module beside the user is found, as `python -m` would, and so is what it imports later
        sys.path.insert(0, "")
        if any(Path(other).is_dir() or Path(f"{other}.py").exists() for other in ("audit", "algorithms")):
            sys.path.insert(0, str(Path(__file__).parents[2]))  # workers look for our packages, not for these
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"{module!r} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:
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
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"


def read_counts(data: str) -> tuple[NDArray[Any], Callable[[int], str]]:
    """Return counts, and how to name their cells."""
    if data in bundled():
        tree, counts = offered("systems").load(data)
        return counts, tree.label
    path = Path(data)
    if path.suffix not in (".csv", ".npy"):
        raise ValueError(
            f"data must be {' or '.join(sorted(bundled()))}, or a .csv or .npy file of counts, got {data!r}"
        )
    numbers = read_numbers(path)
    if path.suffix == ".csv" and numbers.ndim > 1 and min(numbers.shape) > 1:  # such as a column of codes
        raise ValueError(f"{path} must hold one count a line, got a table of shape {numbers.shape}")
    return numbers.reshape(-1), lambda index: f"cell {index}"


def read_numbers(path: Path) -> NDArray[Any]:
    """Read a table of numbers: .npy, or comma-separated text with or without a line of names."""
    if path.stat().st_size > LARGEST_INPUT:
        raise ValueError(f"{path} must be at most {LARGEST_INPUT} bytes, got {path.stat().st_size}")
    try:
        if path.suffix == ".npy":
            with path.open("rb") as file:  # not np.load, which also opens archives
                return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
        with path.open(encoding="utf-8-sig") as lines, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of no data, which is an error here
            first = lines.readline()  # read once: a pipe has it only once
            named = not any(letter.isdigit() for letter in first)  # a line of names
            start = [] if named else [first]
            table = np.loadtxt(itertools.chain(start, lines), delimiter=",", ndmin=2)
    except (ValueError, MemoryError) as error:
        raise ValueError(f"{path} must hold numbers, one run or count a line: {error}") from error
    if table.size == 0:
        raise ValueError(f"{path} must hold at least one number, got none")
    return table[:, 0] if table.shape[1] == 1 else table
