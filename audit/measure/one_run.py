"""An audit of one single run: many areas or records are in or out of the database by secret coins."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import fraction, whole_number
from audit.attacks import Attack
from audit.claims import Claim
from audit.measure.choice import Choice, Selected
from audit.measure.evaluation import check_question, evaluate
from audit.mechanism import Mechanism, check_mechanism, mechanism_name
from audit.methods.one_run import OneRun
from audit.neighbors import Unit
from audit.neighbors.counts import check_counts, frozen
from audit.outputs import check_number, kind_of, listed, read_outputs
from audit.results import AuditResult
from audit.results.provenance import provenance
from audit.sampling.streams import Seed, entropy_of, seed_sequence, stream
from audit.sampling.watch import in_words, watch
from audit.written import as_given

__all__ = ["Canaries", "RecordCanaries", "measure_loss_one_run"]

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]
Score = Callable[[NDArray[Any]], ArrayLike]

BITS, RUN, TIES = range(3)  # numbers of the random streams
OUT, IN = 0.0, 1.0  # a canary is guessed to be out up to the first score, and in from the second on
DECIMALS = 9  # the last bits of a score can leak the coin
SEARCHED = "one rule, registered beforehand"
PLURAL = {"person": "people", "record": "records"}


@dataclass(frozen=True, eq=False)
class Canaries:
    """People who are in the counts or not: a secret coin decides for each area.

    Attributes
    ----------
    counts : ndarray of int
        People in each cell besides the canaries, of any shape; the auditor knows them.
    cells : ndarray of int, shape (canaries,)
        Cells that hold canaries, as places in the flattened counts, each at most once. Default: all.
    people : int
        People per canary: the whole group is in or out. The loss is that of one person, as group privacy allows.
    """

    counts: ArrayLike
    cells: ArrayLike | None = None
    people: int = 1

    unit: ClassVar[Unit] = "person"

    def __post_init__(self) -> None:
        counts = check_counts(self.counts)
        cells = np.arange(counts.size) if self.cells is None else np.array(self.cells)
        if cells.ndim != 1 or cells.size == 0:
            raise ValueError(f"cells must be a list of at least one cell, got shape {cells.shape}")
        if cells.dtype.kind not in "iu":
            raise TypeError(f"cells must be whole numbers, got dtype {cells.dtype}")
        outside = (cells < 0) | (cells >= counts.size)
        if outside.any():
            raise ValueError(f"cells must be in 0..{counts.size - 1}, got {cells[outside][0]}")
        different, times = np.unique(cells, return_counts=True)
        if times.max() > 1:
            raise ValueError(f"canaries must not overlap, got cell {different[times > 1][0]} more than once")
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "cells", frozen(cells))
        object.__setattr__(self, "people", whole_number("people", self.people, least=1))

    def __len__(self) -> int:
        return len(np.asarray(self.cells))

    def database(self, bits: Bits) -> NDArray[np.int64]:
        """Return the counts with the canaries whose bit is set."""
        data = np.array(self.counts)
        data.reshape(-1)[np.asarray(self.cells)[bits]] += self.people
        return data

    def scores(self, output: NDArray[Any]) -> Floats:
        """Return the share of each canary's people that an output of the shape of the counts shows."""
        counts, cells = np.asarray(self.counts), np.asarray(self.cells)
        shape = getattr(output, "shape", type(output).__name__)  # mappings and lists have none
        if shape != counts.shape:
            raise ValueError(f"an output that is not of the shape of counts needs a score: {shape}, {counts.shape}")
        if output.dtype.kind in "OU":
            raise TypeError(f"an output of words needs a score, got {str(output.flat[0])!r}")
        residuals: Floats = output.reshape(-1)[cells].astype(np.float64) - counts.reshape(-1)[cells]
        return residuals / self.people


@dataclass(frozen=True, eq=False)
class RecordCanaries:
    """Records that are in the database or not: a secret coin decides for each.

    Attributes
    ----------
    records : ndarray, shape (n, ...)
        Records besides the canaries, one per row; there may be none, shape (0, ...). The auditor knows them.
    canaries : ndarray, shape (canaries, ...)
        Records that may be in the database too; equal records are different people.
    people : int
        Copies of each canary that are in or out together.
    """

    records: ArrayLike
    canaries: ArrayLike
    people: int = 1

    unit: ClassVar[Unit] = "record"

    def __post_init__(self) -> None:
        records, canaries = np.array(self.records), np.array(self.canaries)
        if canaries.ndim == 0 or len(canaries) == 0:
            raise ValueError(f"canaries must be at least one record, one a row, got shape {canaries.shape}")
        if records.ndim == 0 or records.shape[1:] != canaries.shape[1:]:
            raise ValueError(f"records and canaries must have the same columns: {records.shape}, {canaries.shape}")
        if (records.dtype.kind == "U") != (canaries.dtype.kind == "U"):
            raise TypeError(f"records and canaries must be of one kind, got {records.dtype} and {canaries.dtype}")
        for name, rows in (("records", records), ("canaries", canaries)):
            object.__setattr__(self, name, frozen(rows))
        object.__setattr__(self, "people", whole_number("people", self.people, least=1))

    def __len__(self) -> int:
        return len(np.asarray(self.canaries))

    def database(self, bits: Bits) -> NDArray[Any]:
        """Return the records and, after them, the canaries whose bit is set."""
        chosen = np.repeat(np.asarray(self.canaries)[bits], self.people, axis=0)
        return np.concatenate([np.asarray(self.records), chosen])


