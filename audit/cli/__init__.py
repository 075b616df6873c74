"""The command `plaudit`, one module a subcommand; what the subcommands do is done elsewhere."""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command; see `audit.cli.app`, which is loaded where somebody watches how that ends."""
    from audit.cli import app

    app.main(arguments)
