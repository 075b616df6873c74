"""Record and replay: a deterministic check of pipelines too slow to sample, with the exact change of every noisy query.

A mechanism runs on a database, and plaudit records the inputs and answers of its noise primitives. It then runs on the
neighbor, where the primitives give **the same answers**. An observer who sees only answers cannot tell the two runs
apart, so nothing that follows from the answers may differ. (With the same noise instead, sound code that looks at noisy
values would branch differently, and be accused.) A pair without a violation proves nothing.
Source: "dp-recorder", arXiv 2602.17454, which found 13 violations in 12 libraries by such replays.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from audit.replay.recording import Sensitivity, primitive
from audit.replay.replaying import replay
from audit.replay.result import Query, Replay
from audit.replay.violations import Violation

__all__ = ["Query", "Replay", "Sensitivity", "Violation", "primitive", "replay"]


class _Callable(ModuleType):
    """A module that is its own function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Replay:
        return replay(*args, **kwargs)


# The function and its package share a name. ``from audit import replay`` gives the function the first time; importing
# it makes the package an attribute of `audit`, so that the next time gives that. Both can be called, and both have
# `primitive`.
sys.modules[__name__].__class__ = _Callable
replay.primitive = primitive  # type: ignore[attr-defined]
