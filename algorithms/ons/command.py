"""The command ``plaudit release ons``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from algorithms.tables import commands

__all__ = ["release_ons"]


@commands.releasing
def release_ons(
    out: commands.Out,
    data: commands.Data,
    areas: commands.Areas,
    spec: commands.Spec,
    epsilon: commands.Epsilon,
    method: Annotated[str, typer.Option(help="independent (noise on each table), or top-down (synthetic people).")],
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="A table, as region:age*sex, or total:age for all areas; repeatable. Independent noise takes a share "
            "of the budget too: region:age*sex=1/4. Default: the pilot's fourteen, if the attributes are the pilot's."
        ),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            help="For top-down: a level and its share, as total:total=1/10; repeatable, from the total to all "
            "attributes in the finest areas (detailed). Default: the pilot's."
        ),
    ] = None,
    geo: commands.Geo = None,
    count: commands.Count = None,
    recode: commands.Recode = None,
    law: Annotated[
        str, typer.Option(help="geometric; laplace or gaussian for simulations, with --seed.")
    ] = "geometric",
    delta: Annotated[float, typer.Option(help="For gaussian: delta of all tables or levels together.")] = 0.0,
    nonnegative: Annotated[
        bool, typer.Option("--nonnegative", help="Raise negative counts of independent noise to 0: a bias upward.")
    ] = False,
    memory: commands.Memory = "4GB",
    seed: commands.Seed = None,
) -> int:
    """Release frequency tables by the two methods of the pilot of the Office for National Statistics."""
    from algorithms.hierarchy import Hierarchy
    from algorithms.ons import IndependentNoise, OnsTopDown
    from algorithms.ons.release import check_columns, default_levels, release
    from algorithms.ons.tables import PILOT_TABLES, Domain
    from algorithms.schema import read_specification
    from algorithms.tables.intake import check_histogram, read_histogram
    from algorithms.tables.intake.reading import reading_of
    from algorithms.tables.recoding import recoded
    from audit.io.terminal import at_work

    rng, noise = commands.noise_of(seed)
    schema, columns = read_specification(spec), commands.columns_of(areas)
    check_columns(columns, schema)
    check_histogram(1, schema)
    persons = recoded("data", data, recode, [*columns, *schema.attributes, count])
    tables, shares = _assigned("--table", table or [], columns)
    levels, parts = _assigned("--level", level or [], columns)
    independent = method == "independent"
    if method not in ("independent", "top-down"):
        raise ValueError(f"--method must be one of independent, top-down, got {method!r}")
    if independent and levels:
        raise ValueError("--level goes with --method top-down")
    if not independent and (nonnegative or any(shares)):
        raise ValueError("--nonnegative and shares of tables go with --method independent")
    piloted = {"sex", "age", "marital", "month", "cause"} <= set(schema.attributes) and len(columns) == 2
    if independent and not tables and not piloted:
        raise ValueError("--table is needed: the pilot's tables are of its attributes and two levels of areas")
    if (any(shares) and not all(shares)) or not all(parts):
        raise ValueError("--table must have a share each, or none; --level must have one")
    if seed is None and law != "geometric":
        raise ValueError(f"--law must be geometric for secure noise, got {law!r}: others can be simulated, with --seed")

    def made_for(tree: Hierarchy) -> IndependentNoise | OnsTopDown:
        options: dict[str, Any] = {"law": law, "delta": delta}
        if independent:
            options |= {"nonnegative": nonnegative}
            return IndependentNoise(
                tree, schema, epsilon, tables or PILOT_TABLES, shares if any(shares) else (), **options
            )
        chosen = (levels, parts) if levels else default_levels(Domain(tree, schema))
        top_down = OnsTopDown(tree, schema, epsilon, *chosen, **options)
        _ = [top_down.domain.query(one) for one in tables]
        return top_down

    with at_work("counting, drawing noise, tabulating"):
        try:
            made_for(Hierarchy.regular(1, len(columns)))  # settings are refused before data are read
            tree, histogram = read_histogram(persons, schema, columns, count=count, places=geo, memory=memory)
            mechanism = made_for(tree)
            counted = () if independent else tables or PILOT_TABLES * piloted
            about: dict[str, Any] = {"listed": geo is not None, "reading": reading_of(persons, schema)}
            result = release(mechanism, histogram, areas=columns, tables=counted, out=out, rng=rng, **about)
        except ValueError as error:
            raise ValueError(_in_words(str(error), columns)) from error
    print(result.ledger)
    people = "" if result.people is None else f" and {int(result.people.sum()):,} synthetic people"
    print(f"{len(result.tables)} table{'s' * (len(result.tables) != 1)}{people}, with {noise}, written to {out}.")
    return 0


def _in_words(message: str, columns: list[str]) -> str:
    """Name the levels of tables as the user does: ``region: sex`` for ``level 1: sex``."""
    for number, name in enumerate(("total", *columns)):
        message = message.replace(f"level {number}: ", f"{name}: ")
    return message


def _assigned(option: str, texts: list[str], columns: list[str]) -> tuple[list[Any], list[str]]:
    """Split AREA:QUERY or AREA:QUERY=SHARE."""
    from algorithms.ons.tables import Table

    parsed, shares = [], []
    for text in texts:
        place, _, rest = text.partition(":")
        query, equals, share = rest.partition("=")
        if equals and not share.strip():
            raise ValueError(f"{option} must have a share after =, or no =, got {text!r}")
        if place.strip() not in ("total", *columns) or not query.strip():
            where = ", ".join(("total", *columns))
            raise ValueError(f"{option} is written as AREA:QUERY, AREA one of {where}, got {text!r}")
        parsed.append(Table(("total", *columns).index(place.strip()), query.strip()))
        shares.append(share.strip())
    return parsed, shares
