"""Populations: uniform synthetic ones, and the real trees and records bundled in ``data/``."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import LARGEST_EXACT, Hierarchy
from algorithms.schema import Schema, read_specification
from audit.arguments import positive_number

__all__ = ["EXTRACTS", "Extract", "halves", "load", "load_income", "uniform_population"]

HALVES = 1994  # seed of the permutation in `halves`


@dataclass(frozen=True)
class Extract:
    """A bundled extract: its tree has `levels`, the outermost first; `load` can add `cells` below, in order."""

    about: str
    levels: tuple[str, ...]
    cells: tuple[str, ...] = ()


EXTRACTS: Mapping[str, Extract] = MappingProxyType(
    {
        "brazil": Extract(
            about="Brazil, deaths registered in 2019: 1,188,630 people in 5,153 cities of 27 states of 5 regions",
            levels=("region", "state", "city"),
            cells=("month",),
        ),
        "midwest": Extract(
            about="US Midwest, 1990 census: 42,008,942 people by race in 437 counties of 5 states",
            levels=("state", "county", "race"),
        ),
        "morocco": Extract(
            about="Morocco, 2024 census: 36,490,591 people in 1,503 communes of 75 provinces of 12 regions",
            levels=("region", "province", "commune"),
            cells=("area", "sex"),
        ),
    }
)
"""The bundled extracts by name. Sources, licenses and changes: ``data/NOTICE.md``."""


def uniform_population(
    people: int, levels: int, people_per_leaf: float, rng: int | np.random.Generator | np.random.SeedSequence | None
) -> tuple[Hierarchy, NDArray[np.int64]]:
    """Scatter people over a regular tree, each in a leaf drawn uniformly (Flaxman, 2019, section 2.1).

    The people of each area are divided among its children, from the top down, so the running time does not depend on
    the number of people. Every area above the leaves has C children, the largest whole number with ``C**levels *
    people_per_leaf <= people``, so the mean of a leaf is `people_per_leaf` or more.

    Parameters
    ----------
    people, levels : int
        Number of people, at least 1 and less than 2**53, and levels of areas below the root, at least 1.
    people_per_leaf : float
        Smallest mean number of people in a leaf.

    Returns
    -------
    Hierarchy, ndarray of int64, shape (n_leaves,)
        The tree, and the people in each leaf, read-only.
    """
    fanout = _fanout(people, levels, people_per_leaf)
    generator = np.random.default_rng(rng)
    counts = np.array([people], dtype=np.int64)
    for _ in range(levels):
        counts = generator.multinomial(counts, np.full(fanout, 1 / fanout)).reshape(-1)
    counts.flags.writeable = False
    return Hierarchy.regular(fanout, levels), counts


def load(name: str, *, cells: Sequence[str] = ()) -> tuple[Hierarchy, NDArray[np.int64]]:
    """Load the tree of areas and the counts of a bundled extract.

    Parameters
    ----------
    name : str
        A name in `EXTRACTS`: ``"morocco"`` (region > province > commune), ``"midwest"`` (state > county > race: its
        source counts every county by race) or ``"brazil"`` (region > state > city; its people are those who died).
    cells : sequence of str, optional
        Further levels below those: for ``"morocco"`` any of ``("area",)`` (urban or rural), ``("sex",)`` and
        ``("area", "sex")``; for ``"brazil"`` ``("month",)``, ``"1"`` to ``"12"``. Default: none.

    Returns
    -------
    Hierarchy, ndarray of int64, shape (n_leaves,)
        The tree with the source's names, without cells that an area does not have, and the people in each leaf,
        read-only. With ``"sex"`` the counts of 4 small communes are derived from published totals; for 2 of them (1,598
        people) they are estimates: see ``data/NOTICE.md``.
    """
    if name not in EXTRACTS:
        raise ValueError(f"name must be one of {', '.join(map(repr, EXTRACTS))}, got {name!r}")
    extract = EXTRACTS[name]
    choices = [choice for size in range(len(extract.cells) + 1) for choice in combinations(extract.cells, size)]
    if tuple(cells) not in choices:
        raise ValueError(f"cells of {name!r} must be one of {', '.join(map(str, choices))}, got {cells!r}")
    return _loaded(name, tuple(cells))


@cache
def _loaded(name: str, cells: tuple[str, ...]) -> tuple[Hierarchy, NDArray[np.int64]]:
    totals: dict[tuple[str, ...], int] = {}
    packed = resources.files("algorithms").joinpath("data", f"{name}.csv.gz").read_bytes()
    for row in csv.DictReader(gzip.decompress(packed).decode("utf-8").splitlines()):
        leaf = tuple(row[level] for level in (*EXTRACTS[name].levels, *cells))
        totals[leaf] = totals.get(leaf, 0) + int(row["people"])
    counts = np.fromiter(totals.values(), np.int64, len(totals))
    counts.flags.writeable = False
    return Hierarchy.from_codes(*zip(*totals, strict=True)), counts


@cache
def load_income() -> tuple[Schema, NDArray[np.uint8]]:
    """Load KDD Census-Income: persons of the Current Population Survey of 1994 and 1995, by 37 fields.

    The five fields with more than 100 values are left out: wage per hour, capital gains and losses, dividends, and the
    weight of the record in the survey. Source, license and changes: ``data/NOTICE.md``.

    Returns
    -------
    Schema, ndarray of uint8, shape (199523, 37)
        Fields and their values, and for each record and field the index of its value, read-only.
    """
    data = resources.files("algorithms").joinpath("data")
    with resources.as_file(data.joinpath("census_income.json")) as path:
        schema = read_specification(path)
    packed = data.joinpath("census_income.npy.xz").read_bytes()
    codes: NDArray[np.uint8] = np.load(io.BytesIO(lzma.decompress(packed)), allow_pickle=False)
    codes.flags.writeable = False
    return schema, codes


def halves(records: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Divide records, shape (n, ...), n >= 2, by a fixed random permutation: a public half, and a half to protect."""
    array = np.asarray(records)
    if array.ndim == 0 or len(array) < 2:
        raise ValueError(f"records must be at least 2, got shape {array.shape}")
    order = np.random.default_rng(HALVES).permutation(len(array))
    return array[np.sort(order[::2])], array[np.sort(order[1::2])]


def _fanout(people: int, levels: int, people_per_leaf: float) -> int:
    """Return the largest whole C with ``C**levels * people_per_leaf <= people``, in exact arithmetic."""
    for name, value in (("people", people), ("levels", levels)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} must be an integer, got {value!r}")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if people >= LARGEST_EXACT:
        raise ValueError(f"people must be less than 2**53, got {people}")
    positive_number("people_per_leaf", people_per_leaf)
    is_number = isinstance(people_per_leaf, int | np.integer)
    leaves = int(people) // Fraction(int(people_per_leaf) if is_number else float(people_per_leaf))
    fanout = 0  # integer root, bit by bit
    for bit in reversed(range(leaves.bit_length() // int(levels) + 1)):
        if (fanout | 1 << bit) ** int(levels) <= leaves:
            fanout |= 1 << bit
    if fanout < 1:
        raise ValueError(f"people_per_leaf must not exceed people, {people}, got {people_per_leaf}")
    return fanout
