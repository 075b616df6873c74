"""Commands of ``plaudit`` that work on what audits left behind, or before there is one: a module each."""

from __future__ import annotations

__all__: list[str] = []
