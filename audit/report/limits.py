"""What an audit cannot tell, each with the experiment that shows it: the list of every report and of LIMITATIONS.md."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import NamedTuple

__all__ = ["LIMITS", "Limit"]


class Limit(NamedTuple):
    """What does not follow from an audit, why, what helps, and the experiment or test that shows it."""

    what: str
    why: str
    helps: str
    experiment: str = ""
    test: str = ""


_file = resources.files("audit.report") / "templates" / "limits.toml"
LIMITS = tuple(Limit(**limit) for limit in tomllib.loads(_file.read_text("utf-8"))["limit"])
