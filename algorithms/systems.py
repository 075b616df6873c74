"""What the commands ``plaudit release`` and ``plaudit explore`` run: one subcommand a system."""

from __future__ import annotations

from algorithms.bottom_up import command as bottom_up
from algorithms.nist import command as nist
from algorithms.ons import command as ons
from algorithms.phsafe import command as phsafe
from algorithms.tables.commands import choices, releases
from algorithms.topdown import command as topdown

__all__ = ["bottom_up", "nist", "ons", "phsafe", "run", "topdown"]


def run(command: str, arguments: list[str]) -> int:
    """Run ``plaudit release`` or ``plaudit explore``.

    Parameters
    ----------
    command : {"release", "explore"}
        Which.
    arguments : list of str
        What follows it.

    Returns
    -------
    int
        Exit code: 0, or 2 where nothing was asked for.

    Raises
    ------
    ValueError
        If input is bad; nothing was written.
    """
    app = {"release": releases, "explore": choices}[command]
    try:
        code = app(arguments or ["--help"], prog_name=f"plaudit {command}", standalone_mode=False)
    except ImportError as error:  # an extra that is not installed
        raise ValueError(str(error)) from error
    return int(code or 0) if arguments else 2
