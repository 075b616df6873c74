"""The command ``plaudit release bottom-up``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.tables import commands

__all__ = ["release_bottom_up"]


@commands.releasing
def release_bottom_up(
    out: commands.Out,
    data: commands.Data,
    areas: commands.Areas,
    spec: commands.Spec,
    epsilon: commands.Epsilon,
    geo: commands.Geo = None,
    count: commands.Count = None,
    recode: commands.Recode = None,
    weight: Annotated[str | None, typer.Option(help="For a sample: column of the weights.")] = None,
    largest_weight: Annotated[
        float | None, typer.Option(help="Largest weight that the design allows: public, never taken from the data.")
    ] = None,
    totals: Annotated[
        Path | None,
        typer.Option(
            help="Published totals: columns of areas down to one level, and count. A file with count alone has the "
            "total of all areas. Noisy counts are calibrated to them. A total that the data do not have is refused. No "
            "promise covers either."
        ),
    ] = None,
    tolerance: Annotated[int, typer.Option(help="People by which the data may differ from a published total.")] = 0,
    noise: Annotated[
        str, typer.Option(help="exact, or inverse-cdf with --seed: the authors' sampler, which breaks the promise.")
    ] = "exact",
    memory: commands.Memory = "4GB",
    seed: commands.Seed = None,
) -> int:
    """Release all marginals of a histogram with two-tailed geometric noise on every cell."""
    from algorithms.bottom_up import BottomUp, WeightedBottomUp
    from algorithms.bottom_up.intake import count_areas, read_published, read_units
    from algorithms.bottom_up.release import check_schema, release
    from algorithms.bottom_up.weighted import UNITS, round_units
    from algorithms.schema import read_specification
    from algorithms.tables.intake import read_histogram
    from algorithms.tables.intake.reading import reading_of, tell
    from algorithms.tables.recoding import recoded
    from audit.io.terminal import at_work

    rng, words = commands.noise_of(seed)
    if noise not in ("exact", "inverse-cdf"):
        raise ValueError(f"noise must be exact or inverse-cdf, got {noise!r}")
    if noise == "inverse-cdf" and seed is None:
        raise ValueError("--noise inverse-cdf needs --seed: it can be simulated, and no secure release has it")
    if (weight is None) != (largest_weight is None):
        raise ValueError("--weight and --largest-weight go together")
    if weight is not None and count is not None:
        raise ValueError("--weight goes without --count: a record of a sample is one person")
    if tolerance and totals is None:
        raise ValueError("--tolerance goes with --totals")
    columns = commands.columns_of(areas)
    sampler: Any = noise.replace("-", "_")
    BottomUp(epsilon, noise=sampler)([0], 0, rng)  # a bad budget or missing noise is told before data are read
    if largest_weight is not None:
        WeightedBottomUp(epsilon, largest_weight, (1,), noise=sampler)
    schema = read_specification(spec)
    check_schema(schema)
    persons = recoded("data", data, recode, [*columns, *schema.attributes, count, weight])
    with at_work("counting, drawing noise"):
        named, what = (persons, "data") if geo is None else (geo, "the list of areas")
        number = count_areas(named, columns, what=what, memory=memory)
        check_schema(schema, number)  # before a histogram of that size is made
        if weight is None or largest_weight is None:
            tree, counts = read_histogram(persons, schema, columns, count=count, places=geo, memory=memory)
        else:
            tree, units = read_units(
                persons, schema, columns, weight=weight, largest=largest_weight, places=geo, memory=memory
            )
            counts = round_units(units)
            tell(f"weights add up to {units.sum() / UNITS:.3f} people, and rounded counts to {counts.sum()}")
        known = None if totals is None else read_published(totals, columns, tree, tolerance=tolerance)
        options: dict[str, Any] = {"tree": tree, "schema": schema, "noise": sampler, "published": known}
        mechanism: BottomUp | WeightedBottomUp = (
            BottomUp(epsilon, **options)
            if largest_weight is None
            else WeightedBottomUp(epsilon, largest_weight, counts.shape, **options)
        )
        tables = release(
            mechanism,
            counts,
            out=out,
            rng=rng,
            areas=columns,
            listed=geo is not None,
            reading=reading_of(persons, schema),
        )
    print(tables.ledger)
    rows = sum(map(len, tables.tables))
    print(f"\n{rows:,} rows in {len(tables.tables)} levels, with {words}, written to {out}.")
    return 0
