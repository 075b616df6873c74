"""All systems by name, and the commands ``plaudit release`` and ``plaudit explore``; systems themselves live elsewhere.

A system of this package is its folder and its name in `FOLDERS`; its module ``system`` registers it. Other packages
name such a module in their entry points of the group ``plaudit.systems``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module, metadata
from types import MappingProxyType
from typing import Any

import typer

from algorithms.population import EXTRACTS, load
from algorithms.registry import REGISTERED, System, counting, named, register
from audit.explorer.sheet import Sheet

__all__ = ["EXTRACTS", "System", "counting", "load", "register", "run", "sheets", "systems"]

FOLDERS = ("flaxman", "bottom_up", "ons", "nist", "phsafe", "topdown", "benchmarks", "bugs", "bugs.systems")
OPTIONS: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
ABOUT = {
    "release": "Run a reference implementation on data of your own: tables with secure noise, and what they cost.",
    "explore": "See what budgets and thresholds mean for accuracy, and the reverse.",
}


def systems() -> Mapping[str, System]:
    """Return all registered systems by name; none is built, and nothing runs.

    Returns
    -------
    mapping of str to System
        In the order of registration: those of this package as in `FOLDERS`.

    Examples
    --------
    >>> list(systems())[:4]
    ['gdpc', 'rdpc', 'rdpc-all', 'adpc']
    >>> systems()["rdpc"].claim
    PureDP(epsilon=1.0, relation='add_remove')
    """
    for folder in FOLDERS:
        import_module(".".join(("algorithms", folder, "system")))
    for point in metadata.entry_points(group="plaudit.systems"):
        point.load()
    return MappingProxyType(REGISTERED)


def sheets() -> list[Sheet]:
    """Return the sheets of the explorer: of registered systems that have one, and of noisy counts.

    Returns
    -------
    list of Sheet
        In the order in which the page shows them.
    """
    return [named(system.sheet)() for system in systems().values() if system.sheet]


def run(command: str, arguments: list[str]) -> int:
    """Run ``plaudit release`` or ``plaudit explore``."""
    app = typer.Typer(**OPTIONS, help=ABOUT[command])
    app.callback()(lambda: None)
    offered = {name: system for name, system in systems().items() if command in system.commands}
    asked = next(iter(arguments), "")
    for name in [asked] if asked in offered else sorted(offered):  # the options of one take long enough to read
        app.command(name)(offered[name].command(command))
    try:
        if asked in offered and command == "release" and "--help" not in arguments:
            offered[asked].check_installed()
        typed = typer.main.get_command(app)
        with typed.make_context(f"plaudit {command}", [*arguments] or ["--help"]) as context:
            code = typed.invoke(context)
    except typer.Exit as left:  # after --help
        code = left.exit_code
    except ImportError as error:  # an extra that is not installed
        raise ValueError(str(error)) from error
    return int(code or 0) if arguments else 2
