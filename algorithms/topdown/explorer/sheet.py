"""TopDown's sheet: how the budget is divided over levels and queries, and how accurate each query is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from algorithms.noise import DiscreteGaussian
from algorithms.noise.margins import exact_margin_of_error
from algorithms.tables.promises import promised, totals
from algorithms.topdown.budget import Budget, Claim, Law
from algorithms.topdown.presets import PERSON_QUERIES, PRESETS
from audit.claims import ZCDP, PureDP, Relation
from audit.explorer.sheet import Chart, Column, Group, Input, Result, Row, Sheet, State, Table, Total, Value

__all__ = ["sheet"]

DRAWN = {
    "pl94-2020": "hispanic*cenrace/county",
    "e2e-1940": "votingage*hispanic*cenrace/county",
    "h1": "detailed/county",
}
NAMES = tuple(DRAWN)
LEVELS = tuple(dict.fromkeys(level for name in NAMES for level in PRESETS[name].levels))
PLACES = {level: level.replace(" ", "_") for level in LEVELS}
KINDS: dict[str, type[ZCDP] | type[PureDP]] = {"zcdp": ZCDP, "puredp": PureDP}
RELATIONS: tuple[Relation, ...] = ("replace_one", "add_remove")
ALL, CURVE = "topdown/all/all", "topdown/curve/all/row"
STEPS = (4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80)
"""Budgets of the curve, in twentieths of the current one."""
QUANTITIES = ("share", "budget", "sigma", "margin")


def sheet() -> Sheet:
    """Return the sheet; it starts from the persons of the 2020 redistricting data."""
    published, *others = (_state_of(name) for name in NAMES)
    presets: dict[str, State] = {NAMES[0]: {}}
    for name, state in zip(NAMES[1:], others, strict=True):
        presets[name] = {key: value for key, value in state.items() if value != published[key]}
    return Sheet(
        name="topdown",
        title="topdown.title",
        about=("topdown.about.1", "topdown.about.2"),
        inputs=tuple(_inputs(published)),
        compute=compute,
        script=("algorithms.topdown.explorer", "explorer.js"),
        formulas="algorithms.topdown.explorer.formulas:cells",
        settings=tuple(f"{ALL}/{name}" for name in ("privacy", "budget", "relation", "delta")),
        tables=(_table(),),
        charts=_charts(),
        totals=totals("topdown", ("replaced_", "added_")),
        presets=presets,
        data={
            "levels": [*PLACES.values()],
            "queries": [*PERSON_QUERIES],
            "steps": {f"{step:02}": step for step in STEPS} | {"now": 20},
        },
    )


def compute(state: State) -> dict[str, Result]:
    """Return every number of the sheet."""
    given: dict[str, Any] = dict(state)
    kind, relation = given[f"{ALL}/privacy"], given[f"{ALL}/relation"]
    promise: Claim = KINDS[kind](given[f"{ALL}/budget"], relation)
    levels, queries = _shares(given)
    results: dict[str, Result] = {
        f"topdown/all/{place}/share": float(levels[level]) if level in levels else None
        for level, place in PLACES.items()
    }
    for level in LEVELS:
        for query in PERSON_QUERIES:
            results |= dict.fromkeys(f"topdown/{query}/{PLACES[level]}/{name}" for name in QUANTITIES)
            share = queries.get(level, {}).get(query)
            if share:
                share *= levels[level]
                place = f"topdown/{query}/{PLACES[level]}"
                results |= {f"{place}/share": float(share), f"{place}/budget": float(Fraction(promise.budget) * share)}
                law = _law(promise, share)
                if law is not None:
                    results |= {f"{place}/sigma": _sigma(law), f"{place}/margin": exact_margin_of_error(law)}
    budget = Budget(promise, [1], [{"total": 1}])
    claims = {"replaced_": budget.under("replace_one"), "added_": budget.under("add_remove")}
    results |= _curve(promise, given[CURVE], levels, queries)
    return results | promised("topdown", claims, given[f"{ALL}/delta"])


def _shares(given: dict[str, Any]) -> tuple[dict[str, Fraction], dict[str, dict[str, Fraction]]]:
    """Return the shares of the levels and of their queries: parts over their sum. What has no query has no share."""
    parts = {level: given[f"topdown/all/{PLACES[level]}/parts"] for level in LEVELS}
    by_level = {
        level: {query: given[f"topdown/{query}/{PLACES[level]}/parts"] for query in PERSON_QUERIES}
        for level in LEVELS
        if parts[level]
    }
    by_level = {level: queries for level, queries in by_level.items() if any(queries.values())}
    levels = {level: Fraction(parts[level], sum(parts[other] for other in by_level)) for level in by_level}
    return levels, {
        level: {query: Fraction(part, sum(queries.values())) for query, part in queries.items()}
        for level, queries in by_level.items()
    }


def _law(promise: Claim, share: Fraction) -> Law | None:
    """Return the noise of a query with a share of the budget, or None where there is no noise for so little."""
    try:
        return Budget(promise, [1], [{"total": 1}]).law(share, "total", 0)
    except ValueError:
        return None


def _sigma(law: Law) -> float:
    return law.scale if isinstance(law, DiscreteGaussian) else math.sqrt(law.variance)


def _curve(
    promise: Claim, row: str, levels: dict[str, Fraction], queries: dict[str, dict[str, Fraction]]
) -> dict[str, Result]:
    """Return the margins of one query for budgets around the current one."""
    query, place = row.split("/")
    level = next(level for level in LEVELS if PLACES[level] == place)
    share = levels.get(level, Fraction()) * queries.get(level, {}).get(query, Fraction())
    results: dict[str, Result] = {}
    for step in (*STEPS, 20):
        name = "now" if f"topdown/curve/{step:02}/margin" in results else f"{step:02}"
        budget = promise.budget * step / 20
        law = _law(type(promise)(budget, promise.relation), share) if share else None
        results[f"topdown/curve/{name}/budget"] = None if law is None else budget
        results[f"topdown/curve/{name}/margin"] = None if law is None else exact_margin_of_error(law)
    return results


def _state_of(name: str) -> dict[str, Value]:
    """Return published settings as a state: shares as whole parts."""
    published = PRESETS[name]
    state: dict[str, Value] = {f"{ALL}/preset": name, CURVE: DRAWN[name]}
    if published.promise is not None:
        state |= {
            f"{ALL}/privacy": "zcdp" if isinstance(published.promise, ZCDP) else "puredp",
            f"{ALL}/budget": published.promise.budget,
            f"{ALL}/relation": published.promise.relation,
        }
    levels = _parts(published.levels)
    for level, place in PLACES.items():
        queries = _parts(published.queries.get(level, {}))
        state[f"topdown/all/{place}/parts"] = levels.get(level, 0)
        state |= {f"topdown/{query}/{place}/parts": queries.get(query, 0) for query in PERSON_QUERIES}
    return state


def _parts(shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Return shares as parts of their common denominator."""
    common = math.lcm(*(share.denominator for share in shares.values()))
    return {name: int(share * common) for name, share in shares.items()}


