"""The command `plaudit`, one module a subcommand; nothing is measured here."""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command; `audit.cli.app` is loaded in the supervised process."""
    from audit.cli import app

    app.main(arguments)
