"""What is said of an audit, cell by cell: the one place where numbers are rounded.

Losses have four significant digits, and more where fewer would contradict the verdict. What runs force is rounded down,
what they would have seen and their ceiling are rounded up: no digit says more than was shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from audit.claims import Relation
from audit.results import AuditResult, printable

__all__ = [
    "COLUMNS",
    "CONFIDENTIAL",
    "NEIGHBORS",
    "VALUES",
    "WARNING",
    "at_least",
    "at_most",
    "cells",
    "line",
    "named",
    "nearest",
    "percent",
    "row",
    "values",
]

CONFIDENTIAL = "CONFIDENTIAL"
WARNING = f"{CONFIDENTIAL}: the databases behind these audits are, and so are events, counts and labels."
NEIGHBORS: dict[Relation, str] = {"add_remove": "{} added or removed", "replace_one": "{} replaced"}
DIGITS = 4
LARGE = 6  # digits before the point, from which powers of ten are shorter
EXACT = 17  # significant digits with which a float is what it is

# What programs read, column by column.
VALUES = (
    "name",
    "mechanism",
    "parameter",
    "promised",
    "delta",
    "relation",
    "unit",
    "distance",
    "adjacency",
    "measured",
    "confidence",
    "detectable",
    "ceiling",
    "verdict",
    "event",
    "witness",
    "size",
    "selection",
    "pair",
    "seed",
    "confidential",
)
# What readers see: the same in fewer and larger pieces.
COLUMNS = (
    "name",
    "mechanism",
    "promised",
    "neighbors: one ...",
    "runs force at least",
    "confidence",
    "would have seen from",
    "ceiling",
    "verdict",
    "event",
    "witness",
    "runs",
    "pair",
    "seed",
    "confidential",
)


def at_least(value: float, digits: int = DIGITS) -> str:
    """Return a lower bound in words: rounded down, so that it stays one.

    Parameters
    ----------
    value : float
        Not NaN.
    digits : int
        Significant ones; digits before the point all stay, below a million.

    Returns
    -------
    str
        A number that `float` reads, and that is at most the shortest decimal form of `value`.

    Examples
    --------
    >>> at_least(0.99996), at_least(1234.56), at_least(0.0)
    ('0.9999', '1234', '0')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def at_most(value: float, digits: int = DIGITS) -> str:
    """Return an upper bound in words: rounded up, so that it stays one.

    Parameters
    ----------
    value, digits
        As in `at_least`.

    Returns
    -------
    str
        A number that `float` reads, and that is at least the shortest decimal form of `value`.

    Examples
    --------
    >>> at_most(1.01504), at_most(0.00001), at_most(float("inf"))
    ('1.016', '1.000e-05', 'inf')
    """
    return _rounded(value, digits, ROUND_CEILING)


def nearest(value: float, digits: int = DIGITS) -> str:
    """Return a number that somebody chose, such as a promise: rounded to the nearest, without zeros at its end.

    Parameters
    ----------
    value, digits
        As in `at_least`.

    Returns
    -------
    str
        A number that `float` reads.

    Examples
    --------
    >>> nearest(1.0), nearest(1 / 3), nearest(1e-6)
    ('1', '0.3333', '1e-06')
    """
    words, exponent, power = _rounded(value, digits, ROUND_HALF_EVEN).partition("e")
    return (words.rstrip("0").rstrip(".") if "." in words else words) + exponent + power


def percent(confidence: float) -> str:
    """Return a confidence in percent, with as many nines as it has.

    Parameters
    ----------
    confidence : float
        In (0, 1).

    Returns
    -------
    str
        Rounded down, to four significant digits of what is left to certainty.

    Examples
    --------
    >>> percent(0.95), percent(1 - 0.05 / 3), percent(1 - 1e-9)
    ('95%', '98.333%', '99.9999999%')
    """
    return f"{(100 * _sure(confidence)).normalize():f}%"


def values(result: AuditResult, name: str | None = None) -> dict[str, Any]:
    """Return what a program reads of an audit: numbers as they are, words in one line without control characters.

    Parameters
    ----------
    result : AuditResult
        The audit.
    name : str, optional
        What to call it; default: its mechanism.

    Returns
    -------
    dict
        In the order of the columns; None where there is nothing. The seed is text: it may be too large for a column of
        numbers.
    """
    claim = result.claim
    return {
        "name": printable(result.mechanism if name is None else name),
        "mechanism": printable(result.mechanism),
        "parameter": claim.parameter,
        "promised": claim.budget,
        "delta": claim.parameters.get("delta"),
        "relation": result.relation,
        "unit": result.unit,
        "distance": result.distance,
        "adjacency": result.adjacency,
        "measured": result.measured.budget,
        "confidence": result.confidence,
        "detectable": result.detectable,
        "ceiling": result.ceiling,
        "verdict": result.verdict,
        "event": printable(result.event),
        "witness": printable(result.witness.removeprefix("; ")),
        "size": result.size,
        "selection": result.selection,
        "pair": printable(result.pair),
        "seed": "" if result.seed_entropy is None else str(result.seed_entropy),
        "confidential": result.confidential,
    }


