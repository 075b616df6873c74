"""The measurement: run, choose an event, count it on fresh runs, bound the loss, compare it with the promise."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import fraction, whole_number
from audit.attacks import Attack
from audit.attacks.protocol import with_columns
from audit.claims import Claim, Relation
from audit.events import Event
from audit.measure.betting import bet_on_runs
from audit.measure.choice import Choice, choose_event, compare_calls, count_all, registered_choice
from audit.measure.evaluation import check_again, check_question, evaluate, support_witness
from audit.mechanism import Mechanism, check_mechanism
from audit.methods.betting import FIRST, TAUGHT, Bets
from audit.methods.method import Method, method_for
from audit.neighbors import NeighborPair, Unit
from audit.outputs import Kind, kind_of, listed, read_outputs
from audit.results import GIVEN_OUTPUTS, AuditResult
from audit.results.provenance import provenance
from audit.sampling.anew import as_before
from audit.sampling.calls import CALLS, COUNTING
from audit.sampling.checkpoint import BlockStore, fingerprint, source, stored_seed
from audit.sampling.copies import CHANCE, chance_of_repeat, check_not_copied
from audit.sampling.independence import check_file
from audit.sampling.probes import LEAST, probe
from audit.sampling.progress import progress_bar
from audit.sampling.runs import GivenRuns, MechanismRuns
from audit.sampling.streams import Phase, Seed, entropy_of, seed_sequence, stream
from audit.sampling.watch import in_words, watch
from audit.written import titles

__all__ = ["measure_loss", "measure_loss_from_outputs"]

LOOKED_AT = TAUGHT // 2  # given outputs on either database before the first bet


def measure_loss(
    mechanism: Mechanism,
    pair: NeighborPair,
    claim: Claim,
    *,
    attack: str | Attack = "auto",
    event: Event | None = None,
    size: int = 200_000,
    selection: float = 0.3,
    confidence: float = 0.95,
    rng: Seed = None,
    n_jobs: int = 1,
    stop: Literal["fixed", "early"] = "fixed",
    store: str | Path | None = None,
    progress: bool | None = None,
) -> AuditResult:
    """Run a mechanism on two neighboring databases and report the largest privacy loss that the runs prove.

    A share of the runs chooses a few events, and the others count all of them. The events share the error probability,
    and the result has the largest bound.

    Parameters
    ----------
    mechanism : Mechanism
        Called as ``mechanism(data, size, rng)``; returns `size` outputs: an array of numbers, shape (size, *output), or
        a sequence of anything that can be written as text. NaN, None and a run that raises are separate values.
    pair : NeighborPair
        The two databases.
    claim : PureDP, ApproxDP, ZCDP or GaussianDP
        What the mechanism promises, under the relation of the pair.
    attack : str or Attack
        Where to look for the event: ``"auto"``, or one of `audit.attacks.attack_names`.
    event : Event, optional
        An event that you fix before any run: all runs then count.
    size : int
        Runs in all, over both databases, at least 20: all calls of the mechanism, those included that determine the
        kind of outputs and choose the event. Only runs that seem to depend on each other (1 in 100 sound audits), or on
        state that the process keeps, are tested on further ones, and a note says so.
    selection : float
        Share of the runs that choose the event, in (0, 1). Up to a third of the others may train classifiers. With
        ``stop="early"`` it is not used: each run counts, and then helps to choose the next event.
    confidence : float
        One-sided, in (0, 1), of all bounds of the result together.
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        Seed of all randomness.
    n_jobs : int
        Number of blocks of runs at work at the same time; the result does not depend on it.
    stop : {"fixed", "early"}
        ``"fixed"`` makes all runs. ``"early"`` makes at most `size`, and stops when the runs show a violation, or when
        the minimum detectable loss is a tenth above the promise. The bound holds whenever the audit stops, also by
        Ctrl-C: then the result is that of the runs so far.
    store : str or pathlib.Path, optional
        Folder that keeps finished blocks of runs, from which the same call continues if an audit was killed; without
        `rng` it takes the seed with which the audit began. It holds scores of outputs, or with ``stop="early"`` the
        outputs: delete it once you have saved the result.
    progress : bool, optional
        Show progress: a bar on a terminal after five seconds, elsewhere a line a minute on standard error. Default: on
        a terminal only.

    Returns
    -------
    AuditResult
        With the verdict.

    Raises
    ------
    ValueError
        If the mechanism changes its data, or returns runs that depend on each other or on state that the process keeps
        for a data set, outputs that do not depend on its generator, or numbers that float64 cannot represent.
    OSError
        If plaudit cannot write the store, or the same runs killed a worker process twice.

    Notes
    -----
    Guarantee: P(measured > true loss of the pair for one step) <= 1 - confidence, whatever the mechanism. Units are
    those of the claim, nats except for delta. The audit does not detect differences beyond the ninth decimal, except in
    the last bits of floats: for these, give an `Attack` with your own statistics.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", 2023, theorem 5.2.
    .. [2] Dwork and Roth, 2014, theorem 2.2 (group privacy).

    Examples
    --------
    >>> from audit import PureDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=(size, data.size))
    >>> result = measure_loss(noisy, NeighborPair.add_people([120], 0), PureDP(0.5), size=20_000, rng=1)
    >>> result.verdict, 0.5 < result.measured.epsilon <= 1.0  # the noise is that of an epsilon of 1
    ('violated', True)
    """
    begun = time.perf_counter()
    check_mechanism(mechanism)
    if not isinstance(pair, NeighborPair):
        raise TypeError(f"pair must be a NeighborPair, got {type(pair).__name__}")
    attack = check_question(claim, pair.relation, attack, event, confidence)
    size = whole_number("size", size, least=LEAST)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0, got {n_jobs!r}")
    early = _stops_early(stop)
    choosing = 0 if event is not None or early else _choosing_runs(size, selection)
    options = (pair, claim, attack, event, size, selection, confidence, stop)
    question = "" if store is None else fingerprint(mechanism, source(mechanism), *options)
    root = seed_sequence(rng) if store is None else stored_seed(store, question, rng)
    explored = 1 if early else max(1, size // (2 * CALLS))
    runs = MechanismRuns(pair, root, Kind(None), mechanism, n_jobs, explored=explored, before=as_before(mechanism))
    support = support_witness(mechanism, pair, claim)  # before the runs, as an error here would waste them
    method, calls = (Bets if early else method_for)(claim, pair.distance, confidence), runs.counting_calls

    with watch(pair.x, pair.y) as warnings:
        probes = probe(runs.callers, size, stream(root, Phase.PROBE), few=early)
        if store is not None:
            outputs = fingerprint(entropy_of(root), probes.first if probes.seedable else probes.kind)
            runs = replace(runs, store=BlockStore.of(store, question, outputs, repeats=probes.seedable))
        probe_runs = probes.made + (0 if early else probes.to_come)
        if size <= (choosing := max(choosing, probe_runs)):
            raise ValueError(f"size must leave runs to count, got {size}, of which {choosing} do not count")
        with progress_bar(runs.name, size, visible=progress) as advance:
            runs = replace(runs, kind=probes.kind, advance=advance, made=probes.outputs)
            advance(probes.made)
            if isinstance(method, Bets):
                say = partial(advance, 0)
                first, made = probes.outputs, probes.made
                chosen, notes = bet_on_runs(runs, method, attack, event, first=first, size=size, made=made, say=say)
            else:
                teaching = choosing - probe_runs + sum(map(len, probes.outputs))
                chosen = _counted_choice(runs, method, attack, event, size, choosing, teaching)
                probes.check_steady()
                notes = compare_calls(chosen, visible=progress)
    notes = in_words(warnings) + notes
    if calls < COUNTING:
        notes.append(
            f"{calls} calls a database count instead of {COUNTING}: what the runs of one call share shows less"
        )
    parameters = {"size": size, "selection": selection, "stop": stop, "mechanism": runs.parameters}
    if event is not None:
        parameters["probe_runs"] = probe_runs
    if not probes.seedable:
        notes.append("the mechanism takes randomness from elsewhere: a seed does not reproduce this audit")
        parameters["seedable"] = False
    result = evaluate(begun, method, chosen, notes=notes, support=support, **_facts(pair, root, runs.name, parameters))
    return check_again(result, chosen)


def _counted_choice(
    runs: MechanismRuns, method: Method, attack: Attack, event: Event | None, size: int, choosing: int, teaching: int
) -> Choice:
    """Choose events by the `teaching` ones of the `choosing` runs, or take the registered one; count the other runs."""
    coins = np.random.default_rng(stream(runs.root, Phase.COINS))
    if event is not None:
        return count_all(registered_choice(event, runs), method, method.sizes(size - choosing, coins), size, 0)
    chosen = choose_event(runs, method, attack, teaching, size - choosing, extra=True)
    choosing += chosen.extra_used
    return count_all(chosen, method, method.sizes(size - choosing, coins), size, choosing)


def measure_loss_from_outputs(
    outputs_x: ArrayLike,
    outputs_y: ArrayLike,
    claim: Claim,
    *,
    relation: Relation,
    distance: int = 1,
    unit: Unit = "person",
    attack: str | Attack = "auto",
    event: Event | None = None,
    selection: float = 0.3,
    confidence: float = 0.95,
    rng: Seed = None,
    stop: Literal["fixed", "early"] = "fixed",
    label: str = "outputs given for two databases",
    confidential: bool = False,
    columns: Sequence[str] = (),
) -> AuditResult:
    """Report the largest privacy loss that outputs prove, for a mechanism that runs elsewhere.

    No coin picked the databases of these runs: for pure and approximate privacy the audit thins them to numbers of runs
    that fair coins pick, unless it may stop early. With fewer than 150 counting runs on either database, it tests the
    two probabilities instead.

    Parameters
    ----------
    outputs_x, outputs_y : array_like, shape (runs, *output)
        Independent outputs on each database, one per run and in the order of the runs, as `measure_loss` takes them.
    relation, distance, unit, confidential, label
        As in `NeighborPair`.
    claim, attack, event, selection, confidence, rng
        As in `measure_loss`; the generator shuffles and thins.
    stop : {"fixed", "early"}
        With ``"early"`` you may ask again whenever outputs were added at the ends: each call repeats the bets of the
        one before, and goes on. The bounds of all these calls hold together, if all other arguments stay as they are.
        Then `rng` is a seed, 0 by default; `selection` is not used; and outputs are a list, or an array of numbers. The
        first six on either database do not count: they show what outputs look like, and teach.
    columns : sequence of str
        Names of the columns of an output, for events. Default: those of data frames and structured arrays.

    Returns
    -------
    AuditResult
        With the verdict and the guarantee of `measure_loss`, for independent runs; its adjacency is ``"declared"``.

    Raises
    ------
    ValueError
        If there are too few outputs, or those of one database depend on each other, or have another type as a whole.
        With ``stop="early"`` also if `rng` is a generator, or if later outputs could change how the first are read.
    """
    begun = time.perf_counter()
    early = _stops_early(stop)
    given: list[Any] = [listed(outputs) for outputs in (outputs_x, outputs_y)]
    batches, kind = _batches(given, columns, early=early)
    pair = NeighborPair.declared(None, None, relation, distance=distance, unit=unit, label=label)
    pair = replace(pair, confidential=confidential)
    attack = check_question(claim, relation, attack, event, confidence)
    if early and isinstance(rng, np.random.Generator):
        raise ValueError("rng must be a seed, as the next call repeats this one, got a Generator")
    root, notes = seed_sequence(0 if early and rng is None else rng), list[str]()
    parameters: dict[str, Any] = {"runs_x": len(batches[0]), "runs_y": len(batches[1])}
    method = (Bets if early else method_for)(claim, distance, confidence)
    if isinstance(method, Bets):
        check_file(batches, lambda name: with_columns(name, kind.columns))
        orders, looked_at = [np.arange(len(side)) for side in batches], [LOOKED_AT, LOOKED_AT]
        first, size, say = [side[:LOOKED_AT] for side in batches], sys.maxsize, notes.append
        runs = GivenRuns(pair, root, kind, batches, orders, looked_at, given=given)
        chosen, stopped = bet_on_runs(runs, method, attack, event, first=first, size=size, made=TAUGHT, say=say)
        notes, parameters["stop"] = [*stopped, *notes[-1:]], stop
    else:
        runs = GivenRuns.shuffled(pair, root, kind, batches)
        chosen = registered_choice(event, runs) if event is not None else _choice(runs, method, attack, selection)
        method = method_for(claim, distance, confidence, fewest=min(runs.left))
        sizes = method.given_sizes(runs.left, np.random.default_rng(stream(runs.root, Phase.COINS)))
        check_file(batches, lambda name: with_columns(name, kind.columns))
        chosen = count_all(chosen, method, sizes, sum(map(len, batches)), chosen.selection)
        parameters["selection"] = selection
    facts = _facts(pair, root, GIVEN_OUTPUTS, parameters)
    result = check_again(evaluate(begun, method, chosen, **facts), chosen)
    return replace(result, notes=(*result.notes, *notes))


def _stops_early(stop: str) -> bool:
    if stop not in ("fixed", "early"):
        raise ValueError(f'stop must be "fixed" or "early", got {stop!r}')
    return stop == "early"


def _batches(given: list[Any], columns: Sequence[str], *, early: bool) -> tuple[list[NDArray[Any]], Kind]:
    """Return given outputs on either database and their kind; refuse those that independent runs would not give."""
    if early:  # later outputs must not change how the first are read
        for outputs in given:
            array = isinstance(outputs, np.ndarray) and outputs.ndim and outputs.dtype.kind in "biuf"
            if not array and not isinstance(outputs, list | tuple):
                got = f"{type(outputs).__name__} of {getattr(outputs, 'dtype', 'any type')}"
                raise ValueError(f"outputs that may grow must be a list, or an array of numbers, got {got}")
        kind = kind_of([outputs[:LOOKED_AT] for outputs in given])
    else:
        kind = kind_of(given)
        types = [_types(outputs) for outputs in given]
        on_x, on_y = (list(map(_is_numeric, side)) for side in types)
        if len(on_x) == len(on_y) and on_x != on_y:  # a single word makes all numbers words: that is no loss
            got = " and ".join(", ".join(map(str, side)) for side in types)
            raise ValueError(f"outputs must have the same type on both databases, got {got}: lists may hold both")
    x, y = batches = [read_outputs(outputs, kind) for outputs in given]
    if early and kind.shape is not None:
        x, y = batches = [side.astype(np.float64) for side in batches]
    if min(len(x), len(y)) == 0:
        raise ValueError(f"there must be outputs on both databases, got {len(x)} and {len(y)}")
    if early and min(len(x), len(y)) < LOOKED_AT + FIRST // 2:
        least = LOOKED_AT + FIRST // 2
        raise ValueError(f"bets need at least {least} outputs on each database, got {len(x)} and {len(y)}")
    if np.array_equal(x, y) and chance_of_repeat(x) < CHANCE:
        raise ValueError("outputs are the same on both databases: the two must not share a random stream")
    for outputs in batches:
        check_not_copied(outputs)
    return batches, replace(kind, columns=titles(columns) or kind.columns)


def _types(outputs: Any) -> list[Any]:
    """Return the types of the columns of a table, or the one of an array; none of a list."""
    return [outputs.dtype] if hasattr(outputs, "dtype") else list(getattr(outputs, "dtypes", []))


def _is_numeric(dtype: Any) -> bool:
    return bool(dtype.is_numeric() if hasattr(dtype, "is_numeric") else getattr(dtype, "kind", "O") in "biuf")


def _choice(runs: GivenRuns, method: Method, attack: Attack, selection: float) -> Choice:
    """Return the events that a share of given outputs chooses."""
    fewest = min(runs.left)  # equally many of either, as ratings assume
    choosing = 2 * (_choosing_runs(2 * fewest, selection) // 2)
    if choosing // 2 + 1 >= fewest:  # a side may lose one more to rounding
        raise ValueError(f"selection must leave runs to count, got {selection} of {fewest} on a database")
    chosen = choose_event(runs, method, attack, choosing, 2 * fewest - choosing, extra=True)
    return replace(chosen, selection=choosing + chosen.extra_used)


def _choosing_runs(size: int, selection: float) -> int:
    choosing = round(size * fraction("selection", selection))
    if choosing < 8:
        raise ValueError(
            f"at least 8 runs must choose an event, got {choosing} of {size}: more runs, or an event of your own"
        )
    return choosing


def _facts(
    pair: NeighborPair, root: np.random.SeedSequence, mechanism: str, parameters: dict[str, Any]
) -> dict[str, Any]:
    return {
        "mechanism": mechanism,
        "pair": pair.label,
        "relation": pair.relation,
        "unit": pair.unit,
        "adjacency": pair.adjacency,
        "confidential": pair.confidential,
        "seed_entropy": entropy_of(root),
        "provenance": provenance(**parameters),
    }
