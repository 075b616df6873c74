"""The command ``plaudit release nist``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.tables import commands

__all__ = ["release_nist"]


@commands.releasing
def release_nist(
    out: commands.Out,
    data: Annotated[Path, typer.Option(help="Records to protect, .csv or .parquet, one per row.")],
    spec: commands.Spec,
    epsilon: commands.Epsilon,
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
    recode: commands.Recode = None,
    memory: commands.Memory = "4GB",
    seed: commands.Seed = None,
) -> int:
    """Release synthetic records of many categorical fields, by NistDp3."""
    from algorithms.nist import Groups, NistDp3, choose_groups, read_groups
    from algorithms.nist.contest import read_contest
    from algorithms.nist.groups import check_one_source
    from algorithms.nist.release import release
    from algorithms.schema import read_specification
    from algorithms.tables.intake import read_records
    from algorithms.tables.intake.reading import reading_of
    from algorithms.tables.recoding import recoded
    from audit.io.terminal import at_work

    rng, noise = commands.noise_of(seed)
    check_one_source(public, groups)
    if groups is not None and max_bins is not None:
        raise ValueError("--max-bins goes with --public, not with --groups")
    if public is not None and public.exists() and data.exists() and public.samefile(data):
        raise ValueError("--public must be another file than --data: the data must have no say in the groups")
    if codebook is None and bins is not None:
        raise ValueError("--bins goes with --codebook: without it the bins of fields stand in --spec")
    schema = read_specification(spec) if codebook is None else read_contest(spec, codebook, bins)
    persons = recoded("data", data, recode, schema.attributes)
    options = {"factor": factor, "rows": rows}
    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    chosen = None if groups is None else read_groups(groups)
    # Whatever is wrong with the settings is said before any record is read.
    NistDp3(schema, chosen or Groups.single(schema), epsilon, **settings)
    with at_work("reading, counting, drawing noise and rows"):
        if chosen is None:
            limits = {} if max_bins is None else {"max_bins": max_bins}
            chosen = choose_groups(read_records(public, schema, what="public records", memory=memory), schema, **limits)
        nist = NistDp3(schema, chosen, epsilon, law="geometric", **settings)
        about: dict[str, Any] = {"as_counted": rows is None, "reading": reading_of(persons, schema)}
        result = release(nist, read_records(persons, schema, memory=memory), out=out, rng=rng, **about)
    print(result.ledger)
    print(f"{len(result.synthetic):,} rows of {len(schema.attributes)} fields, with {noise}, written to {out}.")
    return 0
