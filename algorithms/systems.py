"""All systems by name, and the commands ``plaudit release`` and ``plaudit explore``.

A system of this package has a folder, with its name in `FOLDERS`; its module ``system`` registers it. Other packages
name such a module in their entry points of the group ``plaudit.systems``. A sheet of the explorer without a system is a
function in the group ``plaudit.sheets``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module, metadata
from types import MappingProxyType
from typing import Any

import typer

from algorithms.hierarchy import Hierarchy as Hierarchy
from algorithms.noise import DiscreteGaussian, TwoTailedGeometric, counted
from algorithms.population import EXTRACTS, load, uniform_population
from algorithms.registry import REGISTERED, System, counting, register
from audit.explorer.sheet import Sheet

__all__ = ["DRAWN", "EXTRACTS", "System", "counting", "load", "register", "run", "secure_noise", "sheets", "systems"]

DRAWN = {  # functions that draw a population; the default parameters are those of Flaxman (2019)
    "uniform": partial(uniform_population, people=1_000_000, levels=3, people_per_leaf=100, rng=1)
}

FOLDERS = ("flaxman", "bottom_up", "ons", "nist", "phsafe", "topdown", "benchmarks", "bugs")
OPTIONS: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
ABOUT = {
    "release": "Run a reference implementation on data of your own: tables with secure noise, and what they cost.",
    "explore": "See what budgets and thresholds mean for accuracy, and the reverse.",
}


def systems(name: str = "") -> Mapping[str, System]:
    """Return all systems by name, in the order of registration; with a `name`, at least that one, if it exists."""
    # No mechanism is built or run. Folders are imported up to that of the name, the likely one first.
    for folder in sorted(FOLDERS, key=lambda folder: not name.startswith(folder.replace("_", "-"))):
        if name in REGISTERED:
            return MappingProxyType(REGISTERED)
        import_module(".".join(("algorithms", folder, "system")))
    for point in metadata.entry_points(group="plaudit.systems"):
        point.load()
    return MappingProxyType(REGISTERED)


def secure_noise() -> str:
    """Draw a little secure noise, test it as a release does, and return the source of the noise in words."""
    with counted() as draws:
        TwoTailedGeometric(1.0).sample(1, "secure")
        DiscreteGaussian(1.0).sample(1, "secure")
    return draws.source


def sheets() -> list[Sheet]:
    """Return the sheets of the explorer in its order: first those of systems, then those of entry points."""
    points = sorted(metadata.entry_points(group="plaudit.sheets"), key=lambda point: point.name)
    own = [system.sheet() for system in systems().values() if system.sheet is not None]
    return [*own, *(point.load()() for point in points)]


def run(command: str, arguments: list[str], cls: Any = None) -> int:
    """Run ``plaudit release`` or ``plaudit explore``; `cls` writes the help."""
    app = typer.Typer(**OPTIONS, help=ABOUT[command])
    app.callback()(lambda: None)
    chosen = next(iter(arguments), "")
    known = systems(chosen)
    if chosen not in known or command not in known[chosen].commands:
        known = systems()
    offered = {name: system for name, system in known.items() if command in system.commands}
    commands = {name: system.commands[command] for name, system in offered.items()}
    if command == "explore" and chosen not in commands:
        commands |= {sheet.name: sheet.command() for sheet in sheets() if sheet.name not in offered}
    for name in [chosen] if chosen in commands else sorted(commands):
        app.command(name, cls=cls)(commands[name])
    try:
        if chosen in offered and command == "release" and "--help" not in arguments:
            offered[chosen].check_installed()
        typed = typer.main.get_command(app)
        with typed.make_context(f"plaudit {command}", [*arguments] or ["--help"]) as context:
            code = typed.invoke(context)
    except typer.Exit as left:  # after --help
        code = left.exit_code
    except ImportError as error:  # an extra that is not installed
        raise ValueError(str(error)) from error
    return int(code or 0) if arguments else 2
