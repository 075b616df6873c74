"""A release: validate, tabulate, measure once, derive, check, and write one folder a table.

The flow is the paper's; formats, codes and the order of truncation are the production release's. Where the two differ:

1. Proofs and budgets follow the paper: nine queries, each with its own noise, sigma^2 = Delta^2 / (2 rho) with
   Delta = 2 tau + 2 for persons and 2 for households; the production code reaches the same numbers in one session.
2. The paper has two frames and knows a person's state; the production layout has a third, public frame of places, and a
   person is where the unit is. Which units there are, where, and whether they are group quarters, is public with it.
3. The paper's units are occupied. Here vacant units and group quarters are in the frame. The denominators' filters
   leave them out; the numerators have no such filter, and count persons by their record type: that makes a difference
   only on frames that contradict themselves, which the full validation refuses.
4. PH4's filter of households is production's, ``HHT <= '3'``, which also admits a household type of 0; PH4 and PH6 have
   no filter on the persons' record type. On consistent households neither matters.
5. PH6's last age band is 12 to 17 years; the paper's table 6 says "12 and 17".
6. The level of Hispanic and White-not-Hispanic is ``H,I`` in files (H-I in the paper); PH2's cells 6 and 7 are
   cohabiting couple households (the paper: families).
7. Margins of error behind table 10 are 1.645 sigma, not the printed 1.64: see `algorithms.phsafe.explore`.
8. Pure privacy, with two-sided geometric noise, is in production only.
9. Variances are those of the noise, as floats: an owner's in PH8_num is twice that of a cell of PH7. The sum of two
   discrete Gaussians is called ``Discrete Gaussian``, which it is not exactly.
10. Where a ``MAFID`` has several rows of units, the paper filters them first and then drops what is repeated; here, as
    in production, repeated units are dropped first. Validation refuses them.
11. The proof of theorem 2 bounds by rho / 2 what its statement bounds by rho; theorem 3 takes from stability that one
    cell changes, where several may. Theorems 3 and 4 hold in the paper's model all the same: see
    `algorithms.phsafe.neighbors.stability` and `algorithms.phsafe.neighbors.worst`.

Unlike production: columns are found by name, households that contradict themselves are refused before anything is
counted (production stops in the middle of some tables, depending on the data), unmatched rows are in no cell, and a
release is whole or absent. Time, and what validation says, depend on the data and are outside every promise.

References
----------
.. [1] Sexton et al., "PHSafe: Disclosure Avoidance for the 2020 Census Supplemental Demographic and Housing
   Characteristics File (S-DHC)", 2024, algorithms 1 to 5.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from algorithms.noise import DiscreteGaussian, Rng
from algorithms.phsafe.budget import Config, Settings, noise_parameters, read_config
from algorithms.phsafe.columns import columns_of
from algorithms.phsafe.ledger import Ledger
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.postprocessing.postprocess import (
    COUNTS,
    Z_MARGIN,
    interval_coverage,
    postprocess,
    totals_outside,
)
from algorithms.phsafe.tables import DERIVED, LEVEL_OF, PUBLISHED, QUERIES, split_level
from algorithms.phsafe.tabulation.tabulate import Tabulation, tabulation
from algorithms.phsafe.tabulation.validate import Validation
from algorithms.tables.columns import Columns
from algorithms.tables.files import whole_file
from algorithms.tables.frames import Frame
from algorithms.tables.opening import Engine
from algorithms.tables.release import Published, published
from audit.io.files import make_folder
from audit.io.text import from_cell

__all__ = ["Release", "check_release", "lay_out", "read_release", "release"]

TOLERANCE = 1e-6  # relative, of a variance: production's
MARGIN = f"COUNT plus or minus {Z_MARGIN} times the square root of VARIANCE, rounded up, holds any true count in 90%"


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Published):
    """Noisy tables in the production layout: see `algorithms.phsafe.columns`."""

    config: Config
    states: tuple[str, ...]
    tables: Mapping[str, Frame]
    with_published: bool = False  # whether what `published` returns is written too

    @property
    def about(self) -> dict[str, Any]:
        """What made the release: whether its noise is secure."""
        return {
            "noise": self.noise,
            "neighbors": "one person added or removed (add_remove), the paper's model",
            "promise": self.ledger.unbounded.to_dict(),
        }

    @property
    def ledger(self) -> Ledger:
        """What the release promises to lose at most."""
        return Ledger(self.config)

    def published(self) -> dict[str, Frame]:
        """Return PH1 to PH8 after post-processing, from the noisy tables alone; see `postprocess`."""
        caps = {table: self.config.tau[query] for table, query in (("PH1", "PH1_num"), ("PH5", "PH4"), ("PH8", "PH7"))}
        return postprocess(self.tables, cap=caps)

    @cached_property
    def files(self) -> Mapping[str, Frame]:
        """The noisy tables, each in a folder of its own, and the published ones in one, by their paths."""
        files = {f"{name}/{name}.csv": table for name, table in self.tables.items()}
        if self.with_published:
            files |= {f"published/{name}.csv": table for name, table in self.published().items()}
        return files

    @property
    def columns(self) -> Columns:
        """What the noisy and the published tables hold."""
        published = {
            f"published/{name}.csv": f"{self._covered([name])}, and the total of small cells in fewer; {MARGIN}"
            for name in self._counted
        }
        return {file: columns_of(Path(file).stem, table, published.get(file)) for file, table in self.files.items()}

    @property
    def coverage(self) -> str:
        """How often published intervals hold the truth, from the noise alone, in words; nothing without counts."""
        if not self._counted:
            return ""
        tables = {name: self.files[f"published/{name}.csv"] for name in self._counted}
        outside, totals = totals_outside(self.tables, tables)
        return (
            f"The published 90% interval of a cell {self._covered(self._counted)}.\n"
            f"Totals add up the errors of their cells: {outside:,} of {totals:,} published totals are outside the 90% "
            f"interval of their noisy sum.\n{MARGIN}, and so do sums of COUNT with sums of VARIANCE."
        )

    @property
    def _counted(self) -> list[str]:
        """The published tables of counts."""
        return [name for name in COUNTS if f"published/{name}.csv" in self.files]

    def _covered(self, names: Iterable[str]) -> str:
        """Return how often the interval of a cell holds a true count of 0, by the variances of some tables."""
        variances = {float(variance) for name in names for variance in self.tables[name]["VARIANCE"]}
        shares = sorted({math.floor(100 * interval_coverage(0, variance)) for variance in variances})
        few = " to ".join(f"{share}%" for share in dict.fromkeys((shares[0], shares[-1])))
        return (
            f"holds a true count of 0 in {few} of releases, and one of at least half the noise's standard deviation "
            "in 90%"
        )

    def write_tables(self, staged: Path) -> None:
        """Write each table."""
        for name, table in self.files.items():
            make_folder((staged / name).parent)
            table.to_csv(staged / name, separator="|")

    def write_record(self, staged: Path) -> None:
        """Write the settings, from which the ledger follows, beside the record; check all that was written."""
        super().write_record(staged)
        with whole_file(staged / "config.json") as file:
            json.dump(self.config.to_dict(), file, indent=4)
        check_release(read_release(staged), self.config, self.states)


@published
def release(
    persons: Any,
    units: Any,
    geo: Any,
    config: Settings,
    *,
    out: str | os.PathLike[str] | None = None,
    published: bool = False,
    reading: Mapping[str, Any] = MappingProxyType({}),
    rng: Rng = "secure",
    engine: str | Engine = "duckdb",
    partitions: int = 1,
    validation: Validation = "full",
) -> Release:
    """Run PHSafe.

    Parameters
    ----------
    persons, units, geo : path or frame
        The three frames, as `algorithms.phsafe.tabulation.tabulate.tabulate` takes them.
    config : path-like, str, mapping or Config
        A file in the Bureau's format or its content, ``"us"`` or ``"pr"``.
    out : path-like, optional
        Folder to write: it must not exist, or must be empty.
    published : bool
        Whether to write the post-processed tables too.
    reading : mapping
        How the columns of the three files were made, for the record.
    rng : "secure" or numpy Generator
        The default, the operating system's entropy, is for releases; a seeded generator is for simulations.
    engine, partitions, validation
        As in `tabulate`.

    Returns
    -------
    Release
        Those of the eleven tables that have a budget.

    Raises
    ------
    ValueError
        If the settings or (`InvalidHouseholds`) the data break a rule, or the folder is not empty.
    """
    settings = read_config(config)
    if published and settings.privacy_definition != "zcdp":
        raise ValueError("published must be false for puredp: post-processing is for discrete Gaussian noise")
    DiscreteGaussian(1.0).sample(0, rng)  # a source of noise that is missing is told before the work, not after it
    options: dict[str, Any] = {"engine": engine, "partitions": partitions, "validation": validation}
    exact = tabulation(persons, units, geo, config=settings, **options)
    if not exact.states:
        raise ValueError("geo must hold a housing unit (RTYPE 2) at least, got none: there is no state to publish")
    tables = lay_out(PHSafe(settings).measured(exact, rng), settings)
    return Release(config=settings, states=exact.states, tables=tables, with_published=published, reading=reading)


def read_release(folder: str | os.PathLike[str]) -> dict[str, Frame]:
    """Read the tables of a release that was written."""
    tables = {}
    for name in PUBLISHED:
        if not (Path(folder) / name).is_dir():
            continue
        files = sorted((Path(folder) / name).glob("*.csv"))
        if len(files) != 1:
            raise ValueError(f"{name} must hold one .csv file, got {len(files)}")
        try:
            with files[0].open(encoding="utf-8", newline="") as file:
                header, *rows = (list(map(from_cell, row)) for row in csv.reader(file, delimiter="|"))
            if len(set(header)) < len(header):
                raise ValueError(f"columns of the same name: {', '.join(header)}")
        except (ValueError, csv.Error) as error:  # empty, not UTF-8, or a value beyond reason
            raise ValueError(f"{name} must be text below a line of names, got {error}") from error
        if wrong := [row for row in rows if len(row) != len(header)]:
            raise ValueError(f"{name} must have {len(header)} values a row, got {len(wrong[0])}")
        texts = {column: [row[place] for row in rows] for place, column in enumerate(header)}
        try:
            numbers = {"COUNT": np.array(texts["COUNT"], np.int64), "VARIANCE": np.array(texts["VARIANCE"], np.float64)}
        except (KeyError, ValueError, OverflowError) as error:
            raise ValueError(f"{name} must have whole COUNTs and numbers as VARIANCE: {error}") from error
        tables[name] = Frame({**texts, **numbers})
    return tables


def check_release(tables: Mapping[str, Frame], config: Config, states: tuple[str, ...]) -> None:
    """Check what was written against what was asked for: tables, columns, rows, states, noise and variances."""
    expected = lay_out(_zeros(config, states), config)
    if list(tables) != list(expected):
        raise ValueError(f"a release must hold {', '.join(expected)}, got {', '.join(tables) or 'nothing'}")
    if outside := set(states) - set(config.states):
        raise ValueError(f"states must be in the filter, got {min(outside)}")
    for name, right in expected.items():
        table = tables[name]
        if table.columns != right.columns:
            raise ValueError(f"{name} must have the columns {', '.join(right.columns)}, got {', '.join(table.columns)}")
        keys = [column for column in right.columns if column not in ("COUNT", "VARIANCE")]
        variances, known = (
            dict(zip(zip(*(t[key] for key in keys), strict=True), t["VARIANCE"], strict=True)) for t in (table, right)
        )
        if len(table) != len(right) or variances.keys() != known.keys():
            raise ValueError(f"{name} must have each of {len(right)} cells once, got {len(table)} rows")
        for key, variance in known.items():
            if not abs(variances[key] - variance) <= TOLERANCE * variance:
                raise ValueError(f"{name} {' '.join(key)}: VARIANCE must be {variance}, got {variances[key]}")
    for name, (source, sums) in DERIVED.items():
        if name in tables:
            _check_sums(name, tables[name], source, tables[source], sums)


def _check_sums(name: str, made: Frame, source: str, measured: Frame, sums: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a numerator that is not the sum of the noisy cells it is made of."""
    places = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
    counts = {
        (table, *key): count
        for table, frame in ((name, made), (source, measured))
        for *key, count in zip(*(frame[column] for column in (*places, f"{table}_DATA_CELL", "COUNT")), strict=True)
    }
    for (table, *place, cell), count in counts.items():
        if table == name and count != (total := sum(counts[source, *place, part] for part in sums[cell])):
            raise ValueError(f"{name} {' '.join(place)} {cell}: COUNT must be {total}, as in {source}, got {count}")


