"""A release: validate, tabulate, measure once, derive, check, and write one folder a table.

The algorithm is the paper's; formats, codes and the order of truncation are those of the production release.
``docs/papers.md`` lists results that differ from the paper's. Differences of the paper and production, and choices:

1. Proofs and budgets follow the paper; the production code reaches the same numbers in one session.
2. The paper has two frames, and persons have a state. The production layout has a third, public frame of places; a
   person's state is that of the unit. So the list of units, their places and group quarters are public.
3. The paper's units are occupied. Here the frame also has vacant units and group quarters. The denominators filter them
   out; the numerators have no such filter, and count persons by their record type. This makes a difference only for
   contradictory frames, which the full validation refuses.
4. PH4's filter of households is production's, ``HHT <= '3'``, which also admits a household type of 0; PH4 and PH6 have
   no filter on the persons' record type. For consistent households neither makes a difference.
5. The level of Hispanic and White-not-Hispanic is ``H,I`` in files (H-I in the paper).
6. Pure privacy, with two-sided geometric noise, is in production only.
7. Variances are those of the noise, as floats: an owner's in PH8_num is twice that of a cell of PH7. The sum of two
   discrete Gaussians is named ``Discrete Gaussian``, although it is so only approximately.
8. If a ``MAFID`` has several rows of units, the paper filters them first and then drops repeated units; here, as in
   production, repeated units are dropped first. Validation refuses them.

Unlike production: columns are found by name, contradictory households are refused before anything is counted
(production stops in the middle of some tables, depending on the data), unmatched rows are in no cell, and a release is
written completely or not at all. Running time and validation messages depend on the data; no promise covers them.

References
----------
.. [1] Sexton et al., "PHSafe: Disclosure Avoidance for the 2020 Census Supplemental Demographic and Housing
   Characteristics File (S-DHC)", 2024, algorithms 1 to 5.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from algorithms.noise import Rng
from algorithms.phsafe.budget import Config, Settings, read_config
from algorithms.phsafe.columns import columns_of
from algorithms.phsafe.layout import check_release, lay_out
from algorithms.phsafe.ledger import Ledger
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.postprocessing.postprocess import (
    COUNTS,
    Z_MARGIN,
    caps,
    interval_coverage,
    postprocess,
    totals_outside,
)
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.release.engine import Published, TableFile, publishing
from algorithms.release.frames import Frame
from algorithms.release.spark import Engine

__all__ = ["Release", "described", "release"]

MARGIN = f"COUNT plus or minus {Z_MARGIN} times the square root of VARIANCE, rounded up, holds any true count in 90%"


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Published):
    """Noisy tables in the production layout (see `algorithms.phsafe.columns`), and the published tables, if any.

    `published` has PH1 to PH8 after post-processing, from the noisy tables alone; see `postprocess`. `coverage` is a
    text on the coverage of published intervals, as far as it depends on the noise; it is empty without counts.
    """

    config: Config
    states: tuple[str, ...]
    tables: Mapping[str, Frame]
    published: Mapping[str, Frame]
    coverage: str

    def write(self, staged: Path) -> None:
        """Write the release, and check the written files."""
        super().write(staged)
        check_release(staged, self.tables, self.config, self.states)


def described(
    config: Config,
    states: tuple[str, ...],
    tables: Mapping[str, Frame],
    *,
    published: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> Release:
    """Return the release of noisy tables: its files, one folder a table, and its texts."""
    after = postprocess(tables, cap=caps(config.tau)) if published else {}
    files = {
        f"{name}/{name}.csv": TableFile(columns_of(name, table), list(table.rows())) for name, table in tables.items()
    }
    for name, table in after.items():
        words = (
            f"{_covered([tables[name]])}, and the total of small cells in fewer; {MARGIN}" if name in COUNTS else None
        )
        files[f"published/{name}.csv"] = TableFile(columns_of(name, table, words), list(table.rows()))
    coverage = _coverage(tables, {name: after[name] for name in COUNTS if name in after})
    rows, number = sum(map(len, (*tables.values(), *after.values()))), len(tables) + len(after)
    more = f", {len(after)} of them after post-processing" if after else ""
    return Release(
        claim=Ledger(config).unbounded,
        files=files,
        texts={"config.json": json.dumps(config.to_dict(), indent=4)},  # the ledger can be computed from it
        ledger=Ledger(config),
        summary=f"\n{coverage}\n" * bool(coverage) + f"\n{rows:,} rows in {number} tables{more}",
        about={"neighbors": "one person added or removed (add_remove), the paper's model"},
        separator="|",
        reading=reading,
        config=config,
        states=states,
        tables=tables,
        published=after,
        coverage=coverage,
    )


def _coverage(tables: Mapping[str, Frame], counted: Mapping[str, Frame]) -> str:
    """Return a text on the coverage of published intervals of counts."""
    if not counted:
        return ""
    outside, totals = totals_outside(tables, counted)
    return (
        f"The published 90% interval of a cell {_covered([tables[name] for name in counted])}.\n"
        f"Totals add up the errors of their cells: {outside:,} of {totals:,} published totals are outside the 90% "
        f"interval of their noisy sum.\n{MARGIN}, and so do sums of COUNT with sums of VARIANCE."
    )


def _covered(tables: Iterable[Frame]) -> str:
    """Return a text on the coverage of cells' intervals at a true count of 0, for the variances of some tables."""
    variances = {float(variance) for table in tables for variance in table["VARIANCE"]}
    shares = sorted({math.floor(100 * interval_coverage(0, variance)) for variance in variances})
    few = " to ".join(f"{share}%" for share in dict.fromkeys((shares[0], shares[-1])))
    return (
        f"holds a true count of 0 in {few} of releases, and one of at least half the noise's standard deviation in 90%"
    )


def release(
    persons: Any,
    units: Any,
    geo: Any,
    config: Settings,
    *,
    out: str | os.PathLike[str] | None = None,
    published: bool = False,
    reading: Mapping[str, Any] | None = None,
    rng: Rng = "secure",
    engine: str | Engine = "duckdb",
    partitions: int = 1,
) -> Release:
    """Run PHSafe on the frames of `tabulate`, with settings that `read_config` reads.

    The folder `out` must be new or empty; with `published` it gets the post-processed tables too. `reading` describes
    for the record how columns were made. A seeded generator as `rng` is for simulations.
    """
    settings = read_config(config)
    if published and settings.privacy_definition != "zcdp":
        raise ValueError("published must be false for puredp: post-processing is for discrete Gaussian noise")
    options: dict[str, Any] = {"engine": engine, "partitions": partitions}
    with publishing(out, rng) as publish:
        exact = tabulation(persons, units, geo, config=settings, **options)
        if not exact.states:
            raise ValueError("geo must hold a housing unit (RTYPE 2) at least, got none: there is no state to publish")
        tables = lay_out(PHSafe(settings).measured(exact, rng), settings)
        return publish(described(settings, exact.states, tables, published=published, reading=reading))
