"""What truncation costs on the data at hand: persons of large households that no table counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.phsafe.budget import Settings, noise_law, read_config
from algorithms.phsafe.explore import exact_margin_of_error
from algorithms.phsafe.tables import QUERIES
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.phsafe.tabulation.validate import Validation
from algorithms.tables.engine import Engine
from algorithms.tables.frames import Frame
from algorithms.tables.opening import opened

__all__ = ["truncation_bias"]


def truncation_bias(
    persons: Any,
    units: Any,
    geo: Any,
    config: Settings,
    *,
    engine: str | Engine = "duckdb",
    validation: Validation = "full",
) -> Frame:
    """Compare what is counted with and without the truncation thresholds, query by query and level by level.

    The bias is not private: it is for the curator who chooses thresholds. It always lowers counts, does not shrink with
    the budget, and is not part of any margin of error.

    Parameters
    ----------
    persons, units, geo : path or frame
        As `algorithms.phsafe.tabulation.tabulate.tabulate` takes them.
    config : what `read_config` takes
        Thresholds, and the levels that have a budget.
    engine, validation
        As there.

    Returns
    -------
    Frame
        One row for each query about persons and level: TABLE, LEVEL, TAU, COUNTED (persons in a cell of the level
        without truncation), DROPPED (of them, by truncation), SHARE, LARGEST (most persons dropped from one cell) and
        EXACT_MARGIN, the smallest margin that holds 90% of the noise.

    Raises
    ------
    ValueError
        As `tabulate` does.

    Examples
    --------
    >>> from algorithms.phsafe.population import load_households
    >>> homes = load_households()
    >>> bias = truncation_bias(homes.persons, homes.units, homes.geo, "us")
    >>> next(bias.rows())[:5]
    ('PH1_num', 'usa_*', 10, 9606, 2)
    """
    settings = read_config(config)
    queries = {name: query for name, query in QUERIES.items() if query.truncated}
    with opened(engine, [persons, units, geo]) as database:
        options: dict[str, Any] = {"config": settings, "engine": database}
        exact = tabulation(persons, units, geo, queries, truncate=False, validation=validation, **options)
        counted = tabulation(persons, units, geo, queries, validation="none", **options)
    rows = []
    for (table, level), counts in exact.counts.items():
        dropped = counts - counted.counts[table, level]
        total, lost = int(counts.sum()), int(dropped.sum())
        margin = exact_margin_of_error(noise_law(settings, table, level))
        rows.append(
            (table, level, settings.tau[table], total, lost, lost / max(total, 1), int(np.max(dropped)), margin)
        )
    names = ("TABLE", "LEVEL", "TAU", "COUNTED", "DROPPED", "SHARE", "LARGEST", "EXACT_MARGIN")
    return Frame(dict(zip(names, zip(*rows, strict=True), strict=True)))
