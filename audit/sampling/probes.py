"""The few runs before an audit: what one output is, and whether runs depend on their generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.mechanism import Mechanism
from audit.outputs import ATTEMPTS, CHANCE, chance_of_repeat, run
from audit.sampling.blocks import block_runs
from audit.sampling.streams import stream

__all__ = ["check_uses_rng", "one_output"]


def one_output(mechanism: Mechanism, databases: Sequence[Any], seed: np.random.SeedSequence) -> NDArray[Any]:
    """Return one output, shape (1, *output), after the databases have agreed on what one is.

    Each must give an output of the same kind and shape in one of a few runs; one of them may only raise. What the
    mechanism raises in every run on both is raised here.
    """
    found: list[NDArray[Any]] = []
    failure: Exception | None = None
    for number, data in enumerate(databases):
        for attempt in range(ATTEMPTS):
            try:
                found.append(run(mechanism, data, 1, np.random.default_rng(stream(seed, number, attempt))))
                break
            except MemoryError:
                raise
            except Exception as error:
                failure = failure or error
    if not found:
        assert failure is not None  # each database was tried
        raise failure
    shapes = [output.shape[1:] for output in found]
    if len(set(shapes)) > 1:
        raise ValueError(f"outputs must have one shape on both databases, got {shapes[0]} and {shapes[1]}")
    if len({output.dtype.kind == "U" for output in found}) > 1:
        kinds = " and ".join(str(output.dtype) for output in found)
        raise ValueError(f"outputs must be numbers or words on both databases, got {kinds}")
    return found[0]


def check_uses_rng(
    mechanism: Mechanism, data: Any, runs: int, seed: np.random.SeedSequence, *, shape: tuple[int, ...]
) -> None:
    """Refuse a mechanism that ignores its generator: two short batches under different streams have proved different.

    Batches may agree by chance: large budgets hardly vary, exact releases not at all. Agreement is an error only
    where the outputs vary and chance is out of the question, or the generator was never asked.
    """
    generators = [np.random.default_rng(stream(seed, number)) for number in range(2)]
    untouched = generators[0].bit_generator.state
    block = block_runs(data, shape)
    one, other = (
        [
            hash(output.tobytes())  # outputs may be too large to keep
            for start in range(0, runs, block)
            for output in run(mechanism, data, min(block, runs - start), generator, shape=shape)
        ]
        for generator in generators
    )
    if len(set(one)) == len(set(other)) == 1 and one[0] != other[0] and 4.0**-runs < CHANCE:
        raise ValueError(f"runs must be independent: all {runs} of a batch are the same, and another batch differs")
    if one == other and len(set(one)) > 1:
        asked = generators[0].bit_generator.state != untouched
        if not asked or chance_of_repeat(np.array(one)) < CHANCE:
            raise ValueError("outputs are identical under two different rngs: the mechanism ignores its rng")
