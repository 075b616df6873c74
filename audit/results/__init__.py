"""What a measurement says: `AuditResult` holds a promise against counts, `LossEstimate` is never a verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from audit.claims import Claim, Relation, claim_from_dict
from audit.neighbors import Adjacency, Unit
from audit.results.storage import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "AuditResult",
    "LossEstimate",
    "Verdict",
    "check_counts",
    "plain_number",
    "printable",
    "scale_of",
    "verdict_of",
]


Verdict = Literal["violated", "not refuted", "no power"]
REDACTED = "redacted"
LARGEST = 2**53  # float64 holds every whole number below
MOST_BINS = 10_000
BIN = re.compile(r"bin (0|[1-9][0-9]{0,8})", re.ASCII)
PUBLIC = ("software", "python", "platform", "created")  # of the provenance: nothing that anyone could name
NUMBERS = ("confidence", "ceiling", "detectable", "seconds")
ADDED: dict[str, Any] = {"basis": {}, "confidential": False}  # by schema 2, with what they are in older files
CURVE = ("at", "loss", "low", "high")


@dataclass(frozen=True, eq=False)
class AuditResult:
    """A promise held against counted runs.

    `measured` is a lower bound on the loss at the stated confidence: it can refute the promise and never confirm it.

    Attributes
    ----------
    mechanism : str
        What was run.
    claim : PureDP, ApproxDP, ZCDP or GaussianDP
        What it promises.
    measured : PureDP, ApproxDP, ZCDP or GaussianDP
        What the runs force, of the same family: the true loss is at least this, at `confidence`.
    verdict : {"violated", "not refuted", "no power"}
        ``"no power"`` when the runs could not have seen twice the promised loss: a pass would be empty.
    event : str
        The rule that was counted, in words.
    searched : str
        What the event was chosen from; a registered event was not chosen.
    counts : dict
        For ``"x"`` and ``"y"``: counting ``runs`` on that database, and in how many the event named either, or how
        many fell into each bin of a likelihood ratio.
    pair : str
        The two databases, in words.
    relation : {"add_remove", "replace_one"}
        What one step between neighbors is.
    unit : {"person", "household", "record"}
        Whose data changes in one step.
    distance : int
        Steps between the two databases; every loss here is for one step.
    adjacency : {"verified", "declared"}
        Whether that distance was computed.
    bound : str
        The theorem behind `measured`.
    confidence : float
        One-sided, over everything that was searched.
    size, selection : int
        Runs in all, and those of them that chose the event.
    ceiling : float
        Largest loss that these runs could ever have shown: an epsilon, rho or mu, as the claim is.
    detectable : float
        Smallest loss, carried by this event, that they would have called a violation with power 0.8.
    support : dict or None
        The witness of an unbounded loss, from the exact law: ``order`` and ``probability``.
    seed_entropy : int or None
        Reproduces the audit, given as `rng`; None once redacted.
    provenance : dict
        Software, platform and parameters.
    seconds : float
        Wall time.
    basis : dict
        What a bound needs besides the counts, so that `audit.review.verification.verify_result` can compute it again.
    confidential : bool
        Whether the databases are: then so are event, counts and labels, and whatever is made of this result says so.
    """

    mechanism: str
    claim: Claim
    measured: Claim
    verdict: Verdict
    event: str
    searched: str
    counts: dict[str, dict[str, int]]
    pair: str
    relation: Relation
    unit: Unit
    distance: int
    adjacency: Adjacency
    bound: str
    confidence: float
    size: int
    selection: int
    ceiling: float
    detectable: float
    support: dict[str, Any] | None
    seed_entropy: int | None
    provenance: dict[str, Any]
    seconds: float
    basis: dict[str, Any] = field(default_factory=dict)
    confidential: bool = False

    def __str__(self) -> str:
        from audit.report.formatting import line  # which imports this module

        return line(self)

    @property
    def witness(self) -> str:
        """The output that proves an unbounded loss, in words; empty without one."""
        if self.support is None:
            return ""
        if "probability" not in self.support:
            return "; unbounded by the exact law"
        return f"; unbounded by the exact law: {self.support['order']}, probability {self.support['probability']:.3g}"

    def redact(self) -> AuditResult:
        """Return the result without what can disclose true counts: event, counts, pair, search, support and seed."""
        kept = {key: self.provenance[key] for key in PUBLIC if key in self.provenance}
        support = (
            None if self.support is None else {"order": REDACTED}
        )  # where noise ends, its probability is the count
        return replace(
            self,
            event=REDACTED,
            counts={name: {"runs": side["runs"]} for name, side in self.counts.items() if "runs" in side},
            pair=REDACTED,
            searched=REDACTED,
            support=support,
            seed_entropy=None,
            provenance={**kept, "parameters": {}},
            basis={},
            confidential=False,
        )

    @property
    def redacted(self) -> bool:
        """Whether it is what `redact` left."""
        return self.event == self.pair == self.searched == REDACTED

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw promise, measurement and what could have been seen; see `audit.report.plots.plot_audits`."""
        from audit.report.plots import plot_audits  # matplotlib is slow to import

        return plot_audits([self], ax)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for strict JSON: infinity is the string "inf"."""
        values = asdict(self) | {"claim": self.claim.to_dict(), "measured": self.measured.to_dict()}
        return {"kind": "audit", **values, **{name: plain_number(values[name]) for name in NUMBERS}}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> AuditResult:
        """Rebuild a result from what `to_dict` returned.

        Raises
        ------
        ValueError
            If the values are of another kind, a field is missing, unknown, of the wrong type or out of range, or the
            verdict does not follow from the numbers.
        """
        given = _fields_of(cls, {**ADDED, **values} if isinstance(values, dict) else values, "audit")
        try:
            given |= {name: claim_from_dict(given[name]) for name in ("claim", "measured")}
            given |= {name: _number(given[name]) for name in NUMBERS}
        except TypeError as error:
            raise ValueError(f"an audit has a field of the wrong type: {error}") from None
        result = cls(**_typed(cls, given))
        if not 0 < result.confidence < 1:
            raise ValueError(f"confidence must be in (0, 1), got {result.confidence}")
        check_counts(result.counts)
        _check_basis(result.basis)
        if result.support is not None:
            _check_witness(result.support)
        if min(result.size, result.distance) < 1:
            raise ValueError(f"size and distance must be at least 1, got {result.size} and {result.distance}")
        if max(result.size, result.distance, abs(result.selection)) >= LARGEST:
            raise ValueError("size, selection and distance must be below 2**53")
        if type(result.claim) is not type(result.measured):
            kinds = f"{type(result.claim).__name__} and {type(result.measured).__name__}"
            raise ValueError(f"claim and measured must be of one family, got {kinds}")
        expected = verdict_of(result.claim, result.measured, result.detectable, result.support is not None)
        if result.measured != result.claim.at(result.measured.budget):
            raise ValueError(f"claim and measured must be at one delta, got {result.claim} and {result.measured}")
        if result.verdict != expected:
            raise ValueError(f"the verdict must follow from the numbers: {expected!r}, got {result.verdict!r}")
        if result.claim.relation != result.relation:
            raise ValueError(f"the claim must be under {result.relation}, as the pair, got {result.claim.relation}")
        return result

    def to_json(self, path: str | Path) -> None:
        """Write the result to a file, whole or not at all.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        write_json(Path(path), self.to_dict())


