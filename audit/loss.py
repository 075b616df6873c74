"""The measurement: run, choose an event, count it on fresh runs, bound the loss, hold it against the promise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import whole_number
from audit.attacks import Attack, Moments, changed_cells, moved_cells, other_moved_cells, select_event
from audit.claims import PureDP, Relation
from audit.events import Event, Statistic
from audit.judging import GAME, RECTANGLE, check_question, judge, support_witness
from audit.mechanism import Mechanism, mechanism_name
from audit.neighbors import NeighborPair, Unit
from audit.progress import progress_bar
from audit.provenance import provenance
from audit.results import AuditResult
from audit.sampling import (
    CHANCE,
    Reduce,
    Seed,
    chance_of_repeat,
    check_not_copied,
    check_outputs,
    check_uses_rng,
    draw,
    entropy_of,
    run,
    seed_sequence,
    stream,
)

__all__ = ["measure_loss", "measure_loss_from_outputs"]

Floats = NDArray[np.float64]

# Numbers of the independent random streams of one audit.
PROBE, EXPLORE, SELECT, COUNT, COINS = range(5)
X, Y = 0, 1

PROBES = 20  # runs in each of two batches that must differ before the audit begins
GLANCE = 1 / 10  # share of the selection runs that looks for entries which move although the pair leaves them alone
EXPLORING = 1 / 3  # share of the selection runs that finds what moves, where the pair does not tell
MOST_FOR_RECTANGLE = 10_000  # counting runs on either database: beyond, the other one limits what can be shown
FEWEST_FOR_GAME = 50  # given runs on either database: below, thinning them costs more than the rectangle does


def measure_loss(
    mechanism: Mechanism,
    pair: NeighborPair,
    claim: PureDP,
    *,
    attack: str | Attack = "auto",
    event: Event | None = None,
    size: int = 200_000,
    selection: float = 0.3,
    confidence: float = 0.95,
    rng: Seed = None,
    n_jobs: int = 1,
    progress: bool = False,
) -> AuditResult:
    """Run a mechanism on two neighboring databases and report the largest privacy loss that the runs prove.

    A share of the runs chooses an event, the others play a game: a fair coin picks the database of each, and the event
    guesses which it was. How often it is right bounds the loss from below.

    Parameters
    ----------
    mechanism : Mechanism
        Called as ``mechanism(data, size, rng)``; returns outputs of shape (size, *output).
    pair : NeighborPair
        The two databases.
    claim : PureDP
        What the mechanism promises, under the relation of the pair.
    attack : {"auto", "threshold", "cell"} or Attack
        Where to look for the event.
    event : Event, optional
        One registered before any run: all runs then count.
    size : int
        Runs in all, over both databases, selection included; up to 43 more only look at the mechanism.
    selection : float
        Share of the runs that choose the event, in (0, 1).
    confidence : float
        One-sided, in (0, 1), of everything the result says.
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        Seed of all randomness.
    n_jobs : int
        Blocks of runs at work at the same time; the result does not depend on it.
    progress : bool
        Show a progress bar on a terminal if it takes long.

    Returns
    -------
    AuditResult
        With the verdict.

    Raises
    ------
    ValueError
        If the pair's relation is not the claim's, a number is out of range, or the mechanism returns another number of
        runs than asked, NaN, or outputs that do not depend on its generator.
    TypeError
        If an argument or output is of the wrong kind.

    Notes
    -----
    Guarantee: P(measured > true loss of the pair for one step) <= 1 - confidence, whatever the mechanism.
    Units: nats.

    By default the entries of an output that the pair changes are searched, singly and jointly, and single entries whose
    mean moves although the pair leaves them alone. A loss that shows only in how entries vary together, or beyond the
    ninth decimal, stays hidden: give an `Attack` with statistics of your own.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", 2023, theorem 5.2.
    .. [2] Dwork and Roth, 2014, theorem 2.2 (group privacy).

    Examples
    --------
    >>> count = lambda data, size, rng: data + rng.laplace(size=(size, data.size))
    >>> pair = NeighborPair.add_people([120, 75], cell=0)
    >>> result = measure_loss(count, pair, PureDP(0.5), rng=1)
    >>> result.verdict, 0.9 < result.measured.epsilon < 1.0
    ('violated', True)
    """
    begun = time.perf_counter()
    if not callable(mechanism):
        raise TypeError(f"mechanism must be callable as (data, size, rng), got {mechanism!r}")
    if not isinstance(pair, NeighborPair):
        raise TypeError(f"pair must be a NeighborPair, got {type(pair).__name__}")
    searching = check_question(claim, pair.relation, attack, event, confidence)
    size = whole_number("size", size, least=1)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0, got {n_jobs!r}")
    choosing = 0 if event is not None else _choosing_runs(size, selection)
    counting = size - choosing
    if counting < 1:
        raise ValueError(f"size must leave runs to count, got {size} with {choosing} to select")
    root = seed_sequence(rng)
    shape = check_uses_rng(mechanism, pair.x, max(2, min(PROBES, size // 20)), stream(root, PROBE, X))
    other = run(mechanism, pair.y, 1, np.random.default_rng(stream(root, PROBE, Y))).shape[1:]
    if shape != other:
        raise ValueError(f"outputs must have one shape on both databases, got {shape} and {other}")

    support = support_witness(mechanism, pair)  # before the runs: an error in it must not cost them

    with progress_bar(mechanism_name(mechanism), size, shown=progress) as advance:
        runs = _Runs(mechanism, pair, shape, root, n_jobs, advance)
        if event is None:
            statistics, exploring = searching.statistics, 0
            if statistics is None:
                changed = changed_cells(pair, shape)
                if math.prod(shape) > 1:
                    exploring = max(4, int(choosing * (EXPLORING if changed is None else GLANCE)))
                statistics = runs.moving(exploring, changed) if exploring else changed
                assert statistics is not None  # the one entry of an output is always looked at
            x, y = runs.scores(_halves(choosing - exploring), statistics, SELECT)
            event = select_event(
                statistics, x, y, families=searching.families, counting=counting, confidence=confidence
            )
            searched = _describe(searching, statistics)
        else:
            searched = "one event, registered beforehand"

        on_y = int(np.random.default_rng(stream(root, COINS)).binomial(counting, 0.5))
        x, y = runs.scores((counting - on_y, on_y), [event.statistic], COUNT)

    guesses_x, guesses_y = event.rule.guess(x[:, 0]), event.rule.guess(y[:, 0])
    return judge(
        begun,
        claim,
        guesses_x,
        guesses_y,
        bound=GAME,
        support=support,
        mechanism=mechanism_name(mechanism),
        event=str(event),
        searched=searched,
        pair=pair.label,
        relation=pair.relation,
        unit=pair.unit,
        distance=pair.distance,
        adjacency=pair.adjacency,
        confidence=confidence,
        size=size,
        selection=choosing,
        seed_entropy=entropy_of(root),
        provenance=provenance(size=size, selection=selection, mechanism=_plain_parameters(mechanism)),
    )


def measure_loss_from_outputs(
    outputs_x: ArrayLike,
    outputs_y: ArrayLike,
    claim: PureDP,
    *,
    relation: Relation,
    distance: int = 1,
    unit: Unit = "person",
    attack: str | Attack = "auto",
    event: Event | None = None,
    selection: float = 0.3,
    confidence: float = 0.95,
    rng: Seed = None,
    label: str = "outputs given for two databases",
) -> AuditResult:
    """Report the largest privacy loss that given outputs prove, for a mechanism that runs elsewhere.

    The numbers of runs are then fixed, so no coin picked the databases: runs are shuffled and thinned to what fair
    coins would have picked. With fewer than 50 counting runs on either database, exact limits for the two
    probabilities take the place of the game.

    Parameters
    ----------
    outputs_x, outputs_y : array_like, shape (runs, *output)
        Independent outputs on either database, one run a row; the numbers of runs may differ.
    claim : PureDP
        What the mechanism promises, under `relation`.
    relation : {"add_remove", "replace_one"}
        What one step between neighbors is.
    distance : int
        Steps between the two databases.
    unit : {"person", "household", "record"}
        Whose data changes in one step.
    attack, event, selection, confidence, rng
        As in `measure_loss`; the generator shuffles and thins.
    label : str
        What the two databases are, in words.

    Returns
    -------
    AuditResult
        With the verdict; its adjacency is ``"declared"``.

    Raises
    ------
    ValueError
        If shapes differ, outputs hold NaN, are the same on both databases, or are too few, or a number is out of range.
    TypeError
        If outputs are not numbers.

    Notes
    -----
    Guarantee: P(measured > true loss for one step) <= 1 - confidence, whatever the mechanism, if the runs are
    independent.
    Units: nats.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, 2023, theorem 5.2, and Clopper and Pearson, 1934.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> result = measure_loss_from_outputs(
    ...     rng.laplace(0, 1, 5000), rng.laplace(1, 1, 5000), PureDP(1.0), relation="add_remove", rng=4
    ... )
    >>> result.verdict, result.adjacency
    ('not refuted', 'declared')
    """
    begun = time.perf_counter()
    given = [check_outputs(np.asarray(outputs)) for outputs in (outputs_x, outputs_y)]
    if given[X].shape[1:] != given[Y].shape[1:]:
        raise ValueError(
            f"outputs must have one shape on both databases, got {given[X].shape[1:]} and {given[Y].shape[1:]}"
        )
    if np.array_equal(given[X], given[Y]) and chance_of_repeat(given[X]) < CHANCE:
        raise ValueError("outputs are the same on both databases: the two must not share a random stream")
    for outputs in given:
        check_not_copied(outputs)
    pair = NeighborPair.declared(None, None, relation, distance=distance, unit=unit, label=label)
    searching = check_question(claim, relation, attack, event, confidence)
    root = seed_sequence(rng)
    shuffled = [
        outputs[np.random.default_rng(stream(root, SELECT, side)).permutation(len(outputs))]
        for side, outputs in enumerate(given)
    ]

    cut = 0  # of either: a rule is rated by how often it is right where both databases are as likely
    if event is None:
        fewest = min(map(len, shuffled))
        cut = _choosing_runs(2 * fewest, selection) // 2
        shape = shuffled[X].shape[1:]
        chosen_from = [outputs[:cut] for outputs in shuffled]
        counting = 2 * (fewest - cut)
        statistics = searching.statistics or changed_cells(pair, shape)
        if statistics is None:
            part = max(2, int(cut * EXPLORING))
            center = _center(chosen_from[X])
            x, y = (Moments.of([Moments.reducer(center)(outputs[:part])]) for outputs in chosen_from)
            statistics = moved_cells(shape, center, x, y)
            chosen_from = [outputs[part:] for outputs in chosen_from]
        scores = [_columns(outputs, statistics) for outputs in chosen_from]
        event = select_event(statistics, *scores, families=searching.families, counting=counting, confidence=confidence)
        searched = _describe(searching, statistics)
    else:
        searched = "one event, registered beforehand"

    fresh = [outputs[cut:] for outputs in shuffled]
    bound = GAME if min(map(len, fresh)) >= FEWEST_FOR_GAME else RECTANGLE
    if bound == GAME:
        fresh = _thinned(fresh, np.random.default_rng(stream(root, COINS)))
    else:
        fresh = [outputs[:MOST_FOR_RECTANGLE] for outputs in fresh]
    guesses_x, guesses_y = (event.guess(outputs) for outputs in fresh)
    return judge(
        begun,
        claim,
        guesses_x,
        guesses_y,
        bound=bound,
        support=None,
        mechanism="given outputs",
        event=str(event),
        searched=searched,
        pair=pair.label,
        relation=relation,
        unit=unit,
        distance=pair.distance,
        adjacency=pair.adjacency,
        confidence=confidence,
        size=sum(map(len, given)),
        selection=2 * cut,
        seed_entropy=entropy_of(root),
        provenance=provenance(runs_x=len(given[X]), runs_y=len(given[Y]), selection=selection),
    )


def _choosing_runs(size: int, selection: float) -> int:
    if not 0 < selection < 1:
        raise ValueError(f"selection must be in (0, 1), got {selection}")
    choosing = round(size * selection)
    if choosing < 8:
        raise ValueError(
            f"at least 8 runs must choose an event, got {choosing} of {size}: more runs, or an event of your own"
        )
    return choosing


def _halves(runs: int) -> tuple[int, int]:
    return runs - runs // 2, runs // 2


@dataclass(frozen=True)
class _Runs:
    """Runs of one audit: a mechanism on both databases, every phase with streams of its own."""

    mechanism: Mechanism
    pair: NeighborPair
    shape: tuple[int, ...]
    root: np.random.SeedSequence
    n_jobs: int
    advance: Callable[[int], None]

    def reduced(self, sizes: Sequence[int], reduce: Reduce, phase: int) -> list[Iterator[Floats]]:
        """Blocks of reduced outputs on `x` and on `y`, as they come."""
        return [
            draw(
                self.mechanism,
                data,
                size,
                reduce=reduce,
                seed=stream(self.root, phase, side),
                shape=self.shape,
                n_jobs=self.n_jobs,
                advance=self.advance,
            )
            for side, (data, size) in enumerate(zip((self.pair.x, self.pair.y), sizes, strict=True))
        ]

    def scores(self, sizes: Sequence[int], statistics: Sequence[Statistic], phase: int) -> list[Floats]:
        """Scores on `x` and on `y`, shape (runs, statistics) each."""
        none = np.empty((0, len(statistics)))
        blocks = self.reduced(sizes, lambda outputs: _columns(outputs, statistics), phase)
        return [np.concatenate([none, *part]) for part in blocks]

    def moving(self, size: int, changed: tuple[Statistic, ...] | None) -> tuple[Statistic, ...]:
        """Statistics of the entries of the output that move between the databases, besides those the pair changes."""
        center = _center(run(self.mechanism, self.pair.x, 1, np.random.default_rng(stream(self.root, EXPLORE))))
        x, y = map(Moments.of, self.reduced(_halves(size), Moments.reducer(center), EXPLORE))
        if changed is None:
            return moved_cells(self.shape, center, x, y)
        return changed + other_moved_cells(self.shape, x, y, changed)


def _center(outputs: NDArray[Any]) -> Floats:
    """Return the entries of the first output: sums of squares about it keep their digits where means are large."""
    first = outputs[0].reshape(-1).astype(np.float64)
    return np.where(np.isfinite(first), first, 0.0)


def _columns(outputs: NDArray[Any], statistics: Sequence[Statistic]) -> Floats:
    return np.column_stack([statistic(outputs) for statistic in statistics])


def _thinned(outputs: list[NDArray[Any]], coins: np.random.Generator) -> list[NDArray[Any]]:
    """Keep as many runs on either database as fair coins would have picked.

    So many fewer tosses than runs that one side runs short with probability below 4e-8 (Hoeffding); then nothing is
    guessed, which is valid too.
    """
    least = min(map(len, outputs))
    tosses = int(2 * least - 6 * math.sqrt(2 * least))
    on_y = int(coins.binomial(tosses, 0.5))
    if max(on_y, tosses - on_y) > least:
        return [part[:0] for part in outputs]
    return [outputs[X][: tosses - on_y], outputs[Y][:on_y]]


def _describe(attack: Attack, statistics: Sequence[Statistic]) -> str:
    kinds = {"threshold": "thresholds", "cell": "single values"}
    names = ", ".join(statistic.name for statistic in statistics[:3]) + (", ..." if len(statistics) > 3 else "")
    families = " and ".join(kinds[family] for family in attack.families)
    return f"{families}, to 9 decimals, of {len(statistics)} statistics ({names})"


def _plain_parameters(mechanism: Mechanism) -> dict[str, Any]:
    """Public attributes of a mechanism that are plain values, as JSON holds them."""
    return {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in getattr(mechanism, "__dict__", {}).items()
        if isinstance(value, int | float | str) and not key.startswith("_")
    }
