"""Registers NistDp3 and its release, on one half of bundled survey records; the other half determines the groups.

A release contains ``microdata.csv``, synthetic rows; ``groups.txt`` and ``groups.json``, the groups of fields and the
reasons for them, for readers and for `read_groups`; and ``noisy_measurements.csv``, all bins not 0 after the cut.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import ArrayLike, NDArray

from algorithms.nist import Groups, NistDp3, choose_groups, read_groups
from algorithms.nist.contest import read_contest
from algorithms.nist.groups import check_one_source
from algorithms.nist.synthesis import Fitted
from algorithms.noise import Rng
from algorithms.population import halves, load_income
from algorithms.registry import System, register
from algorithms.release import engine
from algorithms.release import options as given
from algorithms.release.intake import MEMORY, read_records
from algorithms.release.reading import reading_of
from algorithms.release.recoding import recoded
from algorithms.schema import Schema, read_specification
from audit.neighbors import NeighborPair

__all__ = ["release"]

PEOPLE, ROWS = 500, 200  # protected records, and synthetic rows of a run
USUAL = partial(NistDp3, epsilon=1.0, rows=ROWS)
WRITTEN = 2**15  # synthetic rows that are formatted at a time


@cache
def _groups() -> Groups:
    schema, records = load_income()
    return choose_groups(halves(records)[0], schema)


def _nist(**settings: Any) -> NistDp3:
    return USUAL(load_income()[0], _groups(), **settings)


_nist.__signature__ = signature(partial(USUAL, None, None), eval_str=True)  # type: ignore[attr-defined]


def _joined() -> NeighborPair:
    _, protected = halves(load_income()[1])
    return NeighborPair.add_record(protected[:PEOPLE], protected[PEOPLE], label="one person added")


def release(
    nist: NistDp3,
    records: ArrayLike,
    *,
    out: str | os.PathLike[str] | None = None,
    rng: Rng = "secure",
    as_counted: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> engine.Published:
    """Run NistDp3 once on codes of records, shape (n, fields), and write it to the new or empty folder `out`.

    The number of synthetic rows is that of the mechanism, or with `as_counted` the noisy number of records. Records may
    be empty. `drawn` has the noisy histograms after the cut, and codes of synthetic rows, shape (rows, fields).
    """
    schema, groups = nist.schema, nist.groups
    engine.check_distinct(("GROUP", *schema.attributes, "COUNT"))
    engine.check_secure(rng, "law", nist.law, "geometric")  # floating-point noise reveals exact counts
    group = engine.TableColumn("GROUP", "fields that share a histogram", codes=groups.names)
    bins = engine.attribute_columns(schema, more="; empty where the group has no such field", noisy=True)
    with engine.publishing(out, rng) as publish:
        fitted = nist.fit(records, rng)
        synthetic = fitted.synthesize(fitted.people if as_counted else None, None if isinstance(rng, str) else rng)
        if np.size(records):
            engine.tell_rare(_by_level(schema, np.asarray(records), synthetic), "synthetic")
        about = {
            "law": nist.law,
            "factor": nist.factor,
            "rows": len(synthetic),
            "groups": list(groups.names),
            "groups_from": "a list of groups" if groups.max_bins is None else "public records",
            "uniform": list(fitted.uniform),
            "attributes": {name: list(levels) for name, levels in schema.attributes.items()},
        }
        publication = engine.Published(
            claim=nist.claim,
            files={
                "noisy_measurements.csv": engine.TableFile([group, *bins, engine.COUNT], _histogram_rows(nist, fitted)),
                "microdata.csv": engine.TableFile(
                    engine.attribute_columns(schema, noisy=True), _synthetic_rows(schema, synthetic)
                ),
            },
            texts={"groups.txt": f"{groups}\n", "groups.json": json.dumps(groups.to_dict(), indent=4) + "\n"},
            ledger=_ledger(nist, fitted.uniform),
            summary=f"{len(synthetic):,} rows of {len(schema.attributes)} fields",
            about=about,
            reading=reading,
            drawn=(fitted, synthetic),
        )
        return publish(publication)


def _ledger(nist: NistDp3, uniform: Sequence[str]) -> str:
    """Return the text of the ledger: the budget and noise of each group, and the promise of the release."""
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


def _by_level(schema: Schema, exact: NDArray[Any], synthetic: NDArray[Any]) -> Iterator[engine.Group]:
    """Yield for each field the records by value, and the synthetic rows by value, scaled to the number of records."""
    share = len(exact) / len(synthetic)
    for (name, levels), real, made in zip(schema.attributes.items(), exact.T, synthetic.T, strict=True):
        old, new = (np.bincount(codes, minlength=len(levels)) for codes in (real, made))
        yield name, levels, old, np.rint(share * new).astype(np.int64)


def _own(
    data: str, *, spec: str, public: str | None = None, groups: str | None = None, recode: str | None = None
) -> System:
    """Return the system on the user's records, with groups as for a release; the pair adds the last record."""
    check_one_source(public, groups)
    schema = read_specification(Path(spec))
    chosen = choose_groups(_public(public, schema), schema) if groups is None else read_groups(groups)
    chosen.check(schema)
    records = read_records(recoded("data", data, recode, schema.attributes), schema)

    def joined() -> NeighborPair:
        return NeighborPair.add_record(records[:-1], records[-1], label="the last person of the file added")

    return replace(NIST, build=partial(USUAL, schema, chosen), pairs={"joined": joined})


