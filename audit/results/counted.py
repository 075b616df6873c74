"""What counts may be, and what bounds read besides: what no runs give, and no method has written, is refused."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from audit.arguments import LARGEST
from audit.results.plain import typed

__all__ = ["check_basis", "check_counts", "check_other"]


class _Basis(TypedDict, total=False):
    """What methods read besides the counts, where they do; one from elsewhere may read more."""

    share: int | float
    hits: int
    rated: int
    regions: int
    look: int
    looks: int | None
    choosing: int
    unseen: int | float
    expected: list[int | float] | None
    shortfalls: list[int | float]
    weights: list[int | float]
    toward: Literal["x", "y"]
    order: int | float
    most: int


class _Other(TypedDict):
    """What is kept of an event that proved less."""

    event: str
    attack: str
    counts: dict[str, dict[str, int]]
    basis: dict[str, Any]
    notes: list[str]
    measured: int | float


def check_counts(counts: dict[str, dict[str, int]]) -> None:
    """Refuse counts that no runs give.

    Raises
    ------
    ValueError
        If they are not of x and y, or guesses and bins are not parts of the runs.
    """
    if counts.keys() != {"x", "y"}:
        raise ValueError(f"counts must be of x and of y, got {', '.join(map(repr, counts)) or 'none'}")
    for name, side in counts.items():
        parts = [count for kind, count in side.items() if kind != "runs"]
        if min([side.get("runs", -1), *parts]) < 0 or sum(parts) > side["runs"]:
            raise ValueError(f"counts on {name} must be parts of its runs, got {str(side)[:80]}")


def check_basis(basis: dict[str, Any]) -> None:
    """Refuse numbers that no method has written: of another type, or too large."""
    typed(_Basis, basis)
    for name, value in basis.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, int | float) and not abs(one) < LARGEST:
                raise ValueError(f"{name} must be finite and below 2**53 in size, got {one!r}")


def check_other(other: dict[str, Any]) -> None:
    """Refuse an event that was counted besides, of which something is missing or no method has written it."""
    typed(_Other, other)
    if missing := _Other.__required_keys__ - other.keys():
        raise ValueError(f"each of others must have {', '.join(sorted(missing))}")
    check_basis(other["basis"])
    check_counts(other["counts"])