def cells(result: AuditResult, name: str | None = None) -> dict[str, str]:
    """Return `values` as they are written everywhere: the one place where numbers are rounded.

    Parameters
    ----------
    result : AuditResult
        The audit.
    name : str, optional
        What to call it; default: its mechanism.

    Returns
    -------
    dict
        With the keys of `values`. Words are hostile text still: whoever shows them escapes them.
    """
    found = values(result, name)
    promised, measured, detectable = _losses(result)
    return {
        **{key: "" if value is None else str(value) for key, value in found.items()},
        "promised": promised,
        "delta": "" if found["delta"] is None else nearest(found["delta"]),
        "measured": measured,
        "confidence": f"{_sure(result.confidence):f}",
        "detectable": detectable,
        "ceiling": at_most(result.ceiling),
        "confidential": CONFIDENTIAL if result.confidential else "",
    }


def row(result: AuditResult, name: str | None = None) -> dict[str, str]:
    """Return the cells of one audit as a reader sees them.

    Parameters
    ----------
    result : AuditResult
        The audit.
    name : str, optional
        What to call it; default: its mechanism.

    Returns
    -------
    dict
        With the keys `COLUMNS`, which are the headings. Words are hostile text still: whoever shows them escapes them.
    """
    said = cells(result, name)
    group = f", {said['distance']} steps apart" if result.distance > 1 else ""
    declared = " (declared)" if result.adjacency == "declared" else ""
    return {
        "name": said["name"],
        "mechanism": said["mechanism"],
        "promised": f"{said['parameter']} {said['promised']}" + (f", delta {said['delta']}" if said["delta"] else ""),
        "neighbors: one ...": NEIGHBORS[result.relation].format(result.unit) + group + declared,
        "runs force at least": said["measured"],
        "confidence": percent(result.confidence),
        "would have seen from": said["detectable"],
        "ceiling": said["ceiling"],
        "verdict": said["verdict"],
        "event": said["event"],
        "witness": said["witness"],
        "runs": f"{said['size']}, {said['selection']} of them to choose the event",
        "pair": said["pair"],
        "seed": said["seed"],
        "confidential": said["confidential"],
    }


def line(result: AuditResult) -> str:
    """Return an audit as one line for a memo.

    Parameters
    ----------
    result : AuditResult
        The audit.

    Returns
    -------
    str
        Without control characters.
    """
    said = row(result)
    relation = "add/remove" if result.claim.relation == "add_remove" else "replace one"
    seen = "nothing" if math.isinf(result.detectable) else said["would have seen from"]
    pair = ("on the caller's word, " if result.adjacency == "declared" else "") + said["pair"]
    witness = f"; {said['witness']}" if said["witness"] else ""
    return printable(
        f"{said['confidential']}{': ' if said['confidential'] else ''}{said['mechanism']}: promised {said['promised']} "
        f"({relation}), {result.size} runs force at least {said['runs force at least']} at {said['confidence']}: "
        f"{said['verdict']}, {seen} would have been seen ({pair}; {said['event']}{witness}; "
        f"searched: {result.searched})"
    )


def named(results: Sequence[AuditResult], names: Sequence[str] | None) -> list[tuple[AuditResult, str]]:
    """Return audits with what to call each.

    Parameters
    ----------
    results : sequence of AuditResult
        The audits.
    names : sequence of str or None
        As many, or None for their mechanisms.

    Returns
    -------
    list of (AuditResult, str)
        In the same order.

    Raises
    ------
    ValueError
        If there are not as many names as results.
    """
    given = [result.mechanism for result in results] if names is None else list(names)
    if len(given) != len(results):
        raise ValueError(f"names must be as many as results, got {len(given)} and {len(results)}")
    return list(zip(results, given, strict=True))


def _losses(result: AuditResult) -> tuple[str, str, str]:
    """Return promise, measurement and what would have been seen, with digits enough for the verdict to follow."""
    promised, measured, seen = result.claim.budget, result.measured.budget, result.detectable
    for digits in range(DIGITS, EXACT + 1):
        said = nearest(promised, digits)
        forced = _on_its_side(measured, promised, float(said), at_least)
        spotted = _on_its_side(seen, 2 * promised, 2 * float(said), at_most)
        if forced and spotted:
            break
    return said, forced, spotted


def _on_its_side(loss: float, limit: float, said: float, write: Callable[[float, int], str]) -> str:
    """Return a loss with as few digits as show whether it exceeds a limit as that is said; nothing if none do."""
    written = (write(loss, digits) for digits in range(DIGITS, EXACT + 1))
    return next((words for words in written if (float(words) > said) == (loss > limit)), "")


def _rounded(value: float, digits: int, rounding: str) -> str:
    exact = Decimal(repr(float(value)))  # the shortest decimal form, which is what files hold: 0.1 is not a bit more
    if not exact.is_finite() or not exact:
        return "0" if exact == 0 else str(float(value))
    whole = exact.adjusted() + 1 if 0 <= exact.adjusted() < LARGE else 0  # digits before the point are no noise
    rounded = Context(prec=max(digits, whole), rounding=rounding).plus(exact)
    size = rounded.adjusted()
    if -DIGITS <= size < LARGE:
        return f"{rounded:.{max(digits - 1 - size, 0)}f}"
    mantissa, _, power = f"{rounded:.{digits - 1}e}".partition("e")
    return f"{mantissa}e{int(power):+03d}"  # as Python writes it


def _sure(confidence: float) -> Decimal:
    """Return a confidence whose shortfall from certainty is rounded up: it is never a certainty."""
    shortfall = 1 - Decimal(repr(float(confidence)))
    return (1 - Context(prec=DIGITS, rounding=ROUND_CEILING).plus(shortfall)).normalize()
