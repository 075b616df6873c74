"""Format the numbers of an audit for all views. Only this module rounds; bounds are rounded to stay valid."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from audit.claims import Relation
from audit.io.text import printable

__all__ = [
    "CAUTION",
    "COLUMNS",
    "CONFIDENTIAL",
    "NEIGHBORS",
    "WARNING",
    "at_least",
    "at_most",
    "line",
    "missing_power",
    "nearest",
    "number_of",
    "percent",
    "plain_number",
    "row",
    "texts",
]

CONFIDENTIAL = "CONFIDENTIAL"
WARNING = f"{CONFIDENTIAL}: results of confidential data. `plaudit report --public` leaves out what discloses them."
CAUTION = (
    "A pass is no proof: a loss below the minimum detectable loss (power 0.8), or in other events, may stay hidden."
)
NEIGHBORS: dict[Relation, str] = {"add_remove": "{} added or removed", "replace_one": "{} replaced"}
DIGITS = 4
LARGE = 6  # digits before the point; larger numbers are written with an exponent
EXACT = 17  # significant digits that determine a float

# Columns of a table with their headings; some merge several entries of a summary.
COLUMNS = {
    "name": "name",
    "mechanism": "mechanism",
    "promised": "promised",
    "neighbors": "neighbors differ by one",
    "measured": "lower bound",
    "confidence": "confidence",
    "detectable": "minimum detectable loss",
    "ceiling": "largest possible bound",
    "verdict": "verdict",
    "event": "event",
    "witness": "witness",
    "runs": "runs",
    "pair": "pair",
    "seed": "seed",
    "confidential": "confidential",
}


def number_of(number: int, what: str) -> str:
    """Return a number with its noun: 1 audit, 12,000 audits."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def plain_number(value: float) -> float | str:
    """Return a number, not NaN, for JSON; infinity becomes the string "inf" or "-inf"."""
    return str(float(value)) if math.isinf(value) else value


def at_least(value: float, digits: int = DIGITS) -> str:
    """Format a lower bound, rounded down so that it stays valid."""
    return _rounded(value, digits, ROUND_FLOOR)


def at_most(value: float, digits: int = DIGITS) -> str:
    """Format an upper bound, rounded up so that it stays valid."""
    return _rounded(value, digits, ROUND_CEILING)


def nearest(value: float, digits: int = DIGITS) -> str:
    """Format a chosen number, such as a promise, rounded to nearest and without trailing zeros."""
    words, exponent, power = _rounded(value, digits, ROUND_HALF_EVEN).partition("e")
    return (words.rstrip("0").rstrip(".") if "." in words else words) + exponent + power


def percent(confidence: float) -> str:
    """Format a confidence in percent; it is rounded down and keeps all its nines."""
    return f"{(100 * _rounded_confidence(confidence)).normalize():f}%"


def texts(summary: Mapping[str, Any]) -> dict[str, str]:
    """Format all values of a summary as text. Every view uses it, so that the same number looks the same."""
    promised, measured, detectable = _losses(summary["promised"], summary["measured"], summary["detectable"])
    return {
        **{key: "" if value is None else str(value) for key, value in summary.items()},
        "promised": promised,
        "delta": "" if summary["delta"] is None else nearest(summary["delta"]),
        "measured": measured,
        "confidence": f"{_rounded_confidence(summary['confidence']):f}",
        "detectable": "not announced" if summary.get("far") else detectable,
        "ceiling": at_most(summary["ceiling"]),
        "confidential": CONFIDENTIAL if summary["confidential"] else "",
    }


