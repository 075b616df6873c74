"""Record and replay: a deterministic check, of pipelines too slow to sample, and the exact change of every noisy query.

A mechanism runs on a database, with what its noise primitives are given and what they answer recorded. It runs on the
neighbor, where the primitives give **the same answers**, and not just the same noise: to an observer who sees nothing
but answers both runs then are one, and whatever depends on them may not differ. (With the same noise, sound code that
looks at noisy values would branch otherwise, and be accused.) So one pair of runs shows a violation: another number,
order or shape of draws, a scale that depends on the data, a value that changes beyond what is declared, an output that
knows more than the answers. A run without one shows nothing: other answers may lead elsewhere.

References
----------
.. [1] "dp-recorder", arXiv 2602.17454, which found 13 violations in 12 libraries by such replays.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np

from audit.arguments import whole_number
from audit.claims import Claim
from audit.differences import Violation, change_of, differences, law_in_words, same
from audit.judging import check_question
from audit.mechanism import Mechanism, mechanism_name
from audit.neighbors import NeighborPair
from audit.recording import Call, Sensitivity, Trace, primitive, run, seam
from audit.replayed import Query, Replay, excess
from audit.results import printable
from audit.sampling import Seed, entropy_of, seed_sequence, stream
from audit.timing import timing

__all__ = ["Query", "Replay", "Sensitivity", "Violation", "primitive", "replay"]

TIMED, LEAST_TIMED = 200, 30  # runs whose time is taken: by default; so that a guess can be beyond chance
ROUNDING = 1e-9  # of changes, relative: what floats may add to a sound one
CHANCES = 20  # runs that tell chance from data where random numbers are drawn outside of the primitives
SAME, OTHER, FRESH, COINS = range(4)  # streams: of a pair of runs; of those that tell chance from data; of the coins

PARTING = {"number", "order", "shape", "exception"}  # kinds after which runs have no more calls in common

ELSEWHERE = "random numbers are drawn outside of the primitives"
BY_ITSELF = "noise is drawn by itself: what it is added to is not seen"
NO_EVIDENCE = "no evidence, as noise that is not recorded may have made it"
ADAPTIVE = "which queries are asked depends on answers: losses do not add up to a law of all"
NO_NOISE = "no noise was recorded"
ENDED = "both runs raise the same exception"
UNTIMED = "times were not compared, as the runs part or noise is not recorded"


class _Seen(NamedTuple):
    """What one pair of runs shows."""

    queries: list[Query]
    violations: list[Violation]
    notes: list[str]
    judged: bool  # whether all that differs is proof
    whole: bool  # whether the queries are all that is released, past a leak
    comparable: bool  # whether the two runs have all they draw in common, and so should take the same time


def replay(
    mechanism: Mechanism,
    pair: NeighborPair,
    claim: Claim | None = None,
    *,
    size: int | None = None,
    rng: Seed = 0,
    observe: Literal["output", "time"] = "output",
) -> Replay:
    """Run a mechanism on a database, and on its neighbor with the same answers from every noise primitive.

    Primitives are `algorithms.noise.add_noise`, draws by ``sample`` from its laws, and functions of one's own that have
    the decorator `primitive`. All other random numbers must come from the generator that the mechanism is given.

    Parameters
    ----------
    mechanism : Mechanism
        Called as ``mechanism(data, 1, rng)``; outputs may be anything made of arrays, numbers and words.
    pair : NeighborPair
        The two databases.
    claim : PureDP, ApproxDP, ZCDP or GaussianDP, optional
        What is promised, under the relation of the pair. Default: what the mechanism says, if it does.
    size : int, optional
        Pairs of runs, each with other noise: 1. With ``observe="time"`` runs whose time is taken: 200.
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        Seed of all randomness.
    observe : {"output", "time"}
        What an observer sees besides answers and exceptions: the output; or the output and how long a run takes.

    Returns
    -------
    Replay
        With the change of every query, and the violations.

    Raises
    ------
    ValueError
        If the pair's relation is not the claim's, or an argument is out of range.
    TypeError
        If an argument or the output is of the wrong kind.

    Notes
    -----
    Guarantee: what is told as a violation was seen, and no noise hides it, if all that hides the data is drawn by
    primitives, and their answers depend on nothing but what they are given. One of kind ``"time"`` is a matter of
    chance: a mechanism whose time does not depend on the data is accused with probability 1e-6 at most.

    More runs on `x` tell chance from data. One has the same answers and another generator; there are twenty, and as
    many on `y` before anything is called a violation, if random numbers are drawn from the generator outside of the
    primitives, be it in post-processing or as noise that is not recorded: what differs on one database is no evidence
    on two. A primitive that is given a generator in the same state all the same has noise that can be computed. Another
    run is all new: if it asks for other queries, they depend on answers, and the losses seen do not add up to a law of
    all. Draws in threads and processes that the mechanism starts are not seen.

    A draw by itself, with no value handed over, is replayed as the same noise. Sound code may then go other ways on the
    two databases, so that nothing that comes later is evidence. For a pair at distance w changes may be w times as
    large, and the claim is that of a group of w.

    References
    ----------
    .. [1] "dp-recorder", arXiv 2602.17454.

    Examples
    --------
    >>> from audit.claims import PureDP
    >>> @primitive("exact", law="scale", sensitivity=99)
    ... def noisy(exact, scale, rng):
    ...     return exact + rng.laplace(scale=scale)
    >>> def total_age(data, size, rng):
    ...     return noisy(data.sum(), 99.0, rng)
    >>> found = replay(total_age, NeighborPair.add_record([30, 41, 7], 120), PureDP(1.0))
    >>> print(found.violations[0])
    sensitivity: 'noisy' changes by 120 in L1, and 99 is declared
    """
    begun = time.perf_counter()
    if not callable(mechanism):
        raise TypeError(f"mechanism must be callable as (data, size, rng), got {mechanism!r}")
    if not isinstance(pair, NeighborPair):
        raise TypeError(f"pair must be a NeighborPair, got {type(pair).__name__}")
    if observe not in ("output", "time"):
        raise ValueError(f'observe must be "output" or "time", got {observe!r}')
    promise = _promise(mechanism, pair, claim)
    steps = _steps(mechanism, pair, promise)
    timed = observe == "time"
    size = whole_number("size", size, least=LEAST_TIMED if timed else 1) if size is not None else TIMED if timed else 1
    root = seed_sequence(rng)

    firsts = [run(mechanism, pair.x, stream(root, SAME, number)) for number in range(1 if timed else size)]
    seen = [_seen(mechanism, pair, steps, root, *numbered) for numbered in enumerate(firsts)]
    queries, violations, notes, *_ = seen[0]
    whole = all(one.whole for one in seen)
    for later in seen[1:]:  # of each kind of violation one example
        violations += [one for one in later.violations if one.kind not in {other.kind for other in violations}]
        notes += [one for one in later.notes if one not in notes]

    fresh = firsts[1] if len(firsts) > 1 else run(mechanism, pair.x, stream(root, FRESH))
    if whole and not _same_queries(firsts[0], fresh):
        whole = False
        notes.append(ADAPTIVE)
    if whole and promise is not None and (above := excess(promise, queries)):
        violations.append(above)
    if timed and not seen[0].comparable:
        notes.append(UNTIMED)
    elif timed:
        data, answers = (pair.x, pair.y), firsts[0].calls
        slower = timing(
            lambda on_y: run(mechanism, data[on_y], stream(root, SAME, 0), answers).nanoseconds,
            size,
            np.random.default_rng(stream(root, COINS)),
        )
        violations += [slower] if slower else []
    return Replay(
        mechanism=mechanism_name(mechanism),
        pair=pair.label,
        claim=promise,
        queries=tuple(queries),
        violations=tuple(violations),
        notes=tuple(notes),
        judged=all(one.judged for one in seen),
        known=whole,
        size=size,
        seed_entropy=entropy_of(root),
        seconds=time.perf_counter() - begun,
        confidential=pair.confidential,
    )


def _seen(
    mechanism: Mechanism, pair: NeighborPair, steps: float, root: np.random.SeedSequence, number: int, first: Trace
) -> _Seen:
    """Replay a run on the neighbor, and on the same database with other generators."""
    second = run(mechanism, pair.y, stream(root, SAME, number), first.calls)
    elsewhere = first.elsewhere or second.elsewhere

    def others(data: Any, chances: range) -> list[Trace]:
        return [run(mechanism, data, stream(root, OTHER, number, chance), first.calls) for chance in chances]

    again = others(pair.x, range(CHANCES if elsewhere else 1))
    found = list(differences(first, second))
    unsure = {one.kind for trace in again for _, one in differences(first, trace)}
    if elsewhere and {one.kind for _, one in found} - unsure:
        more = others(pair.y, range(CHANCES, 2 * CHANCES))
        unsure |= {one.kind for trace in more for _, one in differences(second, trace)}
    # Code may branch on values with noise that was drawn by itself, and that they are not the same on x and y is fair.
    alone = next((place for place, call in enumerate(first.calls, start=1) if call.value is None), math.inf)

    notes = [] if first.calls or second.calls else [NO_NOISE]
    notes += [BY_ITSELF] if alone < math.inf else []
    notes += [ELSEWHERE] if elsewhere or unsure else []
    violations = list(_seeds(first, second, again[0]))
    for place, one in found:
        if place <= alone and one.kind not in unsure:
            violations.append(one)
        else:
            notes.append(f"{NO_EVIDENCE}: {one}")
    judged = not any(note.startswith(NO_EVIDENCE) for note in notes) and not (first.error and not first.calls)
    if first.error and first.error == second.error:
        notes.append(f"{ENDED}: {first.error[0]} ({printable(first.error[1])})")

    matched = [both for both in zip(first.calls, second.calls, strict=False) if both[0].same_draw(both[1])]
    by_chance = [not all(_same_value(place, first, trace) for trace in again) for place in range(len(matched))]
    queries = [_query(*both, comparable=not chance) for both, chance in zip(matched, by_chance, strict=True)]
    for place, (query, both) in enumerate(zip(queries, matched, strict=True), start=1):
        violations += _not_finite(query, *both)
        violations += [] if by_chance[place - 1] or place > alone else _beyond(query, steps)
    comparable = judged and alone == math.inf and not PARTING & {one.kind for _, one in found}
    whole = comparable and not (any(by_chance) or first.error)
    return _Seen(queries, violations, notes, judged, whole, comparable)


def _same_value(place: int, first: Trace, trace: Trace) -> bool:
    return place < len(trace.calls) and same(first.calls[place].value, trace.calls[place].value)


def _query(one: Call, other: Call, *, comparable: bool) -> Query:
    """Compare what a primitive was given; a value that is random itself has no change of its own."""
    shape, law = one.shape, law_in_words(one.law)
    if one.value is None or other.value is None:
        return Query("noise by itself", shape, law, None, None, None, None, exact=False)
    change = change_of(one.value, other.value)
    found = seam().losses_of_change(one.law, change) if comparable and same(one.law, other.law) else None
    return Query(
        one.query,
        shape,
        law,
        float(np.abs(change).sum()),
        float(np.linalg.norm(change.ravel().astype(np.float64))),
        one.sensitivity,
        None if found is None else tuple(found),
        exact=seam().tabulated_exactly(one.law),
    )


def _beyond(query: Query, steps: float) -> Iterator[Violation]:
    """Tell if a query changes by more than its sensitivity, for every step between neighbors."""
    changes = (query.l1_change, query.l2_change)
    for norm, change, limit in zip(("L1", "L2"), changes, query.declared or (None, None), strict=True):
        if change is not None and limit is not None and change > steps * limit * (1 + ROUNDING):
            group = f" for each of {steps:g} steps" if steps > 1 else ""
            words = f"{printable(query.name)!r} changes by {change:.6g} in {norm}, and {limit:.6g} is declared{group}"
            yield Violation("sensitivity", words)
            return


def _not_finite(query: Query, one: Call, other: Call) -> Iterator[Violation]:
    """Tell if noise was added to what it cannot hide."""
    for name, call in (("x", one), ("y", other)):
        if call.value is not None and (wrong := call.value[~np.isfinite(call.value)]).size:
            yield Violation("nan", f"{printable(query.name)!r} is {wrong.flat[0]} on {name}, which no noise hides")
            return


def _seeds(first: Trace, second: Trace, again: Trace) -> Iterator[Violation]:
    """Tell if a generator was not made from the one that the mechanism was given: its noise can be computed."""
    for one, other, later in zip(first.calls, second.calls, again.calls, strict=False):
        if one.state and one.state == later.state:
            source = "the data" if other.state != one.state else "a constant"
            words = f"noise of {printable(one.query)!r}" if one.query else "noise by itself"
            yield Violation(
                "seed", f"{words} comes from a generator seeded by {source}, not from the one that was given"
            )
            return


def _same_queries(first: Trace, fresh: Trace) -> bool:
    """Tell whether a run with other answers asked for the same."""
    return len(first.calls) == len(fresh.calls) and all(
        one.same_draw(other) and same(one.value, other.value) and same(one.law, other.law)
        for one, other in zip(first.calls, fresh.calls, strict=True)
    )


def _promise(mechanism: Mechanism, pair: NeighborPair, claim: Claim | None) -> Claim | None:
    """Return what is promised for a pair, or refuse it as every audit does."""
    found = getattr(mechanism, "claim", None) if claim is None else claim
    if found is None:
        return None
    endless = claim is None and getattr(found, "budget", None) == math.inf  # the mechanism itself promises nothing
    check_question(found.at(1.0) if endless else found, pair.relation, "auto", None, 0.5)
    return None if endless else found.group(pair.distance)


def _steps(mechanism: Mechanism, pair: NeighborPair, promise: Claim | None) -> float:
    """Return how many steps, of those that sensitivities are declared for, lie between the databases."""
    relation = getattr(getattr(mechanism, "claim", promise), "relation", pair.relation)
    if relation == pair.relation:
        return pair.distance
    return 2 * pair.distance if relation == "add_remove" else math.inf  # of one added, a replacement says nothing


class _Callable(ModuleType):
    """A module that is its own function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Replay:
        """Return what `replay` does."""
        return replay(*args, **kwargs)


# The function and its module share a name. ``from audit import replay`` gives the function the first time; importing it
# makes the module an attribute of the package, so that the next time gives the module. Both can be called, and both
# have `primitive`.
sys.modules[__name__].__class__ = _Callable
replay.primitive = primitive  # type: ignore[attr-defined]
