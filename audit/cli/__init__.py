"""The command `plaudit`, one module for each subcommand; the measurements are in other packages."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command. `audit.cli.app` is imported here, so that only the supervised process loads it."""
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:  # needs no other import
        from audit.cli.exits import finished, print_version

        sys.exit(finished(print_version, "plaudit"))
    from audit.cli import app

    app.main(arguments)
