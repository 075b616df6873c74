"""Registers NistDp3 and its release, on one half of bundled survey records; the other half groups the fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from numpy.typing import NDArray

from algorithms.nist import Groups, NistDp3, choose_groups, read_groups
from algorithms.nist.contest import read_contest
from algorithms.nist.groups import check_one_source
from algorithms.nist.release import release
from algorithms.noise import Rng
from algorithms.population import halves, load_income
from algorithms.registry import System, register
from algorithms.release import options as given
from algorithms.release.engine import Published
from algorithms.release.intake import MEMORY, read_records
from algorithms.release.reading import reading_of
from algorithms.release.recoding import recoded
from algorithms.schema import Schema, read_specification
from audit.neighbors import NeighborPair

__all__: list[str] = []

PEOPLE, ROWS = 500, 200  # protected records, and synthetic rows of a run
USUAL = partial(NistDp3, epsilon=1.0, rows=ROWS)


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


def _own(
    data: str, *, spec: str, public: str | None = None, groups: str | None = None, recode: str | None = None
) -> System:
    """Describe the algorithm on records of the user's own, the last of which joins; fields grouped as for a release."""
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
) -> Callable[[Path], Published]:
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
    NistDp3(schema, known or Groups.single(schema), epsilon, **settings)  # refuses settings before records are read

    def make(out: Path) -> Published:
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
