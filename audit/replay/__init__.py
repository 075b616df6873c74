"""Record and replay: a deterministic check of pipelines too slow to sample, with the exact change of every noisy query.

A mechanism runs on a database, and plaudit records the inputs and answers of its noise primitives. It then runs on the
neighbor, where the primitives return **the same answers**. An observer who sees only answers cannot distinguish the two
runs, so nothing computed from the answers may differ. (If the noise were the same instead of the answers, correct code
that branches on noisy values would be reported.) A pair without a violation proves nothing.
Source: "dp-recorder", arXiv 2602.17454, which found 13 violations in 12 libraries by such replays.

Guarantee: every violation was observed in runs, and no noise hides it. This assumes that primitives draw all noise that
hides the data, that their answers depend only on their inputs, and that an observer may see the answers. The joint loss
does not need the last assumption, since sparse vectors, noisy maxima and retries keep answers secret and lose less: a
violation of kind ``"loss"`` counts only queries whose numbers all occur unchanged in the output, in this run and in 20
with other answers. If times do not depend on the data, a violation of kind ``"time"`` has probability at most 1e-6.

A difference is evidence only if twenty runs on each database, with the same answers and other generators, repeat it. If
a primitive gets no value, its noise is replayed, and later differences are no evidence: correct code may then branch
differently. Replay does not see draws in threads and processes that the mechanism starts. If a mechanism caches values
from `x`, replay may never see it read `y`.
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
    """A module that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Replay:
        return replay(*args, **kwargs)


# The function and its package share a name. The first ``from audit import replay`` gives the function. It also makes
# the package an attribute of `audit`, so later imports give the package. Therefore both can be called, and both have
# `primitive`.
sys.modules[__name__].__class__ = _Callable
replay.primitive = primitive  # type: ignore[attr-defined]
