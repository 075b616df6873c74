"""The command `plaudit`, one module for each subcommand; the measurements are in other packages."""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command. `audit.cli.app` is imported here, so that only the supervised process loads it."""
    from audit.cli import app

    app.main(arguments)