def verdict_of(claim: Claim, measured: Claim, detectable: float, unbounded: bool = False) -> Verdict:
    """Return what numbers say of a promise.

    Parameters
    ----------
    claim, measured : PureDP, ApproxDP, ZCDP or GaussianDP
        Promise and lower bound, of one family and under one relation.
    detectable : float
        Smallest loss that would have been seen.
    unbounded : bool
        Whether the exact law holds a witness of an infinite loss.

    Returns
    -------
    {"violated", "not refuted", "no power"}
        The last when less than twice the promise could not be told from it.
    """
    if unbounded or not measured <= claim:
        return "violated"
    return "no power" if detectable > 2 * claim.budget else "not refuted"


def scale_of(claim: Claim) -> str:
    """Return what losses are measured in, for axes and legends.

    Parameters
    ----------
    claim : PureDP, ApproxDP, ZCDP or GaussianDP
        The promise.

    Returns
    -------
    str
        The parameter and its unit.

    Examples
    --------
    >>> from audit.claims import PureDP
    >>> scale_of(PureDP(1.0))
    'epsilon in nats'
    """
    return f"{claim.parameter} in {claim.unit}"


def printable(words: str) -> str:
    r"""Return words in one line, without the control characters that a terminal would obey.

    Parameters
    ----------
    words : str
        A name, label or path: hostile text.

    Returns
    -------
    str
        The same, with a space for every run of what cannot be printed.

    Examples
    --------
    >>> printable("count\x1b[2J of\n all")
    'count [2J of all'
    """
    return " ".join("".join(letter if letter.isprintable() else " " for letter in words).split())