def lay_out(noisy: Tabulation, config: Config) -> dict[str, Frame]:
    """Lay out noisy counts, of some queries or all, and the numerators made from them, as production does."""
    noise = {(table, level): (law, variance) for table, level, _, _, variance, law in noise_parameters(config).rows()}
    frame, tables = noisy.frame(), {}
    for name in dict.fromkeys(frame["TABLE"]):
        rows = frame.where(frame["TABLE"] == name)
        source, sums = DERIVED.get(name, (name, {}))
        levels = [LEVEL_OF[place] for place in zip(rows["REGION_TYPE"], rows["ITERATION_CODE"], strict=True)]
        columns: dict[str, Any] = {column: rows[column] for column in ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")}
        if QUERIES[source].race is None:
            del columns["ITERATION_CODE"]
        columns[f"{name}_DATA_CELL"] = rows["DATA_CELL"]
        columns["COUNT"] = rows["COUNT"]
        columns["NOISE_DISTRIBUTION"] = [noise[source, level][0] for level in levels]
        columns["VARIANCE"] = [  # noise of cells that are added up adds up
            len(sums.get(cell, (cell,))) * noise[source, level][1]
            for cell, level in zip(rows["DATA_CELL"], levels, strict=True)
        ]
        tables[name] = Frame(columns)
    return tables


def _zeros(config: Config, states: tuple[str, ...]) -> Tabulation:
    """Return a tabulation of nobody, which has every row that a release must have."""
    counts = {}
    for table, level, _ in config.budgets():
        kind, iterations = split_level(level)
        regions = 1 if kind == "usa" else len(states)
        counts[table, level] = np.zeros((regions, len(iterations), len(QUERIES[table].cells)), np.int64)
    return Tabulation(states, counts)
