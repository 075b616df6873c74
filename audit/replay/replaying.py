"""Run a mechanism on both databases with the same answers, and report violations."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from audit.arguments import whole_number
from audit.bounds.binomial import binomial_sf
from audit.claims import Claim
from audit.measure.evaluation import check_question
from audit.mechanism import Mechanism, check_mechanism, mechanism_name
from audit.neighbors import NeighborPair
from audit.replay.comparison import FRESH, REPEATS, SAME, Comparison, Question, compare, published, same_queries
from audit.replay.recording import Trace
from audit.replay.result import Replay, excess
from audit.replay.violations import Violation
from audit.sampling.streams import Seed, entropy_of, seed_sequence, stream

__all__ = ["replay", "timing"]

TIMED, LEAST_TIMED = 200, 30  # timed runs: the default; the fewest that can show a violation
OTHERS = 4  # runs with other answers, to check whether the queries depend on answers
COINS = 3  # the stream of the coins
SELECTION = 0.3  # share of the runs that choose the time limit of the guess
FALSE_ALARM = 1e-6  # error probability if the time does not depend on the data
WARM = 2  # warm-up runs on each database, not timed

ADAPTIVE = "which queries are asked depends on answers: losses do not add up to a law of all"
UNPUBLISHED = "a violation if these answers are published, and the output does not contain them (see released=True)"
UNLIMITED = "no query has a declared sensitivity, or a known loss to compare with a promise"
UNTIMED = "times were not compared, as the runs part or noise is not recorded"


def replay(
    mechanism: Mechanism,
    pair: NeighborPair,
    claim: Claim | None = None,
    *,
    size: int | None = None,
    rng: Seed = 0,
    observe: Literal["output", "time"] = "output",
    released: bool | None = None,
) -> Replay:
    """Run a mechanism on a database, and on its neighbor with the same answers from every noise primitive.

    Primitives are `algorithms.noise.add_noise`, draws by ``sample`` from its laws, and functions of your own with the
    decorator `primitive`. All other random numbers must come from the generator that the mechanism gets. The module
    `audit.replay` states what a violation proves, and under which conditions.

    Parameters
    ----------
    mechanism, pair : Mechanism, NeighborPair
        Called as ``mechanism(data, 1, rng)`` on both databases. Outputs may be arrays, numbers, text, or containers of
        them.
    claim : PureDP, ApproxDP, ZCDP or GaussianDP, optional
        Promise of the mechanism, under the relation of the pair. Default: the claim of the mechanism, if it has one.
    size : int, optional
        Number of pairs of runs, each with new noise; default 1. With ``observe="time"``: of timed runs; default 200.
        A pair takes 3 runs, or 42 if its runs differ; then 4 runs have other answers, or 20 if the loss is too large.
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        Seed of all randomness.
    observe : {"output", "time"}
        What an observer sees besides answers and exceptions: only the output, or also the time that a run takes.
    released : bool, optional
        Whether answers may be published, so that the promise must cover their joint loss. Default: only the answers
        that the output contains.
    """
    begun = time.perf_counter()
    question = _question(mechanism, pair, claim, observe, rng)
    timed = observe == "time"
    usual, least = (TIMED, LEAST_TIMED) if timed else (1, 1)
    size = usual if size is None else whole_number("size", size, least=least)
    firsts = [question.run(pair.x, SAME, number) for number in range(1 if timed else size)]
    comparison, *others = (compare(question, *numbered) for numbered in enumerate(firsts))
    queries = [query for part in (comparison, *others) for query in part.queries]
    limited = any(query.declared not in (None, (None, None)) for query in queries)
    limited |= question.promise is not None and any(query.losses is not None for query in queries)
    for other in others:  # of other pairs of runs: new kinds of violations and notes, but no queries
        kinds = {violation.kind for violation in comparison.violations}
        comparison.violations += [violation for violation in other.violations if violation.kind not in kinds]
        comparison.notes += [note for note in other.notes if note not in comparison.notes]
        comparison.evaluated &= other.evaluated
        comparison.known &= other.known
    _compare_loss(question, comparison, firsts, released)
    if comparison.evaluated and not limited and not comparison.violations:
        comparison.notes.insert(0, UNLIMITED)
        comparison.evaluated = False
    if timed and not comparison.comparable:
        comparison.notes.append(UNTIMED)
    elif timed:
        data, answers, coins = (pair.x, pair.y), firsts[0].calls, np.random.default_rng(stream(question.root, COINS))
        slower = timing(lambda on_y: question.run(data[on_y], SAME, 0, answers=answers).nanoseconds, size, coins)
        comparison.violations += [slower] if slower else []
    secret = pair.confidential
    return Replay(
        mechanism=mechanism_name(mechanism),
        pair=pair.label,
        relation=pair.relation,
        claim=question.promise,
        queries=tuple(comparison.queries),
        violations=tuple(replace(violation, confidential=secret) for violation in comparison.violations),
        notes=tuple(comparison.notes),
        evaluated=comparison.evaluated,
        known=comparison.known,
        size=size,
        seed=entropy_of(question.root),
        seconds=time.perf_counter() - begun,
        confidential=secret,
    )


def _question(mechanism: Mechanism, pair: NeighborPair, claim: Claim | None, observe: str, rng: Seed) -> Question:
    check_mechanism(mechanism)
    if not isinstance(pair, NeighborPair):
        raise TypeError(f"pair must be a NeighborPair, got {type(pair).__name__}")
    if observe not in ("output", "time"):
        raise ValueError(f'observe must be "output" or "time", got {observe!r}')
    promise = getattr(mechanism, "claim", None) if claim is None else claim
    if promise is not None:
        endless = claim is None and getattr(promise, "budget", None) == math.inf  # the mechanism promises nothing
        check_question(promise.at(1.0) if endless else promise, pair.relation, "auto", None, 0.5)
        promise = None if endless else promise.group(pair.distance)
    steps: float = pair.distance
    relation = getattr(getattr(mechanism, "claim", promise), "relation", pair.relation)
    if relation != pair.relation:  # the relation for which sensitivities are declared
        steps = 2 * pair.distance if relation == "add_remove" else math.inf  # replacement does not bound addition
    return Question(mechanism, pair, promise, steps, seed_sequence(rng))


def _compare_loss(question: Question, comparison: Comparison, firsts: list[Trace], released: bool | None) -> None:
    """Compare the joint loss with the promise, if runs with other answers make the same queries."""
    if not comparison.known:
        return
    loss = excess(question.promise, comparison.queries) if question.promise else None
    numbers = range(REPEATS if loss else OTHERS)
    traces = [*firsts, *(question.run(question.pair.x, FRESH, number) for number in numbers)]
    if not all(same_queries(firsts[0], other) for other in traces[1:]):
        comparison.known = False
        comparison.notes.append(ADAPTIVE)
    elif loss and question.promise:
        proved = loss if released else None
        if released is None:
            shown = [query for query, public in zip(comparison.queries, published(traces), strict=True) if public]
            complete = all(query in shown for query in comparison.queries if query.losses)
            names = "all queries" if complete else "the queries whose answers are released"
            proved = excess(question.promise, shown, names)
        if proved:
            comparison.violations.append(proved)
        else:
            comparison.notes.insert(0, f"{loss.sentence}: {UNPUBLISHED}")
            comparison.evaluated = False


def timing(time_run: Callable[[bool], int], size: int, rng: np.random.Generator) -> Violation | None:
    """Test whether the time of a run depends on the database: a fair coin picks it, and a time limit guesses it.

    `time_run` runs on `y` if its argument is true, else on `x`, and returns nanoseconds. Guarantee: if times do not
    depend on the coins, each guess is right with probability 1/2, given all previous runs. So the number of right
    guesses is binomial, and the error probability is at most 1e-6.
    """
    for on_y in (False, True) * WARM:
        time_run(on_y)
    coins = rng.random(size) < 0.5
    times = np.array([time_run(bool(coin)) for coin in coins])
    choosing = int(SELECTION * size)
    limit, above = _best_guess(times[:choosing], coins[:choosing])
    right = int(((times[choosing:] > limit) == (coins[choosing:] == above)).sum())
    chance = float(binomial_sf(right - 1, size - choosing, 0.5))
    if chance > FALSE_ALARM:
        return None
    typical = [f"{statistics.median(times[coins == side]) / 1e6:.3g} ms" for side in (False, True)]
    words = f"the time tells the database in {right} of {size - choosing} runs, by chance with probability {chance:.1e}"
    return Violation("time", f"{words} (median {typical[0]} on x, {typical[1]} on y)")


def _best_guess(times: NDArray[np.int64], coins: NDArray[np.bool_]) -> tuple[float, bool]:
    """Return the time limit with the best guesses, and whether slower runs are guessed to be on `y`."""
    order = np.argsort(times, kind="stable")
    ordered, on_y = times[order], coins[order]
    # For each place: the number of right guesses if slower runs are guessed to be on y, and faster ones on x.
    right = np.append(on_y[::-1].cumsum()[::-1], 0) + np.append(0, (~on_y).cumsum())
    place = int(np.argmax(np.abs(right - on_y.size / 2)))
    ends = np.concatenate([[-np.inf], (ordered[1:] + ordered[:-1]) / 2, [np.inf]])
    return float(ends[place]), bool(right[place] >= on_y.size / 2)
