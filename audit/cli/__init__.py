"""The command `plaudit`, one module a subcommand; what the subcommands do is done elsewhere."""

from __future__ import annotations

from audit.cli.app import main

__all__ = ["main"]
