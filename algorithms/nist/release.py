"""What a NistDp3 release publishes: noisy histograms of groups of fields, and synthetic rows from what the cut leaves.

The folder holds ``microdata.csv``, synthetic rows; ``groups.txt`` and ``groups.json``, which fields share a histogram
and why, for readers and for `read_groups`; and ``noisy_measurements.csv``, every bin that is not 0 after the cut.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.nist.mechanism import NistDp3
from algorithms.nist.synthesis import Fitted
from algorithms.noise import Rng
from algorithms.release.columns import COUNT, TableColumn, TableFile, attribute_columns
from algorithms.release.engine import Published, publishing, tell_rare
from algorithms.release.frames import Frame
from algorithms.schema import Schema

__all__ = ["Release", "noise_table", "release"]

WRITTEN = 2**15  # synthetic rows that are turned into text at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Published):
    """Noisy histograms after the cut, and codes of synthetic rows, shape (rows, fields); the data are not in it."""

    nist: NistDp3
    fitted: Fitted
    synthetic: NDArray[Any]

    @property
    def ledger(self) -> str:
        """What the release spends on what, and promises in the end, in words."""
        nist = self.nist
        lines = [f"{'BINS':>9} {'EPSILON':>9} {'SCALE':>9} {'THRESHOLD':>9} {'SPURIOUS':>9}  GROUP"]
        lines += [
            f"{bins:>9,} {epsilon:>9.4g} {scale:>9.4g} {cut:>9.1f} {spurious:>9.2f}  {name}"
            for name, bins, epsilon, scale, cut, spurious in noise_table(nist).rows()
        ]
        lines += [
            f"total: {nist.claim}, one record added or removed; {len(nist.groups)} equal shares, {nist.law} noise",
            "SPURIOUS: bins that noise alone keeps on average, if nobody is in any. Rows and files are made from the",
            "noisy histograms, and spend nothing more.",
        ]
        if self.fitted.uniform:
            lines.append(f"Nothing is left of {', '.join(self.fitted.uniform)}: their rows are uniform, noise alone.")
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """Rows and fields."""
        return f"{len(self.synthetic):,} rows of {len(self.nist.schema.attributes)} fields"

    @property
    def about(self) -> dict[str, Any]:
        """What made the release."""
        nist = self.nist
        return {
            "law": nist.law,
            "factor": nist.factor,
            "rows": len(self.synthetic),
            "groups": list(nist.groups.names),
            "groups_from": "a list of groups" if nist.groups.max_bins is None else "public records",
            "uniform": list(self.fitted.uniform),
            "attributes": {name: list(levels) for name, levels in nist.schema.attributes.items()},
        }

    @property
    def files(self) -> dict[str, TableFile]:
        """The bins, and the synthetic rows."""
        schema, groups = self.nist.schema, self.nist.groups
        group = TableColumn("GROUP", "fields that share a histogram", codes=groups.names)
        bins = attribute_columns(schema, more="; empty where the group has no such field", noisy=True)
        rows = (row for number in range(len(groups)) for row in self._histogram_rows(number))
        return {
            "noisy_measurements.csv": TableFile([group, *bins, COUNT], rows),
            "microdata.csv": TableFile(attribute_columns(schema, noisy=True), self._synthetic_rows()),
        }

    @property
    def texts(self) -> dict[str, str]:
        """The groups."""
        groups = self.nist.groups
        return {"groups.txt": f"{groups}\n", "groups.json": json.dumps(groups.to_dict(), indent=4) + "\n"}

    def _histogram_rows(self, group: int) -> Iterator[list[Any]]:
        columns, levels = self.nist.columns[group], list(self.nist.schema.attributes.values())
        codes = self.fitted.codes(group, self.fitted.bins[group]).tolist()
        for bin_codes, count in zip(codes, self.fitted.counts[group].tolist(), strict=True):
            row = [""] * len(levels)
            for column, code in zip(columns, bin_codes, strict=True):
                row[column] = levels[column][code]
            yield [self.nist.groups.names[group], *row, count]

    def _synthetic_rows(self) -> Iterator[tuple[str, ...]]:
        names = [np.array(levels, object) for levels in self.nist.schema.attributes.values()]
        for start in range(0, len(self.synthetic), WRITTEN):
            part = self.synthetic[start : start + WRITTEN]
            columns = (levels[part[:, column]].tolist() for column, levels in enumerate(names))
            yield from zip(*columns, strict=True)


def release(
    nist: NistDp3,
    records: ArrayLike,
    *,
    out: str | os.PathLike[str] | None = None,
    rng: Rng = "secure",
    as_counted: bool = False,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> Release:
    """Run NistDp3 once on codes of records, shape (n, fields), and write it to the new or empty folder `out`.

    There are as many synthetic rows as the mechanism says, or `as_counted` by its noise. There may be no record, as the
    promise holds for that database too. A release takes secure noise; a seeded generator is for simulations.
    """
    if reserved := [name for name in nist.schema.attributes if name.upper() in ("GROUP", "COUNT")]:
        raise ValueError(f"fields must not be called GROUP or COUNT, as columns of a file are, got {reserved[0]!r}")
    if isinstance(rng, str) and nist.law != "geometric":
        raise ValueError(f'a secure release needs law="geometric", got {nist.law!r}: floating-point noise leaks')
    with publishing(out) as publish:
        nist.noise.sample(0, rng)  # a source of noise that is missing is told before the work
        fitted = nist.fit(records, rng)
        rows, chance = fitted.people if as_counted else None, None if isinstance(rng, str) else rng
        synthetic = fitted.synthesize(rows, chance)
        exact = np.asarray(records)
        if exact.size:
            share = len(exact) / len(synthetic)  # of more or fewer rows as many are compared
            made = [np.rint(share * counts).astype(np.int64) for counts in _by_level(nist.schema, synthetic)]
            tell_rare(nist.schema, _by_level(nist.schema, exact), made, "synthetic")
        return publish(Release(claim=nist.claim, nist=nist, fitted=fitted, synthetic=synthetic, reading=reading))


def _by_level(schema: Schema, records: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the number of records by level of each field."""
    return [np.bincount(column, minlength=size) for column, size in zip(records.T, schema.shape, strict=True)]


def noise_table(nist: NistDp3) -> Frame:
    """Tabulate the noise of every histogram."""
    number = len(nist.groups)
    return Frame(
        {
            "GROUP": nist.groups.names,
            "BINS": nist.bins,
            "EPSILON": [nist.share] * number,
            "SCALE": [nist.scale] * number,
            "THRESHOLD": nist.thresholds,
            "SPURIOUS": nist.spurious,
        }
    )