def _public(file: Any, schema: Schema, memory: str = MEMORY) -> NDArray[Any]:
    return read_records(file, schema, what="public records", memory=memory)


@given.releasing
def release_nist(
    rng: Rng,
    data: Annotated[Path, typer.Option(help="Records to protect, .csv or .parquet, one per row.")],
    spec: given.Spec,
    epsilon: given.Epsilon,
    codebook: Annotated[
        Path | None,
        typer.Option(help="Codebook (.cbk) of NIST's contest: values of fields; --spec is then the contest's .json."),
    ] = None,
    bins: Annotated[
        Path | None, typer.Option(help="With --codebook: special bins of some fields, .json as for --spec.")
    ] = None,
    public: Annotated[
        Path | None, typer.Option(help="Public records to group correlated fields by: far more records than levels.")
    ] = None,
    groups: Annotated[
        Path | None, typer.Option(help='Groups instead of public records: {"groups": [["age", "sex"], ...]}.')
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(help="Number of synthetic rows. Default: the sum of the smallest histogram's noisy counts."),
    ] = None,
    max_bins: Annotated[int | None, typer.Option(help="With --public: most bins in a group.")] = None,
    factor: Annotated[
        float | None, typer.Option(help="Noisy counts < factor x scale x log10(bins) become 0. Default: ln(10).")
    ] = None,
    recode: given.Recode = None,
    memory: given.Memory = "4GB",
) -> Callable[[Path], engine.Published]:
    """Release synthetic records of many categorical fields, by NistDp3."""
    check_one_source(public, groups)
    if groups is not None and max_bins is not None:
        raise ValueError("--max-bins goes with --public, not with --groups")
    if public is not None and public.exists() and data.exists() and public.samefile(data):
        raise ValueError("--public must be another file than --data: the data must have no say in the groups")
    if codebook is None and bins is not None:
        raise ValueError("--bins goes with --codebook: without it the bins of fields stand in --spec")
    schema = read_specification(spec) if codebook is None else read_contest(spec, codebook, bins)
    persons = recoded("data", data, recode, schema.attributes)
    settings: dict[str, Any] = {"rows": rows} if rows is not None else {}
    settings |= {"factor": factor} if factor is not None else {}
    known = None if groups is None else read_groups(groups)
    NistDp3(schema, known or Groups.single(schema), epsilon, **settings)  # refuses bad settings before records are read

    def make(out: Path) -> engine.Published:
        limits = {} if max_bins is None else {"max_bins": max_bins}
        chosen = known or choose_groups(_public(public, schema, memory), schema, **limits)
        nist = NistDp3(schema, chosen, epsilon, law="geometric", **settings)
        about: dict[str, Any] = {"as_counted": rows is None, "reading": reading_of(persons, schema)}
        return release(nist, read_records(persons, schema, memory=memory), out=out, rng=rng, **about)

    return make


NIST = System(
    name="nist",
    about="NistDp3: correlated fields grouped on public data, noisy histograms of the groups, synthetic rows.",
    build=_nist,
    pairs={"joined": _joined},
    stages=("measurements", "thresholded", "counted"),
    commands={"release": release_nist},
)
register(replace(NIST, own=_own))
