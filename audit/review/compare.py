"""Two sets of saved audits compared: what got worse, what may be chance, and what cannot be told."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from audit.bounds.limits import check_confidence
from audit.methods.method import method_named
from audit.results import AuditResult
from audit.results.formatting import row
from audit.review.two_samples import MOST, CountTest, count_changes, is_binned, is_weighed

__all__ = ["Change", "Comparison", "Counted", "compare_results"]

Row = dict[str, str]  # an audit as readers see it

# Identical: the same seed, and the same counts. Within chance and changed: by an exact test. Bounds only: of other
# events or by sequential rules, so that no test of the counts holds.
Counted = Literal["identical", "within chance", "changed", "bounds only", "missing", "new"]

DETECTED = "the known bug is detected now: its test expects the violation"
POWER_LOST = 1.1  # times the minimum detectable loss of before, relative to the promise
SAME = (
    ("event", "events"),
    ("pair", "pairs of databases"),
    ("claim", "promises"),
    ("relation", "neighbor relations"),
    ("unit", "units"),
    ("distance", "distances"),
    ("bound", "theorems"),
)


@dataclass(frozen=True, eq=False)
class Change:
    """What became of one audit; old or new is None if there is none."""

    name: str
    old: AuditResult | None
    new: AuditResult | None
    counts: Counted
    p_value: float | None = None  # of no change, over all tests of this audit together
    regressions: tuple[str, ...] = ()  # what got worse
    weaknesses: tuple[str, ...] = ()  # where power was lost
    notes: tuple[str, ...] = ()  # what else is other than before; each with old and new values


@dataclass(frozen=True, eq=False)
class Comparison:
    """What became of all audits, in the order of their names.

    With probability `confidence` no counts are called changed if no algorithm changed, over all audits together.
    """

    changes: tuple[Change, ...]
    confidence: float

    @property
    def compared(self) -> int:
        """Number of audits that are there both before and after."""
        return sum(change.old is not None and change.new is not None for change in self.changes)

    @property
    def tested(self) -> int:
        """Number of those audits whose counts were tested."""
        return sum(change.p_value is not None for change in self.changes)

    @property
    def regressed(self) -> bool:
        """Whether anything got worse."""
        return any(change.regressions for change in self.changes)

    @property
    def weakened(self) -> bool:
        """Whether any audit has less power than before, or none."""
        return any(change.weaknesses for change in self.changes)

    @property
    def confidential(self) -> bool:
        """Whether any of the databases are confidential."""
        return any(one is not None and one.confidential for change in self.changes for one in (change.old, change.new))


def compare_results(
    old: Sequence[tuple[str, AuditResult]],
    new: Sequence[tuple[str, AuditResult]],
    *,
    confidence: float = 0.999,
    known_bugs: Collection[str] = (),
) -> Comparison:
    """Compare audits by name; each set must have each name once.

    If event, promise and neighbors are the same, a test compares the counts: two sets of runs of one algorithm differ
    by chance. Otherwise only the bounds stand side by side, and a smaller or larger bound says nothing.

    An audit is worse if its verdict became "violated" or it is new and violated, it is gone, its promise got weaker or
    cannot be compared, its adjacency is no longer computed, or the loss of its event grew. It has less power if its
    verdict is newly "no power", or its minimum detectable loss is more than 10% larger than before, relative to the
    promise. It is not worse if a known bug is newly detected.

    Guarantee: if runs are independent and no algorithm changed, P(any audit is called changed) <= 1 - confidence, for
    every event. For each audit, regions of outputs are tested by the hypergeometric law of their counts, given all
    counts of the two audits together (Fisher, 1935): each region on each database, and the difference of the two or, if
    a fair coin picked the database of each run, the right guesses among all. All p-values are multiplied by the number
    of tests and of audits. A loss is said to have grown only if counts changed, by a one-sided test at the same level,
    which needs no error probability of its own (Marcus, Peritz and Gabriel, 1976): of right guesses among all, or else
    of the difference between the probabilities of a region on the two databases, the delta that it shows at epsilon 0.
    """
    check_confidence(confidence)
    before, after = _named(old), _named(new)
    matched = [(name, before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys())]
    tests = {name: count_changes(name, a, b) for name, a, b in matched if a and b and not _why_untested(a, b)}
    level = (1 - confidence) / max(1, len(tests))
    changes = (_change(name, a, b, tests.get(name), level, name in known_bugs) for name, a, b in matched)
    return Comparison(tuple(changes), confidence)


def _named(results: Sequence[tuple[str, AuditResult]]) -> dict[str, AuditResult]:
    named = dict(results)
    if len(named) < len(results):
        raise ValueError(f"names must differ, got {len(results)} audits with {len(named)} names")
    return named


def _change(
    name: str, old: AuditResult | None, new: AuditResult | None, tests: CountTest | None, level: float, known_bug: bool
) -> Change:
    if new is None:
        return Change(name, old, None, "missing", regressions=("the audit is gone",))
    if old is None:
        violated = ("a new audit, and its promise is violated",) if new.verdict == "violated" and not known_bug else ()
        powerless = ("a new audit, and it has no power",) if new.verdict == "no power" else ()
        expected = (DETECTED,) if new.verdict == "violated" and known_bug else ()
        return Change(name, None, new, "new", regressions=violated, weaknesses=powerless, notes=expected)
    rows = row(old.summary()), row(new.summary())
    notes, regressions = list(_notes(old, new, *rows)), list(_regressions(old, new, *rows))
    newly_violated = new.verdict == "violated" and old.verdict != "violated"
    worse = notes if newly_violated and known_bug else regressions
    if newly_violated:
        worse.insert(0, DETECTED if known_bug else _violated(old, *rows))
    counts: Counted = "within chance"
    if _is_copy(old, new):
        counts = "identical"
    elif tests is None:
        counts = "bounds only"
        notes.append(f"{_why_untested(old, new)}: only the bounds stand side by side")
    elif tests.p_value <= level:
        counts = "changed"
        if tests.p_growth <= level:
            worse.append(f"the loss of this event grew: {tests.grown}")
        else:
            notes.append(f"the counts changed beyond chance, but no growth of the loss is shown: {tests.changed}")
    p_value = None if tests is None else tests.p_value
    weaknesses = tuple(_weaknesses(old, new, *rows))
    return Change(name, old, new, counts, p_value, tuple(regressions), weaknesses, tuple(notes))


def _is_copy(old: AuditResult, new: AuditResult) -> bool:
    """Tell whether the same seed gave the same counts of the same event, and so the same numbers."""
    same = (*(field for field, _ in SAME), "seed_entropy", "size", "selection", "confidence", "counts", "basis")
    return old.seed_entropy is not None and all(getattr(old, field) == getattr(new, field) for field in same)


def _violated(old: AuditResult, before: Row, after: Row) -> str:
    promise, witness = after["promised"], f"; {after['witness']}" if after["witness"] else ""
    was = f"{before['measured']}, {old.verdict}"
    return f"the verdict became violated: lower bound {after['measured']} of a promised {promise}, was {was}{witness}"


def _regressions(old: AuditResult, new: AuditResult, before: Row, after: Row) -> Iterator[str]:
    promises = f"{before['promised']} ({old.claim.relation}) -> {after['promised']} ({new.claim.relation})"
    order = new.claim.weaker_than(old.claim)
    if order is None:
        yield f"the promise is of another kind, and may be weaker: {promises}"
    elif order:
        yield f"the promise got weaker: {promises}"
    if old.unit != new.unit:
        yield f"the promise is for another unit, and may be weaker: one {old.unit} -> one {new.unit}"
    if (old.adjacency, new.adjacency) == ("verified", "declared"):
        yield "the distance of the databases was verified, and is now declared: verified -> declared"


def _weaknesses(old: AuditResult, new: AuditResult, before: Row, after: Row) -> Iterator[str]:
    if new.verdict == "no power" != old.verdict:
        yield f"no power: not even twice the promise can be detected ({old.verdict} -> no power)"
    if type(old.claim) is type(new.claim) and _reach(new) > POWER_LOST * _reach(old):
        losses = " -> ".join(f"{cells['detectable']} ({cells['promised']})" for cells in (before, after))
        yield f"the minimum detectable loss grew, relative to the promise: {losses}"


def _reach(result: AuditResult) -> float:
    """Return the minimum detectable loss in units of the promise."""
    return result.detectable / result.claim.budget if result.claim.budget > 0 else math.inf


def _notes(old: AuditResult, new: AuditResult, before: Row, after: Row) -> Iterator[str]:
    if new.claim != old.claim and new.claim.weaker_than(old.claim) is False:
        yield f"the promise got stronger: {before['promised']} -> {after['promised']}"
    if new.verdict != old.verdict and new.verdict == "not refuted":
        yield f"the verdict became not refuted, was {old.verdict}"
    for title in ("mechanism", "confidence", "pair", "witness"):
        if before[title] != after[title]:
            yield f"{title}: {before[title] or 'none'} -> {after[title] or 'none'}"
    if old.distance != new.distance:
        yield f"steps between the databases: {old.distance} -> {new.distance}"
    if (old.adjacency, new.adjacency) == ("declared", "verified"):
        yield "the distance of the databases is now verified: declared -> verified"
    settings = ("seed_entropy", "size", "selection", "event", "pair")
    same = all(getattr(old, field) == getattr(new, field) for field in settings)
    if old.seed_entropy is not None and same and old.counts != new.counts:
        yield "the same seed gave other counts: parameters, code, software or platform are not what they were"
    if old.confidential != new.confidential:
        yield "the databases are now confidential" if new.confidential else "the databases are confidential no longer"


def _why_untested(old: AuditResult, new: AuditResult) -> str:
    """Return why no test of the counts holds; nothing if one does."""
    if old.redacted or new.redacted:
        return "the counts were redacted"
    for field, words in SAME:
        if getattr(old, field) != getattr(new, field):
            return f"the {words} differ"
    if new.design == "one_run":
        return "guesses from one run are not independent"
    if _stopped_early(old) or _stopped_early(new):
        return "the runs ended when the answer was clear, which their counts tell"
    if is_binned(old) or is_binned(new):
        if not is_weighed(old) or not is_weighed(new):
            return "a file does not say what the event weighs"
        if any(old.basis[key] != new.basis[key] for key in ("weights", "toward")):
            return "the weights of the events differ"
    runs = [side.get("runs", 0) for one in (old, new) for side in one.counts.values()]
    return f"there are more than {MOST:.0e} runs" if sum(runs) > MOST else ""


def _stopped_early(result: AuditResult) -> bool:
    """Tell whether it is known that an audit stopped early; files of the first schema say so among their parameters."""
    method = method_named(result.bound)
    return result.parameters.get("stop") == "early" or (method is not None and method.stopped_early(result.basis))
