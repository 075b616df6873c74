"""Compare a pair of runs with the same answers; differences that chance may have caused are no violations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from audit.claims import Claim
from audit.installed import plugin
from audit.io.text import printable
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.replay.recording import Call, Trace, run
from audit.replay.result import ROUNDING, Query, excess
from audit.replay.sameness import change_of, norms, numbers_in, same
from audit.replay.violations import Violation, law_in_words, same_law, violations_between
from audit.sampling.streams import stream

__all__ = ["FRESH", "OTHER", "REPEATS", "SAME", "Comparison", "Question", "compare", "published", "same_queries"]

REPEATS = 20  # runs on each database that show which differences are due to chance
SAME, OTHER, FRESH = range(3)  # random streams: of pairs of runs; of repetitions; of runs with new answers

PARTING = {"number", "order", "shape", "exception"}  # kinds of violation after which calls no longer match

ELSEWHERE = "random numbers are drawn outside of the primitives"
BY_ITSELF = "noise is drawn by itself: what it is added to is not seen"
NO_EVIDENCE = "no evidence, as noise that is not recorded may have made it"
NO_NOISE = "no noise was recorded"
ENDED = "both runs raise the same exception"


@dataclass(frozen=True, eq=False)
class Question:
    """A mechanism, its databases and its promise."""

    mechanism: Mechanism
    pair: NeighborPair
    promise: Claim | None  # for the pair
    steps: float  # distance of the databases under the relation of the declared sensitivities
    root: np.random.SeedSequence

    def run(self, data: Any, *place: int, answers: Sequence[Call] | None = None) -> Trace:
        """Run the mechanism on one of the databases."""
        return run(self.mechanism, data, stream(self.root, *place), answers)


@dataclass(eq=False)
class Comparison:
    """The result of comparing pairs of runs."""

    queries: list[Query]  # that both runs make
    violations: list[Violation]  # proved
    notes: list[str]  # on differences that are not proved
    evaluated: bool  # every difference is a violation, and some noise was recorded
    known: bool  # the queries are the only source of answers
    comparable: bool  # both runs make the same draws, so they should take the same time


def compare(question: Question, number: int, first: Trace) -> Comparison:
    """Replay a run on the neighbor; differences are violations only if runs with other generators repeat them."""
    pair = question.pair
    second = question.run(pair.y, SAME, number, answers=first.calls)
    elsewhere = first.elsewhere or second.elsewhere

    def others(data: Any, numbers: range) -> list[Trace]:
        return [question.run(data, OTHER, number, repeat, answers=first.calls) for repeat in numbers]

    # Noise drawn without a value makes noisy values differ on x and y, so correct code may branch differently after it.
    alone = next((place for place, call in enumerate(first.calls, start=1) if call.value is None), math.inf)
    matched = [both for both in zip(first.calls, second.calls, strict=False) if both[0].same_draw(both[1])]
    queries = [_query(*both) for both in matched]
    wrong = [list(_wrong_values(query, *both, question.steps)) for query, both in zip(queries, matched, strict=True)]
    differences = list(violations_between(first, second))
    again = [others(pair.x, range(REPEATS if elsewhere else 1)), []]
    # Possible violations get all repetitions, which decide whether chance explains them.
    beyond = question.promise is not None and excess(question.promise, queries)
    if differences or beyond or any(isinstance(one, Violation) for found in wrong for one in found):
        again = [again[0] + others(pair.x, range(len(again[0]), REPEATS)), others(pair.y, range(REPEATS, 2 * REPEATS))]
    repeated = [(trace, other) for trace, traces in zip((first, second), again, strict=True) for other in traces]
    kinds_by_chance = {violation.kind for both in repeated for _, violation in violations_between(*both)}
    by_chance = [
        not all(place < len(b.calls) and same(a.calls[place].value, b.calls[place].value) for a, b in repeated)
        for place in range(len(matched))
    ]

    noise_by_itself = alone < math.inf
    chance = bool(elsewhere or kinds_by_chance or any(by_chance))
    silent = not (first.calls or second.calls)
    notes = [note for note, true in ((NO_NOISE, silent), (BY_ITSELF, noise_by_itself), (ELSEWHERE, chance)) if true]
    violations = list(_wrong_seed(first, second, again[0][0]))
    evaluated = True
    for place, violation in differences:
        if place <= alone and violation.kind not in kinds_by_chance:
            violations.append(violation)
        else:
            notes.append(f"{NO_EVIDENCE}: {violation}")
            evaluated = False
    evaluated &= bool(matched or violations)
    if first.error and first.error == second.error:
        notes.insert(0, f"{ENDED}: {printable(first.error[0])} ({printable(first.error[1])})")
    for place, found in enumerate(wrong):
        if by_chance[place]:  # the value itself is random, so its change is not due to the data
            queries[place] = replace(queries[place], losses=None)
        elif place < alone:
            violations += [one for one in found if isinstance(one, Violation)]
            notes += [one for one in found if isinstance(one, str)]
    comparable = evaluated and not noise_by_itself and not PARTING & {violation.kind for _, violation in differences}
    known = comparable and bool(first.calls) and not (any(by_chance) or first.error)
    return Comparison(queries, violations, notes, evaluated or bool(violations), known, comparable)


def _query(one: Call, other: Call) -> Query:
    shape, law = one.shape, law_in_words(one.law)
    if one.value is None or other.value is None:
        return Query("noise by itself", shape, law, None, None, None, None, exact=False)
    change = change_of(one.value, other.value)
    losses = plugin("noise").losses_of_change(one.law, change) if same_law(one.law, other.law) else None
    losses, exact = None if losses is None else tuple(losses), plugin("noise").tabulated_exactly(one.law)
    return Query(one.query, shape, law, *norms(change), one.sensitivity, losses, exact=exact)


def _wrong_values(query: Query, one: Call, other: Call, steps: float) -> Iterator[Violation | str]:
    """Yield infinite values, which no noise hides, and changes larger than the declared sensitivity."""
    if one.value is None or other.value is None:
        return
    name, infinite = printable(query.name), ~(np.isfinite(one.value) & np.isfinite(other.value))
    apart = infinite & (change_of(one.value, other.value) != 0)
    if apart.any():
        label, value = ("x", one.value) if (apart & ~np.isfinite(one.value)).any() else ("y", other.value)
        shown = value[apart & ~np.isfinite(value)].flat[0]
        yield Violation("nan", f"{name!r} is {shown} on {label}, which no noise hides")
    elif infinite.any():
        yield f"{name!r} is not finite on both databases: no noise would hide another value there"
    changes = (query.l1_change, query.l2_change)
    for norm, change, limit in zip(("L1", "L2"), changes, query.declared or (None, None), strict=True):
        if change is not None and limit is not None and change > steps * limit * (1 + ROUNDING):
            group = f" for each of {steps:g} steps" if steps > 1 else ""
            words = f"{name!r} changes by {change:.6g} in {norm}, and {limit:.6g} is declared{group}"
            yield Violation("sensitivity", words)
            return


def _wrong_seed(first: Trace, second: Trace, again: Trace) -> Iterator[Violation]:
    """Yield the first generator that does not depend on the given one: its noise can be predicted."""
    for one, other, later in zip(first.calls, second.calls, again.calls, strict=False):
        if one.state and one.state == later.state:
            source = "the data" if other.state != one.state else "a constant"
            noise = f"noise of {printable(one.query)!r}" if one.query else "noise by itself"
            words = f"{noise} comes from a generator seeded by {source}, not from the one that was given"
            yield Violation("seed", words)
            return


def same_queries(first: Trace, fresh: Trace) -> bool:
    """Return whether a run with other answers made the same queries."""
    return len(first.calls) == len(fresh.calls) and all(
        one.same_draw(other) and same(one.value, other.value) and same_law(one.law, other.law)
        for one, other in zip(first.calls, fresh.calls, strict=True)
    )


def published(traces: Sequence[Trace]) -> list[bool]:
    """Return for each query whether every number of its answer is in the output, in all runs at the same place."""
    released = _courses([numbers_in(trace.output) for trace in traces])
    answers = zip(*([numbers_in(call.answer) for call in trace.calls] for trace in traces), strict=True)
    courses = [_courses(list(of_query)) for of_query in answers]
    return [bool(course) and course <= released for course in courses]


def _courses(rows: list[np.ndarray[Any, Any]]) -> set[bytes]:
    """Return the sequences of values over the runs, one for each place; empty if the runs differ in length."""
    if len({row.size for row in rows}) != 1:
        return set()
    table = np.ascontiguousarray(np.stack(rows, axis=1) + 0.0)
    return {course.tobytes() for course in table}