def _inputs(published: dict[str, Value]) -> Iterator[Input]:
    def choice(name: str, *choices: str, key: str = "") -> Input:
        key = key or f"{ALL}/{name}"
        return Input(
            key=key, kind="choice", value=published.get(key, choices[0]), choices=choices, label=f"topdown.{name}"
        )

    yield choice("preset", *NAMES)
    yield choice("privacy", *KINDS)
    budget, delta = f"{ALL}/budget", f"{ALL}/delta"
    yield Input(key=budget, kind="number", value=published[budget], least=1e-3, most=1e6, label="topdown.all")
    yield choice("relation", *RELATIONS)
    yield Input(key=delta, kind="number", value=1e-10, least=1e-30, most=0.1, label="topdown.delta")
    keys = [f"topdown/all/{place}/parts" for place in PLACES.values()]
    keys += [f"topdown/{query}/{place}/parts" for place in PLACES.values() for query in PERSON_QUERIES]
    for key in keys:
        yield Input(key=key, kind="integer", value=published[key], least=0, most=9999, label="topdown.parts")
    rows = [f"{query}/{place}" for place in PLACES.values() for query in PERSON_QUERIES]
    yield Input(key=CURVE, kind="choice", value=published[CURVE], choices=tuple(rows), label="topdown.row")


def _table() -> Table:
    columns = (
        Column(quantity="parts", label="topdown.parts", entry=True),
        Column(quantity="share", label="topdown.share", shown="share"),
        Column(quantity="budget", label="topdown.budget", shown="budget"),
        Column(quantity="sigma", label="topdown.sigma"),
        Column(quantity="margin", label="topdown.margin", shown="whole"),
    )
    groups = tuple(
        Group(
            label=f"topdown.{place}",
            rows=tuple(Row(place=f"topdown/{query}/{place}", label=f"topdown.{query}") for query in PERSON_QUERIES),
            inputs=(f"topdown/all/{place}/parts",),
            results=(Total(key=f"topdown/all/{place}/share", label="topdown.share", shown="share"),),
            folded=True,
        )
        for place in PLACES.values()
    )
    return Table(label="topdown.table", columns=columns, groups=groups)


def _charts() -> tuple[Chart, ...]:
    bars = tuple((f"topdown.{place}", f"topdown/all/{place}/share") for place in PLACES.values())
    curve = tuple((f"topdown/curve/{step:02}/budget", f"topdown/curve/{step:02}/margin") for step in STEPS)
    return (
        Chart(kind="bars", label="topdown.bars", points=bars, axes=(("topdown.share", "share"),)),
        Chart(
            kind="curve",
            label="topdown.curve",
            points=curve,
            axes=(("topdown.all", "budget"), ("topdown.margin", "whole")),
            current=("topdown/curve/now/budget", "topdown/curve/now/margin"),
            inputs=(CURVE,),
        ),
    )