def plain_number(value: float) -> float | str:
    """Return a number as JSON can hold it.

    Parameters
    ----------
    value : float
        Not NaN.

    Returns
    -------
    float or str
        The number itself; infinity is the string "inf" or "-inf".
    """
    return str(float(value)) if math.isinf(value) else value


@dataclass(frozen=True, eq=False)
class LossEstimate:
    """A point estimate of privacy loss as a curve over events, with its assumptions in words.

    It rests on assumptions that the runs cannot check, so it never becomes a verdict.

    Attributes
    ----------
    method : str
        Name of the estimator.
    at : ndarray of float, shape (m,)
        Where on the axis of errors each event sits, in people.
    loss : ndarray of float, shape (m,)
        Estimated log-ratio for one person, in nats; NaN where no run says anything.
    low, high : ndarray of float, shape (m,)
        Pointwise interval of `confidence`; NaN where none can be given.
    value : float
        `statistic` of the curve, in nats: one number for a table.
    interval : tuple of float
        Interval of `confidence` around `value`.
    confidence : float
        Two-sided, of each interval by itself.
    assumptions : tuple of str
        What must be true for the estimate to mean a privacy loss.
    size, areas : int
        Runs (over both databases where there are two), and residuals a run.
    settings : dict
        Every setting that the numbers depend on, as plain lists, numbers and strings.
    statistic : str
        What `value` is: ``"median |loss|"`` or ``"largest |loss|"``. The largest is biased upwards by noise.
    """

    method: str
    at: NDArray[np.float64]
    loss: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    value: float
    interval: tuple[float, float]
    confidence: float
    assumptions: tuple[str, ...]
    size: int
    areas: int
    settings: dict[str, Any] = field(default_factory=dict)
    statistic: str = "median |loss|"

    @property
    def maximum(self) -> float:
        """Largest ``|loss|`` on the curve: biased upwards by the noise of the tails, and unbounded in the window."""
        return float(np.nanmax(np.abs(self.loss)))

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"estimate, no bound: {self.statistic} {self.value:.4g} [{low:.4g}, {high:.4g}] by {self.method} "
            f"from {self.size} x {self.areas} residuals"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers, ready for strict JSON: NaN becomes None, infinity the string "inf"."""
        return {
            "kind": "estimate",
            "method": self.method,
            **{name: _plain_list(getattr(self, name)) for name in CURVE},
            "value": _plain_list([self.value])[0],
            "interval": _plain_list(self.interval),
            "confidence": self.confidence,
            "assumptions": list(self.assumptions),
            "size": self.size,
            "areas": self.areas,
            "settings": deepcopy(self.settings),
            "statistic": self.statistic,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LossEstimate:
        """Rebuild an estimate from what `to_dict` returned.

        Raises
        ------
        ValueError
            If `data` is of another kind, lacks a field, has one too many or one of the wrong type, or the arrays of the
            curve differ in length.
        """
        given = _fields_of(cls, data, "estimate")
        for name in (*CURVE, "interval", "assumptions"):
            if not isinstance(given[name], list):
                raise ValueError(f"{name} must be a list, got {given[name]!r}")
        try:
            given |= {name: np.array([_number(value, math.nan) for value in given[name]]) for name in CURVE}
            low, high = (_number(value, math.nan) for value in given["interval"])
            given |= {"value": _number(given["value"], math.nan), "confidence": _number(given["confidence"])}
        except (TypeError, ValueError) as error:
            raise ValueError(f"an estimate has a field of the wrong type: {error}") from None
        if len(sizes := {given[name].size for name in CURVE}) != 1:
            raise ValueError(f"{', '.join(CURVE)} must be of one length, got {sorted(sizes)}")
        return cls(**_typed(cls, given | {"interval": (low, high), "assumptions": tuple(given["assumptions"])}))


def check_counts(counts: dict[str, dict[str, int]]) -> None:
    """Refuse counts that no runs give.

    Parameters
    ----------
    counts : dict
        For ``"x"`` and ``"y"`` the ``runs``, and guesses or bins that are parts of them.

    Raises
    ------
    ValueError
        If they are not.
    """
    if counts.keys() != {"x", "y"}:
        raise ValueError(f"counts must be of x and of y, got {', '.join(map(repr, counts)) or 'none'}")
    for name, side in counts.items():
        parts = {key: count for key, count in side.items() if key != "runs"}
        binned = all(BIN.fullmatch(key) for key in parts)
        if not (binned or parts.keys() == {"guessed_x", "guessed_y"}) or len(parts) > MOST_BINS:
            raise ValueError(f"counts on {name} must be of guesses or bins, got {', '.join(map(repr, [*parts][:4]))}")
        if min([side.get("runs", -1), *parts.values()]) < 0 or not sum(parts.values()) <= side["runs"] < LARGEST:
            raise ValueError(f"counts on {name} must be parts of fewer than 2**53 runs, got {str(side)[:80]}")


def _check_basis(basis: dict[str, Any]) -> None:
    """Refuse a basis that no bound has."""
    wrong = next((name for name, value in basis.items() if not (name in BASIS and BASIS[name](value))), None)
    if wrong is not None:
        raise ValueError(f"the basis must be what a bound needs, got {wrong} {str(basis[wrong])[:80]!r}")


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _are_numbers(values: Any, least: int, most: int) -> bool:
    return (
        isinstance(values, list)
        and least <= len(values) <= most
        and all(
            isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < 1e15 for value in values
        )
    )


BASIS: dict[str, Callable[[Any], bool]] = {
    "expected": lambda value: value is None or _are_numbers(value, 2, 2),
    "regions": lambda value: _is_whole(value, 0, 2),
    "look": lambda value: _is_whole(value, 0, 10_000),
    "weights": lambda value: _are_numbers(value, 1, MOST_BINS),
    "order": lambda value: _are_numbers([value], 1, 1) and 1 <= value <= 1000,
    "toward": lambda value: value in ("x", "y"),
    "most": lambda value: _is_whole(value, 0, LARGEST),
}


def _check_witness(support: dict[str, Any]) -> None:
    """Refuse a witness that is none: its order in words, and a positive probability."""
    if support == {"order": REDACTED}:
        return
    order, probability = support.get("order"), support.get("probability")
    try:
        fine = isinstance(order, str) and support.keys() == {"order", "probability"} and 0 < _number(probability) <= 1
    except TypeError:
        fine = False
    if not fine:
        raise ValueError(f"support must be an order in words and a probability in (0, 1], got {support!r}")


def _plain_list(values: Iterable[float]) -> list[float | str | None]:
    """Return numbers as JSON can hold them, with None for NaN."""
    return [None if math.isnan(value) else plain_number(float(value)) for value in values]


def _number(value: Any, none: float | None = None) -> float:
    """Return the number that `plain_number` wrote, and `none`, if given, for None."""
    if value is None and none is not None:
        return none
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise TypeError(f"{value!r} is no number")
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits, as a hostile file may hold
        raise TypeError("a number is too large for a float") from None


def _typed(cls: type, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields if each is of its type, down to the entries of lists and dicts."""
    for name, hint in get_type_hints(cls).items():
        if not _is_of(given[name], hint):
            words = hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
            raise ValueError(f"{name} must be {words}, got {given[name]!r}")
    return given


def _is_of(value: Any, hint: Any) -> bool:
    """Tell whether a value is of an annotated type; entries of a tuple are of one type here, and keys are text."""
    kind, inside = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind is Literal:
        return value in inside
    if kind is UnionType:
        return any(_is_of(value, one) for one in inside)
    if (isinstance(value, bool) and kind is not bool) or not isinstance(value, kind):
        return False
    if kind is dict:
        return all(_is_of(entry, inside[1]) for entry in value.values())
    return kind not in (list, tuple) or all(_is_of(entry, inside[0]) for entry in value)


def _fields_of(cls: type, values: Any, kind: str) -> dict[str, Any]:
    """Return the fields of a saved result, all of them and no others."""
    if not isinstance(values, dict) or values.get("kind") != kind:
        raise ValueError(f"kind must be {kind!r}, got {values.get('kind') if isinstance(values, dict) else values!r}")
    names = {f.name for f in fields(cls)}
    if wrong := names ^ (values.keys() - {"kind"}):
        raise ValueError(f"{kind} fields are missing or unknown: {', '.join(sorted(wrong))}")
    return {name: values[name] for name in names}
