"""What a NistDp3 release publishes: noisy histograms of groups of fields, and synthetic rows from what the cut leaves.

The folder holds ``microdata.csv``, synthetic rows; ``groups.txt`` and ``groups.json``, which fields share a histogram
and why, for readers and for `read_groups`; and ``noisy_measurements.csv``, every bin that is not 0 after the cut.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.nist.mechanism import NistDp3
from algorithms.nist.synthesis import Fitted
from algorithms.noise import Rng
from algorithms.release.columns import COUNT, TableColumn, TableFile, attribute_columns
from algorithms.release.engine import Group, Published, publishing, tell_rare
from algorithms.schema import Schema

__all__ = ["release"]

WRITTEN = 2**15  # synthetic rows that are turned into text at a time


def release(
    nist: NistDp3,
    records: ArrayLike,
    *,
    out: str | os.PathLike[str] | None = None,
    rng: Rng = "secure",
    as_counted: bool = False,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> Published:
    """Run NistDp3 once on codes of records, shape (n, fields), and write it to the new or empty folder `out`.

    There are as many synthetic rows as the mechanism says, or `as_counted` by its noise; there may be no record. Drawn
    are the noisy histograms after the cut, and codes of synthetic rows, shape (rows, fields).
    """
    schema, groups = nist.schema, nist.groups
    if reserved := [name for name in schema.attributes if name.upper() in ("GROUP", "COUNT")]:
        raise ValueError(f"fields must not be called GROUP or COUNT, as columns of a file are, got {reserved[0]!r}")
    if isinstance(rng, str) and nist.law != "geometric":
        raise ValueError(f'a secure release needs law="geometric", got {nist.law!r}: floating-point noise leaks')
    group = TableColumn("GROUP", "fields that share a histogram", codes=groups.names)
    bins = attribute_columns(schema, more="; empty where the group has no such field", noisy=True)
    with publishing(out, rng) as publish:
        fitted = nist.fit(records, rng)
        synthetic = fitted.synthesize(fitted.people if as_counted else None, None if isinstance(rng, str) else rng)
        if np.size(records):
            tell_rare(_by_level(schema, np.asarray(records), synthetic), "synthetic")
        about = {
            "law": nist.law,
            "factor": nist.factor,
            "rows": len(synthetic),
            "groups": list(groups.names),
            "groups_from": "a list of groups" if groups.max_bins is None else "public records",
            "uniform": list(fitted.uniform),
            "attributes": {name: list(levels) for name, levels in schema.attributes.items()},
        }
        return publish(
            Published(
                claim=nist.claim,
                files={
                    "noisy_measurements.csv": TableFile([group, *bins, COUNT], _histogram_rows(nist, fitted)),
                    "microdata.csv": TableFile(
                        attribute_columns(schema, noisy=True), _synthetic_rows(schema, synthetic)
                    ),
                },
                texts={"groups.txt": f"{groups}\n", "groups.json": json.dumps(groups.to_dict(), indent=4) + "\n"},
                ledger=_ledger(nist, fitted.uniform),
                summary=f"{len(synthetic):,} rows of {len(schema.attributes)} fields",
                about=about,
                reading=reading,
                drawn=(fitted, synthetic),
            )
        )


def _ledger(nist: NistDp3, uniform: Sequence[str]) -> str:
    """Return what the release spends on what, and promises in the end, in words."""
    lines = [f"{'BINS':>9} {'EPSILON':>9} {'SCALE':>9} {'THRESHOLD':>9} {'SPURIOUS':>9}  GROUP"]
    lines += [
        f"{bins:>9,} {nist.share:>9.4g} {nist.scale:>9.4g} {cut:>9.1f} {spurious:>9.2f}  {name}"
        for bins, cut, spurious, name in zip(nist.bins, nist.thresholds, nist.spurious, nist.groups.names, strict=True)
    ]
    lines += [
        f"total: {nist.claim}, one record added or removed; {len(nist.groups)} equal shares, {nist.law} noise",
        "SPURIOUS: bins that noise alone keeps on average, if nobody is in any. Rows and files are made from the",
        "noisy histograms, and spend nothing more.",
    ]
    if uniform:
        lines.append(f"Nothing is left of {', '.join(uniform)}: their rows are uniform, noise alone.")
    return "\n".join(lines)


def _histogram_rows(nist: NistDp3, fitted: Fitted) -> Iterator[list[Any]]:
    levels = list(nist.schema.attributes.values())
    for group, (name, columns) in enumerate(zip(nist.groups.names, nist.columns, strict=True)):
        codes = fitted.codes(group, fitted.bins[group]).tolist()
        for bin_codes, count in zip(codes, fitted.counts[group].tolist(), strict=True):
            row = [""] * len(levels)
            for column, code in zip(columns, bin_codes, strict=True):
                row[column] = levels[column][code]
            yield [name, *row, count]


def _synthetic_rows(schema: Schema, synthetic: NDArray[Any]) -> Iterator[tuple[str, ...]]:
    names = [np.array(levels, object) for levels in schema.attributes.values()]
    for start in range(0, len(synthetic), WRITTEN):
        part = synthetic[start : start + WRITTEN]
        columns = (levels[part[:, column]].tolist() for column, levels in enumerate(names))
        yield from zip(*columns, strict=True)


def _by_level(schema: Schema, exact: NDArray[Any], synthetic: NDArray[Any]) -> Iterator[Group]:
    """Yield the records by level of each field, and of as many synthetic ones."""
    share = len(exact) / len(synthetic)
    for (name, levels), given, made in zip(schema.attributes.items(), exact.T, synthetic.T, strict=True):
        old, new = (np.bincount(codes, minlength=len(levels)) for codes in (given, made))
        yield name, levels, old, np.rint(share * new).astype(np.int64)
