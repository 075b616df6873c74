"""Run a mechanism on both databases with the same answers, and say what that shows."""

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
from audit.claims import Claim
from audit.measure.evaluation import check_question
from audit.mechanism import Mechanism, check_mechanism, mechanism_name
from audit.neighbors import NeighborPair
from audit.replay.comparison import FRESH, REPEATS, SAME, Question, compare, published, same_queries
from audit.replay.recording import Trace
from audit.replay.result import Query, Replay, excess
from audit.replay.violations import Violation
from audit.sampling.streams import Seed, entropy_of, seed_sequence, stream

__all__ = ["replay", "timing"]

TIMED, LEAST_TIMED = 200, 30  # runs whose time is taken: by default; so that a guess can be beyond chance
OTHERS = 4  # runs with other answers, which tell whether they ask for the same
COINS = 3  # the stream of the coins
SELECTION = 0.3  # of the runs, to choose what is guessed from
FALSE_ALARM = 1e-6  # probability that a mechanism is accused whose time does not depend on the data
WARM = 2  # runs on each database before the first that counts

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
    decorator `primitive`. All other random numbers must come from the generator that the mechanism gets.

    Parameters
    ----------
    mechanism : Mechanism
        Called as ``mechanism(data, 1, rng)``; outputs may be anything made of arrays, numbers and words.
    pair : NeighborPair
        The two databases.
    claim : PureDP, ApproxDP, ZCDP or GaussianDP, optional
        What the mechanism promises, under the relation of the pair. Default: its own claim, if it has one.
    size : int, optional
        Number of pairs of runs, each with new noise; default 1. With ``observe="time"``, of timed runs; default 200.
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        Seed of all randomness.
    observe : {"output", "time"}
        What an observer sees besides answers and exceptions: the output; or the output and how long a run takes.
    released : bool, optional
        Whether answers may be published, so that the promise must cover their joint loss. Default: only the answers
        that the output contains.

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
    Guarantee: every violation was seen in runs, and no noise hides it, on three conditions: primitives draw all noise
    that hides the data, their answers depend only on their inputs, and an observer may see the answers. For losses the
    last condition is not assumed, since sparse vectors, noisy maxima and retries keep answers secret and lose less: a
    violation of kind ``"loss"`` counts only queries whose numbers all stand unchanged in the output, in this run and in
    20 with other answers. With ``released=True`` all queries count. A violation of kind ``"time"`` may be chance: a
    mechanism whose time does not depend on the data is accused with probability at most 1e-6.

    Only what twenty runs on each database, with the same answers and other generators, repeat is evidence. A draw that
    gets no value is replayed as the same noise, and nothing after it is evidence: sound code may then branch
    differently. Replay does not see draws in threads and processes that the mechanism starts. If a mechanism keeps what
    it computed on `x`, replay may never see it read `y`. For a pair at distance w changes may be w times as large, and
    the claim is that of a group of w.

    References
    ----------
    .. [1] "dp-recorder", arXiv 2602.17454.

    Examples
    --------
    >>> from audit.claims import PureDP
    >>> from audit.replay import primitive
    >>> @primitive("exact", law="scale", sensitivity=99)
    ... def noisy(exact, scale, rng):
    ...     return exact + rng.laplace(scale=scale)
    >>> pair = NeighborPair.add_record([30, 41, 7], 120)
    >>> print(replay(lambda ages, size, rng: noisy(ages.sum(), 99.0, rng), pair, PureDP(1.0)).violations[0])
    sensitivity: 'noisy' changes by 120 in L1, and 99 is declared
    """
    begun = time.perf_counter()
    check_mechanism(mechanism)
    if not isinstance(pair, NeighborPair):
        raise TypeError(f"pair must be a NeighborPair, got {type(pair).__name__}")
    if observe not in ("output", "time"):
        raise ValueError(f'observe must be "output" or "time", got {observe!r}')
    promise = _promise(mechanism, pair, claim)
    timed = observe == "time"
    size = whole_number("size", size, least=LEAST_TIMED if timed else 1) if size is not None else TIMED if timed else 1
    question = Question(mechanism, pair, promise, _steps(mechanism, pair, promise), root := seed_sequence(rng))

    firsts = [question.run(pair.x, SAME, number) for number in range(1 if timed else size)]
    comparisons = [compare(question, *numbered) for numbered in enumerate(firsts)]
    queries, violations, notes, *_ = comparisons[0]
    for later in comparisons[1:]:  # of each kind of violation one example
        violations += [new for new in later.violations if new.kind not in {violation.kind for violation in violations}]
        notes += [note for note in later.notes if note not in notes]

    known = all(comparison.known for comparison in comparisons)
    fresh = [*firsts[1:], *(question.run(pair.x, FRESH, number) for number in range(OTHERS if known else 0))]
    loss = excess(promise, queries) if known and promise is not None else None
    if loss:
        fresh += [question.run(pair.x, FRESH, number) for number in range(OTHERS, REPEATS)]
    if known and not all(same_queries(firsts[0], other) for other in fresh):
        known, loss = False, None
        notes.append(ADAPTIVE)
    limited = any(
        query.declared not in (None, (None, None)) or (promise is not None and query.losses is not None)
        for comparison in comparisons
        for query in comparison.queries
    )
    evaluated = all(comparison.evaluated for comparison in comparisons)
    if loss and promise is not None:
        if proved := loss if released else _published_loss(promise, queries, [firsts[0], *fresh], released):
            violations.append(proved)
        else:
            notes.insert(0, f"{loss.sentence}: {UNPUBLISHED}")
            evaluated = False
    if evaluated and not limited and not violations:
        notes.insert(0, UNLIMITED)
        evaluated = False
    if timed and comparisons[0].comparable:
        data, answers, coins = (pair.x, pair.y), firsts[0].calls, np.random.default_rng(stream(root, COINS))
        slower = timing(lambda on_y: question.run(data[on_y], SAME, 0, answers=answers).nanoseconds, size, coins)
        violations += [slower] if slower else []
    elif timed:
        notes.append(UNTIMED)
    return Replay(
        mechanism=mechanism_name(mechanism),
        pair=pair.label,
        relation=pair.relation,
        claim=promise,
        queries=tuple(queries),
        violations=tuple(replace(violation, confidential=pair.confidential) for violation in violations),
        notes=tuple(notes),
        evaluated=evaluated,
        known=known,
        size=size,
        seed=entropy_of(root),
        seconds=time.perf_counter() - begun,
        confidential=pair.confidential,
    )


def _published_loss(
    promise: Claim, queries: list[Query], traces: list[Trace], released: bool | None
) -> Violation | None:
    if released is not None:
        return None
    contained = [query for query, contained in zip(queries, published(traces), strict=True) if contained]
    costly = [query for query in queries if query.losses]
    names = "all queries" if all(query in contained for query in costly) else "the queries whose answers are released"
    return excess(promise, contained, names)


def _promise(mechanism: Mechanism, pair: NeighborPair, claim: Claim | None) -> Claim | None:
    """Return what is promised for a pair, or refuse it as every audit does."""
    promise = getattr(mechanism, "claim", None) if claim is None else claim
    if promise is None:
        return None
    endless = claim is None and getattr(promise, "budget", None) == math.inf  # the mechanism itself promises nothing
    check_question(promise.at(1.0) if endless else promise, pair.relation, "auto", None, 0.5)
    return None if endless else promise.group(pair.distance)


def _steps(mechanism: Mechanism, pair: NeighborPair, promise: Claim | None) -> float:
    """Return how many steps, of the relation for which sensitivities are declared, lie between the databases."""
    relation = getattr(getattr(mechanism, "claim", promise), "relation", pair.relation)
    if relation == pair.relation:
        return pair.distance
    return 2 * pair.distance if relation == "add_remove" else math.inf  # of one added, a replacement says nothing


def timing(time_run: Callable[[bool], int], size: int, rng: np.random.Generator) -> Violation | None:
    """Tell whether times give the database away: a fair coin picks it for each run, a limit on the time guesses it.

    `time_run` runs on `y` if its argument is true, else on `x`, and returns nanoseconds. Guarantee: a coin that the
    times do not depend on is guessed right with probability 1/2, given all before. So the number of right guesses is
    binomial, and a violation is reported with probability 1e-6 at most.
    """
    for on_y in (False, True) * WARM:
        time_run(on_y)
    coins = rng.random(size) < 0.5
    times = np.array([time_run(bool(coin)) for coin in coins])
    choosing = int(SELECTION * size)
    limit, above = _best_guess(times[:choosing], coins[:choosing])
    right = int(((times[choosing:] > limit) == (coins[choosing:] == above)).sum())
    from scipy import stats  # slow to import

    chance = float(stats.binom.sf(right - 1, size - choosing, 0.5))
    if chance > FALSE_ALARM:
        return None
    typical = [f"{statistics.median(times[coins == side]) / 1e6:.3g} ms" for side in (False, True)]
    words = f"the time tells the database in {right} of {size - choosing} runs, by chance with probability {chance:.1e}"
    return Violation("time", f"{words} (median {typical[0]} on x, {typical[1]} on y)")


def _best_guess(times: NDArray[np.int64], coins: NDArray[np.bool_]) -> tuple[float, bool]:
    """Return a limit on times, and whether slower runs are guessed to be on `y`."""
    order = np.argsort(times, kind="stable")
    ordered, on_y = times[order], coins[order]
    # Right if the runs from each place on are taken to be of y, and those before of x.
    right = np.append(on_y[::-1].cumsum()[::-1], 0) + np.append(0, (~on_y).cumsum())
    place = int(np.argmax(np.abs(right - on_y.size / 2)))
    ends = np.concatenate([[-np.inf], (ordered[1:] + ordered[:-1]) / 2, [np.inf]])
    return float(ends[place]), bool(right[place] >= on_y.size / 2)
