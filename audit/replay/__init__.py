"""Record and replay: a deterministic check, of pipelines too slow to sample, and the exact change of every noisy query.

A mechanism runs on a database, with what its noise primitives are given and what they answer recorded. It runs on the
neighbor, where the primitives give **the same answers**, and not just the same noise: to an observer who sees nothing
but answers both runs then are one, and whatever depends on them may not differ. (With the same noise, sound code that
looks at noisy values would branch otherwise, and be accused.) So one pair of runs shows a violation: another number,
order or shape of draws, a scale that depends on the data, a value that changes beyond what is declared, an output that
knows more than the answers. A run without one shows nothing: other answers may lead elsewhere. Lower bounds from many
runs are not here: see `audit.measure.loss`.

References
----------
.. [1] "dp-recorder", arXiv 2602.17454, which found 13 violations in 12 libraries by such replays.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from audit.replay.primitives import primitive
from audit.replay.recording import Sensitivity
from audit.replay.replaying import replay
from audit.replay.result import Query, Replay
from audit.replay.violations import Violation

__all__ = ["Query", "Replay", "Sensitivity", "Violation", "primitive", "replay"]


class _Callable(ModuleType):
    """A module that is its own function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Replay:
        """Return what `replay` does."""
        return replay(*args, **kwargs)


# The function and its package share a name. ``from audit import replay`` gives the function the first time; importing
# it makes the package an attribute of `audit`, so that the next time gives that. Both can be called, and both have
# `primitive`.
sys.modules[__name__].__class__ = _Callable
replay.primitive = primitive  # type: ignore[attr-defined]