def row(summary: Mapping[str, Any]) -> dict[str, str]:
    """Format a summary for a table with the keys of `COLUMNS`; text is not yet made safe for the terminal."""
    cells = texts(summary)
    group = f", the databases {cells['distance']} steps apart" if summary["distance"] > 1 else ""
    declared = " (declared)" if summary["adjacency"] == "declared" else ""
    delta = f", delta {cells['delta']}" if cells["delta"] else ""
    merged = {
        "promised": f"{cells['parameter']} {cells['promised']}{delta}",
        "neighbors": NEIGHBORS[summary["relation"]].format(summary["unit"]) + group + declared,
        "confidence": percent(summary["confidence"]),
        "runs": f"{cells['size']}, {cells['selection']} of them to choose the event",
    }
    return {key: merged.get(key, cells.get(key, "")) for key in COLUMNS}


def line(summary: Mapping[str, Any], searched: str, notes: Sequence[str] = ()) -> str:
    """Return an audit in one line, with the events searched, its power and its notes."""
    cells = row(summary)
    secret = f"{CONFIDENTIAL}: " if summary["confidential"] else ""
    relation = "add/remove" if summary["relation"] == "add_remove" else "replace one"
    pair = f"{cells['pair']}; " if cells["pair"] else ""
    declared = "on the caller's word, " if summary["adjacency"] == "declared" else ""
    witness = f"; {cells['witness']}" if cells["witness"] else ""
    more = {"power": summary.get("power", ""), "note": "; ".join(notes)}
    besides = "".join(f"; {word}: {text}" for word, text in more.items() if text)
    return printable(
        f"{secret}{cells['mechanism']}: {cells['verdict']}: promised {cells['promised']} ({relation}), lower bound "
        f"{cells['measured']} at {cells['confidence']} confidence from {summary['size']} runs, minimum detectable loss "
        f"{cells['detectable']} ({declared}{pair}{cells['event']}{witness}; searched: {searched}{besides})"
    )


def missing_power(summary: Mapping[str, Any]) -> str:
    """Return a label for a chart: the loss that an audit without power could detect; empty for other audits."""
    if summary["verdict"] != "no power" or not 0 < summary["promised"] < math.inf:
        return ""
    if summary["detectable"] == math.inf:
        return "no loss is detectable"
    return f"detectable: {at_most(summary['detectable'] / summary['promised'], 2)} x the promise"


def _losses(promised: float, measured: float, detectable: float) -> tuple[str, str, str]:
    """Format promise, lower bound and minimum detectable loss with enough digits for the verdict to follow."""
    for digits in range(DIGITS, EXACT + 1):
        promise = nearest(promised, digits)
        bound = _on_its_side(measured, promised, float(promise), at_least)
        least = _on_its_side(detectable, 2 * promised, 2 * float(promise), at_most)
        if bound and least:
            break
    return promise, bound, least


def _on_its_side(loss: float, limit: float, promise: float, write: Callable[[float, int], str]) -> str:
    """Format a loss with the fewest digits that keep its order to the promise; empty if no digits do."""
    written = (write(loss, digits) for digits in range(DIGITS, EXACT + 1))
    return next((words for words in written if (float(words) > promise) == (loss > limit)), "")


def _rounded(value: float, digits: int, rounding: str) -> str:
    exact = Decimal(repr(float(value)))  # the shortest decimal form, as in files: 0.1 is exactly 0.1
    if not exact.is_finite() or not exact:
        return "0" if exact == 0 else str(float(value))
    integral = exact.adjusted() + 1 if 0 <= exact.adjusted() < LARGE else 0  # keep all digits before the point
    rounded = Context(prec=max(digits, integral), rounding=rounding).plus(exact)
    size = rounded.adjusted()
    if -DIGITS <= size < LARGE:
        return f"{rounded:.{max(digits - 1 - size, 0)}f}"
    mantissa, _, power = f"{rounded:.{digits - 1}e}".partition("e")
    return f"{mantissa}e{int(power):+03d}"  # as Python writes it


def _rounded_confidence(confidence: float) -> Decimal:
    shortfall = 1 - Decimal(repr(float(confidence)))
    return (1 - Context(prec=DIGITS, rounding=ROUND_CEILING).plus(shortfall)).normalize()
