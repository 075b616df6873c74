"""Registers the bottom-up mechanism, with either sampler, and its release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.bottom_up import BottomUp, WeightedBottomUp
from algorithms.bottom_up.intake import read_published, read_units
from algorithms.bottom_up.mechanism import Noise
from algorithms.bottom_up.release import check_noise, check_size, release
from algorithms.bottom_up.weighted import UNITS, round_units
from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng
from algorithms.registry import System, counting, register
from algorithms.release import options as given
from algorithms.release.engine import Published
from algorithms.release.intake import read_histogram
from algorithms.release.own import on_persons
from algorithms.release.reading import reading_of, tell
from algorithms.release.recoding import recoded
from algorithms.schema import Schema, read_specification

__all__: list[str] = []


@given.releasing
def release_bottom_up(
    rng: Rng,
    data: given.Data,
    areas: given.Areas,
    spec: given.Spec,
    epsilon: given.Epsilon,
    geo: given.Geo = None,
    count: given.Count = None,
    recode: given.Recode = None,
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
    memory: given.Memory = "4GB",
) -> Callable[[Path], Published]:
    """Release all marginals of a histogram with two-tailed geometric noise on every cell."""
    if (weight is None) != (largest_weight is None):
        raise ValueError("--weight and --largest-weight go together")
    if weight is not None and count is not None:
        raise ValueError("--weight goes without --count: a record of a sample is one person")
    if tolerance and totals is None:
        raise ValueError("--tolerance goes with --totals")
    columns, schema = given.columns_of(areas), read_specification(spec)
    check_size(1, schema)
    settings: dict[str, Any] = {"noise": noise.replace("-", "_")}

    def build(shape: tuple[int, ...], **known: Any) -> BottomUp | WeightedBottomUp:
        if largest_weight is None:
            return BottomUp(epsilon, **settings, **known)
        return WeightedBottomUp(epsilon, largest_weight, shape, **settings, **known)

    check_noise(build((1,)), rng)  # what is wrong with the settings is told before data are read
    persons = recoded("data", data, recode, [*columns, *schema.attributes, count, weight])

    def make(out: Path) -> Published:
        read: dict[str, Any] = {"places": geo, "memory": memory}
        if weight is None or largest_weight is None:
            tree, counts = read_histogram(persons, schema, columns, count=count, **read)
        else:
            tree, units = read_units(persons, schema, columns, weight=weight, largest=largest_weight, **read)
            counts = round_units(units)
            tell(f"weights add up to {units.sum() / UNITS:.3f} people, and rounded counts to {counts.sum()}")
        published = None if totals is None else read_published(totals, columns, tree, tolerance=tolerance)
        about: dict[str, Any] = {"listed": geo is not None, "reading": reading_of(persons, schema)}
        mechanism = build(counts.shape, tree=tree, schema=schema, published=published)
        return release(mechanism, counts, out=out, rng=rng, areas=columns, **about)

    return make


def _own(system: System, noise: Noise, tree: Hierarchy, schema: Schema, _: Sequence[str]) -> System:
    build = partial(BottomUp, epsilon=1.0, tree=tree, schema=schema, noise=noise)
    return replace(system, build=build, of_counts=False)


EXACT = counting("bottom-up", BottomUp, commands={"release": release_bottom_up})
INVERSE = counting("bottom-up-inverse-cdf", BottomUp, noise="inverse_cdf")
register(replace(EXACT, own=partial(on_persons, partial(_own, EXACT, "exact"))))
register(replace(INVERSE, own=partial(on_persons, partial(_own, INVERSE, "inverse_cdf"))))
