"""Search for the pair of databases that loses most: try many, measure few, under one confidence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import fraction, whole_number
from audit.claims import Claim, Relation, check_relation
from audit.measure.evaluation import check_question
from audit.measure.loss import measure_loss
from audit.mechanism import Mechanism, mechanism_name
from audit.neighbors import NeighborPair, Unit
from audit.results import AuditResult, Verdict
from audit.results.formatting import percent
from audit.results.notebook import Reported, audits_html, frame
from audit.sampling.anew import FIRST, as_before
from audit.sampling.progress import progress_bar
from audit.sampling.streams import Seed, seed_sequence, stream

__all__ = ["SearchResult", "neighbors_of_counts", "neighbors_within", "search_loss"]

Counts = NDArray[np.int64]

SCREEN, MEASURE = range(2)  # numbers of the random streams
COIN = 0.5  # confidence of the bounds that rank pairs: these only estimate their loss
FEWEST = 40  # fewest runs to try a pair
SCREENED = 0.3  # share of the runs that tries pairs
MOST_PAIRS = 100_000


@dataclass(frozen=True, eq=False)
class SearchResult(Reported):
    """Audits of the pairs with the largest estimated losses, under one confidence."""

    results: tuple[AuditResult, ...]  # one a measured pair, each at 1 - (1 - confidence) / len(results)
    screened: int  # number of pairs tried
    screening: int  # runs that tried them
    confidence: float  # of all results together: no bound exceeds the true loss of its pair

    @property
    def worst(self) -> AuditResult:
        """The audit with the largest lower bound, an unbounded loss first."""
        return max(self.results, key=lambda r: (r.support is not None, r.verdict == "violated", r.measured.budget))

    @property
    def verdict(self) -> Verdict:
        """``"violated"`` if any pair has this verdict, else ``"no power"`` if any pair has it."""
        verdicts = {result.verdict for result in self.results}
        order: tuple[Verdict, ...] = ("violated", "no power", "not refuted")
        return next(verdict for verdict in order if verdict in verdicts)

    def to_frame(self) -> Any:
        """Return the summaries of the measured pairs as a data frame, one a row."""
        return frame([result.summary() for result in self.results])

    def _reported(self) -> tuple[str, dict[str, list[tuple[str, Any]]]]:
        audits = [(f"{result.mechanism} pair {number}", result) for number, result in enumerate(self.results, 1)]
        return f"Search for the pair that loses most: {self.results[0].mechanism}", {"audits": audits}

    def _repr_html_(self) -> str:
        title = (
            f"Pairs of databases: {self.screened} looked at, {len(self.results)} measured, at "
            f"{percent(self.confidence)} confidence together"
        )
        return audits_html(title, [result.summary() for result in self.results], self.verdict)

    def __str__(self) -> str:
        each = percent(self.results[0].confidence)
        return (
            f"{self.screened} pairs looked at, a family of {len(self.results)} measured at {each} each, "
            f"{percent(self.confidence)} together: {self.verdict}; the worst: {self.worst}"
        )


def search_loss(
    mechanism: Mechanism,
    pairs: Sequence[NeighborPair],
    claim: Claim,
    *,
    keep: int = 3,
    screen: float = SCREENED,
    size: int = 200_000,
    confidence: float = 0.95,
    rng: Seed = None,
    progress: bool | None = None,
    **options: Any,
) -> SearchResult:
    """Try many pairs of databases with few runs each, and measure the worst with fresh runs.

    Parameters
    ----------
    mechanism, claim, rng, progress
        As in `measure_loss`.
    pairs : sequence of NeighborPair
        At least one, all under the relation of the claim.
    keep : int
        How many pairs the search measures.
    screen : float
        Share of the runs that tries all pairs, in (0, 1). If the search measures all of them, it spends none.
    size : int
        Runs in all. The pairs that the search tries share theirs equally, and so do the pairs that it measures.
    confidence : float
        One-sided, in (0, 1), of all measured pairs together, by the inequality of Bonferroni.
    **options
        As `measure_loss` takes them, such as ``attack`` and ``n_jobs``.

    Returns
    -------
    SearchResult
        With a result for each measured pair. Guarantee: P(any measured > true loss of its pair) <= 1 - confidence.
    """
    family = _family(pairs, claim, confidence, rng, options)
    keep, size = min(whole_number("keep", keep, least=1), len(family)), whole_number("size", size, least=1)
    screen = fraction("screen", screen)
    each = _runs_to_try(family, size, screen) if keep < len(family) else 0
    audits, root, before = keep + (len(family) if each else 0), seed_sequence(rng), as_before(mechanism)
    with progress_bar(f"search {mechanism_name(mechanism)}", audits, visible=progress, unit="audits") as advance:

        def audit(number: int, runs: int, sure: float, phase: int) -> AuditResult:
            context = copy_context()
            context.run(FIRST.set, before[-1] if before and phase == MEASURE else b"")
            usual: dict[str, Any] = {"size": runs, "confidence": sure, "rng": stream(root, phase, number)}
            arguments = usual | {"progress": False} | options
            result = context.run(measure_loss, mechanism, family[number], claim, **arguments)
            advance(1)
            return result

        looks = {number: audit(number, each, COIN, SCREEN) for number in range(len(family) if each else 0)}
        worst = sorted(looks, key=lambda n: (looks[n].support is None, -looks[n].measured.budget))[:keep]
        screening, sure = sum(look.size for look in looks.values()), 1 - (1 - confidence) / keep
        numbers = worst or range(len(family))
        measured = tuple(audit(number, (size - screening) // keep, sure, MEASURE) for number in numbers)
    return SearchResult(measured, len(family), screening, confidence)


def _family(
    pairs: Sequence[NeighborPair], claim: Claim, confidence: float, rng: Seed, options: Mapping[str, Any]
) -> list[NeighborPair]:
    """Return the pairs as a list; refuse pairs, claims and options that do not go together."""
    family = list(pairs)
    if not family:
        raise ValueError("pairs must hold at least one pair of databases, got none")
    for pair in family:
        if not isinstance(pair, NeighborPair):
            raise TypeError(f"pairs must be NeighborPairs, got {type(pair).__name__}")
        check_question(claim, pair.relation, options.get("attack", "auto"), options.get("event"), confidence)
    if rng is None and options.get("store") is not None:
        raise ValueError("a search with a store must have a seed to go on with, got rng=None")
    return family


def _runs_to_try(family: Sequence[NeighborPair], size: int, share: float) -> int:
    each = int(size * share) // len(family)
    if each < FEWEST:
        raise ValueError(f"size must leave {FEWEST} runs to try each of {len(family)} pairs, got {each} of {size}")
    return each


def neighbors_of_counts(pair: NeighborPair, most: int) -> list[NeighborPair]:
    """Return `most` pairs of the same counts and relation, each with another person, added to or moved between cells.

    The cells are evenly spaced by their counts, from the emptiest to the fullest.

    >>> [pair.label for pair in neighbors_of_counts(NeighborPair.add_people([7, 0, 90, 3], 0), 3)]
    ['1 person added to cell 1', '1 person added to cell 0', '1 person added to cell 2']
    """
    whole_number("most", most, least=1)
    if pair.adjacency != "verified" or pair.unit != "person" or not isinstance(pair.x, np.ndarray):
        raise ValueError(f"databases must be counts of people, got {pair.label!r}")
    counts, order = pair.x, np.argsort(pair.x, axis=None, kind="stable")
    added = pair.relation == "add_remove"
    cells = [_cell(place, counts.shape) for place in _spread(order, most if added else math.isqrt(most) + 2)]
    if added:
        pairs = [NeighborPair.add_people(counts, cell) for cell in cells]
    else:
        moves = [(source, target) for source in cells for target in cells if source != target and counts[source] > 0]
        pairs = [NeighborPair.move_people(counts, *moves[k]) for k in _spread(np.arange(len(moves)), most)]
    return [one.as_confidential() for one in pairs] if pair.confidential else pairs


def _spread(values: Counts, most: int) -> Counts:
    """Return some of the values, evenly spaced in their order, with the first and the last."""
    places = np.unique(np.rint(np.linspace(0, len(values) - 1, min(most, len(values)))).astype(np.int64))
    return values[places]


def _cell(place: int, shape: tuple[int, ...]) -> int | tuple[int, ...]:
    where = tuple(int(index) for index in np.unravel_index(place, shape))
    return where[0] if len(where) == 1 else where


def neighbors_within(
    universe: ArrayLike, most: int, *, relation: Relation = "add_remove", form: Literal["counts", "records"] = "counts"
) -> list[NeighborPair]:
    """Return all neighboring pairs among databases of a few people: a proof by cases for small universes.

    Parameters
    ----------
    universe : array_like, shape (k, ...)
        The records that a person may have, all different.
    most : int
        Maximum number of people in the larger database of a pair.
    relation : {"add_remove", "replace_one"}
        What one step between neighbors is.
    form : {"counts", "records"}
        Databases as the mechanism reads them: how many people have each record, shape (k,), or one record a row.

    Returns
    -------
    list of NeighborPair
        Each unordered pair once, the smaller databases first.

    Raises
    ------
    ValueError
        If there are more than 100,000 pairs, among others.
    """
    check_relation(relation)
    if form not in ("counts", "records"):
        raise ValueError(f'form must be "counts" or "records", got {form!r}')
    records = np.asarray(universe)
    if records.dtype.kind == "O":
        raise TypeError("universe must be numbers or text, got Python objects")
    if records.ndim == 0 or len(records) == 0 or len(np.unique(records, axis=0)) < len(records):
        raise ValueError(f"universe must be a list of different records, got {universe!r}")
    kinds, most = len(records), whole_number("most", most, least=1)
    steps = kinds if relation == "add_remove" else math.comb(kinds, 2)
    number = steps * math.comb(kinds + most - 1, kinds)  # steps from each database of fewer than `most` people
    if number > MOST_PAIRS:
        raise ValueError(
            f"a universe must have at most {MOST_PAIRS} pairs, got {number} of {kinds} kinds, {most} people"
        )
    unit: Unit = "person" if form == "counts" else "record"
    pairs = []
    for counts in _steps(kinds, most, relation):
        x, y = counts if form == "counts" else (np.repeat(records, side, axis=0) for side in counts)
        label = "{} and {} people of each record".format(*(side.tolist() for side in counts))
        pairs.append(NeighborPair(x, y, relation, unit=unit, label=label))
    return pairs


def _steps(kinds: int, most: int, relation: Relation) -> Iterator[tuple[Counts, Counts]]:
    """Yield the counts of every two neighbors: the people they share, and the one or two who differ."""
    one = np.eye(kinds, dtype=np.int64)
    for people in range(most):
        for chosen in itertools.combinations_with_replacement(range(kinds), people):
            shared = np.bincount(np.array(chosen, np.int64), minlength=kinds)
            if relation == "add_remove":
                yield from ((shared, shared + one[kind]) for kind in range(kinds))
            else:
                yield from ((shared + one[s], shared + one[t]) for s, t in itertools.combinations(range(kinds), 2))
