"""The few runs around an audit: what one output is, and whether runs follow their generator and stay as they are."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # loads its parts where they are used, some of which take long
from numpy.typing import NDArray

from audit.mechanism import Mechanism, copied
from audit.outputs import Kind, check_number, kind_of, read_outputs, resolve_types
from audit.sampling.blocks import block_runs
from audit.sampling.calls import ATTEMPTS, Noted, batch_of, run
from audit.sampling.copies import CHANCE, chance_of_repeat
from audit.sampling.independence import DEPENDENT, UNSTEADY
from audit.sampling.streams import stream
from audit.values import unlike_numbers

__all__ = ["MOST_PROBES", "ProbeResult", "check_steady", "probe"]

CALLS = 8  # of a mechanism on either database, each with a stream of its own
MOST_EACH = 16  # runs of one call
SHARE = 1 / 10  # of the runs of an audit that these may be besides
MOST_PROBES = 2 * ATTEMPTS + (6 * CALLS + 3) * MOST_EACH  # runs besides those of an audit, at most
ENTRIES = 8  # of an output in which runs are compared
IGNORED = (
    "outputs are identical under two different rngs: the mechanism ignores its rng. If its noise is seeded by the data "
    "in the release, too, that is a violation: whoever has the program can tell the databases apart for sure"
)


@dataclass(frozen=True)
class ProbeResult:
    """What the first runs tell."""

    kind: Kind  # what one output is, for the whole audit
    first: NDArray[Any]  # the first output, shape (1, *output)
    seedable: bool  # whether the same generator gives the same outputs again
    calls: list[list[_Call]]  # the first short ones on either database


def probe(mechanism: Mechanism, databases: Sequence[Any], size: int, seed: np.random.SeedSequence) -> ProbeResult:
    """Settle what one output is, and refuse a mechanism that ignores its generator."""
    first = _first_outputs(mechanism, databases, stream(seed, 0))
    kind = kind_of(first)
    if kind.shape is None:
        kind = _of_texts(kind, first)

    noted: list[Noted] = [set(), set()]  # on either database

    def short_calls() -> list[list[_Call]]:
        return [
            _calls(mechanism, data, kind, size, stream(seed, 1, side), noted=noted[side])
            for side, data in enumerate(databases)
        ]

    calls = short_calls()
    if any(call.mixed for side in calls for call in side):  # numbers, and something else as well: written down
        kind = _of_texts(kind, first)
        calls = short_calls()
    for side in calls:
        _check_uses_rng(side)
    again = _calls(mechanism, databases[0], kind, size, stream(seed, 1, 0), most=1)[0]
    same = again.marks == calls[0][0].marks
    return ProbeResult(resolve_types(kind, noted), read_outputs(first[0], kind), same, calls)


def check_steady(
    mechanism: Mechanism, databases: Sequence[Any], size: int, seed: np.random.SeedSequence, probed: ProbeResult
) -> None:
    """Refuse a mechanism whose runs change during an audit, as where a budget is spent over all runs.

    Runs on one database come before those on the other, so such a change looks like a loss. A sound mechanism is
    refused with probability below 1e-8.
    """
    kind, earlier = replace(probed.kind, raises=None), probed.calls
    if probed.seedable:
        again = [
            _calls(mechanism, data, kind, size, stream(seed, 1, side), most=1) for side, data in enumerate(databases)
        ]
        if all(now[0].marks == then[0].marks for now, then in zip(again, earlier, strict=True)):
            return
    later = [_calls(mechanism, data, kind, size, stream(seed, 2, side)) for side, data in enumerate(databases)]
    entries = earlier[0][0].entries.shape[1]
    for entry in range(entries):
        sides = [[_scores_of(calls, entry) for calls in side] for side in zip(earlier, later, strict=True)]
        middles = [float(np.median(np.concatenate(side))) for side in sides]
        spreads = [[np.abs(part - middle) for part in side] for side, middle in zip(sides, middles, strict=True)]
        for scores in (sides, spreads):
            varying = [side for side in scores if np.ptp(np.concatenate(side)) > 0]
            distance = sum(float(scipy.stats.kruskal(*side).statistic) for side in varying)
            if scipy.stats.chi2.sf(distance, len(varying)) < DEPENDENT / (2 * entries):
                raise ValueError(UNSTEADY)


def _scores_of(calls: Sequence[_Call], entry: int) -> NDArray[np.float64]:
    """Return one entry of all runs of some calls, in units in which differences are finite."""
    return np.concatenate([call.entries[:, entry] for call in calls]) / 4


def _of_texts(kind: Kind, first: Sequence[Any]) -> Kind:
    """Return the kind of outputs that are texts, and about how long these are."""
    longest = max(len(text) for batch in first for text in read_outputs(batch, Kind(None)))
    return Kind(None, 4 ** math.ceil(math.log(longest, 4)), columns=kind.columns)


def _first_outputs(mechanism: Mechanism, databases: Sequence[Any], seed: np.random.SeedSequence) -> list[Any]:
    """Return one output of each database; if every run on both raises, raise that."""
    batches: list[Any] = []
    failure: Exception | None = None
    for number, data in enumerate(databases):
        for attempt in range(ATTEMPTS):
            try:
                batch = batch_of(mechanism, data, 1, np.random.default_rng(stream(seed, number, attempt)))
            except MemoryError:
                raise
            except Exception as error:
                failure = failure or error
            else:
                check_number(len(read_outputs(batch, kind_of([batch]))), 1)
                batches.append(copied(batch))
                break
    if not batches:
        assert failure is not None  # each database was tried
        raise failure
    return batches


@dataclass(frozen=True)
class _Call:
    """Some runs of one call: what tells each apart, a few entries of each, and what became of the generator."""

    marks: list[int]
    entries: NDArray[np.float64]
    used_rng: bool  # whether the generator was asked for numbers
    mixed: bool  # whether an output is not of the kind that was settled


def _calls(
    mechanism: Mechanism,
    data: Any,
    kind: Kind,
    size: int,
    seed: np.random.SeedSequence,
    *,
    most: int = CALLS,
    noted: Noted | None = None,
) -> list[_Call]:
    """Run a few short calls, each with a stream of its own; outputs may be too large to keep."""
    each = max(2, min(MOST_EACH, int(size * SHARE / (2 * CALLS)), block_runs(data, kind, mechanism)))
    calls = []
    for number in range(most):
        rng = np.random.default_rng(stream(seed, number))
        before = rng.bit_generator.state
        outputs = run(mechanism, data, each, rng, kind, noted)
        if outputs.dtype.kind == "O":
            marks = [zlib.crc32(text.encode()) for text in outputs]
            entries, mixed = np.array(marks, np.float64)[:, None], False
        else:
            flat = outputs.reshape(len(outputs), -1)
            marks = [hash(row.tobytes()) for row in flat]
            entries = flat[:, np.unique(np.linspace(0, flat.shape[1] - 1, ENTRIES).astype(np.intp))].astype(np.float64)
            mixed = bool(unlike_numbers(flat).any())
        calls.append(_Call(marks, entries, rng.bit_generator.state != before, mixed))
    return calls


def _check_uses_rng(calls: Sequence[_Call]) -> None:
    """Refuse a mechanism that ignores its generator: calls under different streams are all the same.

    They may agree by chance: large budgets hardly vary, exact releases not at all. Agreement is an error only where
    outputs vary and chance is out of the question, or where the generator was never used.
    """
    first, *others = calls
    same = all(call.marks == first.marks for call in others) and len(set(first.marks)) > 1
    if same and (not first.used_rng or chance_of_repeat(np.array(first.marks)) ** len(others) < CHANCE):
        raise ValueError(IGNORED)
