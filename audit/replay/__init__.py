"""Record and replay: a deterministic check of pipelines too slow to sample, with the exact change of every noisy query.

A mechanism runs on a database, and plaudit records the inputs and answers of its noise primitives. It then runs on the
neighbor, where the primitives give **the same answers**. An observer who sees only answers cannot tell the two runs
apart, so nothing that follows from the answers may differ. (With the same noise instead, sound code that looks at noisy
values would branch differently, and be accused.) A pair without a violation proves nothing.
Source: "dp-recorder", arXiv 2602.17454, which found 13 violations in 12 libraries by such replays.

Guarantee: every violation was seen in runs, and no noise hides it, if primitives draw all noise that hides the data,
their answers depend only on their inputs, and an observer may see the answers. For losses the last is not assumed,
since sparse vectors, noisy maxima and retries keep answers secret and lose less: a violation of kind ``"loss"`` counts
only queries whose numbers all stand unchanged in the output, in this run and in 20 with other answers. A mechanism
whose time does not depend on the data is accused of it with probability at most 1e-6.

Only what twenty runs on each database, with the same answers and other generators, repeat is evidence. A draw that gets
no value is replayed as the same noise, and nothing after it is evidence: sound code may then branch differently. Replay
does not see draws in threads and processes that the mechanism starts. If a mechanism keeps what it computed on `x`,
replay may never see it read `y`.
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