def measure_loss_one_run(
    mechanism: Mechanism,
    canaries: Canaries | RecordCanaries,
    claim: Claim,
    *,
    share: float | None = None,
    score: Score | None = None,
    confidence: float = 0.95,
    rng: Seed = None,
    confidential: bool = False,
) -> AuditResult:
    """Run a mechanism once and report the largest privacy loss that the release proves.

    A fair coin decides for each canary whether its people are in the database, and a rule that was fixed before guesses
    the coins from the release.

    Parameters
    ----------
    mechanism : Mechanism
        Called once as ``mechanism(data, 1, rng)``.
    canaries : Canaries or RecordCanaries
        The data that are certainly in the database, and the people who may be added.
    claim : PureDP, ApproxDP, ZCDP or GaussianDP
        What the mechanism promises when people are added or removed.
    share : float, optional
        Guess this share of the canaries, in (0, 1]: those whose scores are farthest from the middle. Default: depends
        on the promise; under pure privacy, guess each canary whose score is at least 1 or at most 0.
    score : callable, optional
        Takes the output and returns a number for each canary, shape (canaries,): about 0 if it is out, about 1 if it
        is in. Default: the share of its people that counts show. `RecordCanaries` need one.
    confidence, rng
        As in `measure_loss`.
    confidential : bool
        Whether the database is confidential; the result is then, too.

    Returns
    -------
    AuditResult
        With ``size`` 1; it counts the canaries that are out (``"x"``) and in (``"y"``).

    Notes
    -----
    Guarantee: P(measured > true loss for one step) <= 1 - confidence, however canaries depend on each other in the
    release, if share and score were chosen before looking at it. For normal noise, the bound is 0.7 of mu with 10,000
    canaries, and 0.8 with 1,000,000. A mechanism that rarely reveals all canaries may lose more.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", 2023, theorem 5.2.
    .. [2] Mahloujifar, Melis and Chaudhuri, "Auditing f-Differential Privacy in One Run", 2024.
    """
    begun = time.perf_counter()
    check_mechanism(mechanism)
    score, method = _question(canaries, claim, score, confidence)
    share = method.share(len(canaries)) if share is None else fraction("share", share, one=True)
    root, number = seed_sequence(rng), len(canaries)
    bits = np.random.default_rng(stream(root, BITS)).random(number) < 0.5
    # Exceptions are not caught, and the run is not repeated: the bound is for one run.
    with watch() as warnings:
        batch = listed(mechanism(canaries.database(bits), 1, np.random.default_rng(stream(root, RUN))))
    outputs = read_outputs(batch, kind_of([batch]))
    check_number(len(outputs), 1)
    output = as_given(outputs)[0] if outputs.dtype.kind == "O" else outputs[0]
    scores = _checked_scores(score(output), number)
    guesses, event = _guesses(scores, share, np.random.default_rng(stream(root, TIES)))
    counts = {
        name: {"runs": int(side.size), "guessed_x": int(np.sum(side < 0)), "guessed_y": int(np.sum(side > 0))}
        for name, side in (("x", guesses[~bits]), ("y", guesses[bits]))
    }
    each = f"1 {canaries.unit}" if canaries.people == 1 else f"{canaries.people} {PLURAL[canaries.unit]}"
    most = number if share is None else int(np.count_nonzero(guesses))
    return evaluate(
        begun,
        method,
        Choice((Selected(event, counts=counts, basis={"most": most}),), searched=SEARCHED, size=1),
        notes=in_words(warnings),
        mechanism=mechanism_name(mechanism),
        pair=f"{each} in (y) or out (x) by each of {number} secret coins",
        relation="add_remove",
        unit=canaries.unit,
        adjacency="verified",
        confidential=confidential,
        seed_entropy=entropy_of(root),
        provenance=provenance(canaries=number, share=share),
    )


def _question(
    canaries: Canaries | RecordCanaries, claim: Claim, score: Score | None, confidence: float
) -> tuple[Score, OneRun]:
    """Return how one run is scored and measured; refuse arguments that do not go together."""
    if not isinstance(canaries, Canaries | RecordCanaries):
        raise TypeError(f"canaries must be Canaries or RecordCanaries, got {type(canaries).__name__}")
    if getattr(claim, "relation", None) == "replace_one":
        raise ValueError("canaries are added or removed: the claim must be under add_remove, got replace_one")
    check_question(claim, "add_remove", Attack(), None, confidence)
    if score is None:
        if isinstance(canaries, RecordCanaries):
            raise ValueError("records need a score: a function from the output to one number a canary")
        score = canaries.scores
    return score, OneRun(claim, canaries.people, confidence)


def _checked_scores(values: ArrayLike, number: int) -> Floats:
    scores = np.asarray(values)
    if scores.dtype.kind not in "biuf":
        raise TypeError(f"a score must be a number for each canary, got dtype {scores.dtype}")
    if scores.shape != (number,):
        raise ValueError(f"a score must give one number a canary, shape ({number},), got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"scores must not be NaN, got {np.isnan(scores).sum()} of {number}")
    with np.errstate(over="ignore"):  # infinity is on the same side
        return np.asarray(np.round(scores.astype(np.float64), DECIMALS))


def _guesses(scores: Floats, share: float | None, rng: np.random.Generator) -> tuple[NDArray[np.int8], str]:
    """Return +1 for in, -1 for out and 0 for no guess, and the rule in words."""
    if share is None:
        words = "y if the release shows all of a canary or more, x if none or less"
        return (scores >= IN).astype(np.int8) - (scores <= OUT).astype(np.int8), words
    clear = scores - (OUT + IN) / 2
    sides = np.where(clear == 0, rng.choice([-1, 1], clear.size), np.sign(clear)).astype(np.int8)
    # Ties are broken at random: the order of areas may carry information.
    order = np.lexsort((rng.random(clear.size), -np.abs(clear)))
    sides[order[max(1, round(share * clear.size)) :]] = 0
    return sides, f"y if the release shows most of a canary, else x; the clearest {share:.3g} of them"
