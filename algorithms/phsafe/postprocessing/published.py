"""The published tables as a mechanism: noise, production layout and post-processing of many runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from algorithms.noise import Rng
from algorithms.phsafe.layout import lay_out
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.postprocessing.postprocess import caps, postprocess
from algorithms.phsafe.tabulation.tabulate import Tabulation
from algorithms.release.frames import Frame
from audit.claims import ZCDP, PureDP

__all__ = ["PublishedTables"]

AT_ONCE = 200  # runs processed together: averages of a few runs take as long as those of one


@dataclass(frozen=True)
class PublishedTables:
    """PH1 to PH8 after post-processing, as a mechanism on tabulated households.

    **Claim.** That of the measurements: post-processing reads nothing else.
    """

    measurements: PHSafe

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads

    def __post_init__(self) -> None:
        config = self.measurements.config
        if config.privacy_definition != "zcdp":
            raise ValueError(f"post-processing must be of discrete Gaussian noise, got {config.privacy_definition}")
        measured = {table for table, _ in self.measurements.queries}
        if measured <= {"PH1_num", "PH1_denom", "PH5_denom", "PH8_denom"} and not {"PH1_num", "PH1_denom"} <= measured:
            raise ValueError(f"queries must be enough for a table, got {', '.join(sorted(measured))}")

    @property
    def claim(self) -> ZCDP | PureDP:
        """Promise of the measurements."""
        return self.measurements.claim

    def __call__(self, data: Tabulation, size: int, rng: Rng) -> NDArray[np.float64]:
        """Release `size` times over: shape (size, numbers), estimates and ends of intervals, table by table."""
        parts = [self._some(data, min(AT_ONCE, size - start), rng) for start in range(0, size, AT_ONCE)]
        return np.concatenate(parts)

    def _some(self, data: Tabulation, size: int, rng: Rng) -> NDArray[np.float64]:
        """Release a few times in one call, with each run as a region, because regions are processed independently."""
        phsafe = self.measurements
        runs = [lay_out(phsafe.measured(data, rng), phsafe.config) for _ in range(size)]
        tables = {name: Frame.concatenate([_named(run[name], at) for at, run in enumerate(runs)]) for name in runs[0]}
        published = postprocess(tables, cap=caps(phsafe.config.tau))
        return np.concatenate([_numbers(table, size) for table in published.values()], axis=1)


def _named(table: Frame, run: int) -> Frame:
    columns = {name: table[name] for name in table.columns}
    return Frame(columns | {"REGION_ID": [f"{run} {region}" for region in table["REGION_ID"]]})


def _numbers(table: Frame, size: int) -> NDArray[np.float64]:
    columns = [np.asarray(table[name], np.float64).reshape(size, -1) for name in ("ESTIMATE", "LOWER", "UPPER")]
    return np.concatenate(columns, axis=1)
