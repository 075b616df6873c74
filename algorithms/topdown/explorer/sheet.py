"""TopDown's sheet: how the budget is divided over levels and queries, and how accurate each query is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian
from algorithms.noise.margins import exact_margin_of_error
from algorithms.tables.promises import promised, totals
from algorithms.topdown.budget import Budget, Claim, Law
from algorithms.topdown.presets import PERSON_QUERIES, PRESETS, Preset, preset
from audit.claims import ZCDP, PureDP, Relation
from audit.explorer.sheet import Chart, Column, Group, Input, Result, Row, Sheet, State, Table, Total, Value

__all__ = ["sheet", "sheet_of"]

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
    queries = {query: query for query in PERSON_QUERIES}
    published, *others = (_state_of(PRESETS[name], PLACES, queries, DRAWN[name]) for name in NAMES)
    presets: dict[str, State] = {NAMES[0]: {}}
    for name, state in zip(NAMES[1:], others, strict=True):
        presets[name] = {key: value for key, value in state.items() if value != published[key]}
    return _sheet(published, presets, ("topdown.about.1", "topdown.about.2"), [*PLACES.values()], PERSON_QUERIES)


def sheet_of(settings: Preset, areas: Sequence[str], *, epsilon: float | None, rho: float | None) -> Sheet:
    """Return the sheet of settings of one's own, with their names of levels and queries in every language."""
    names = (settings.levels_of(areas) if areas else None) or list(settings.levels)
    if not names:
        raise ValueError(f"--areas is needed: {settings.name} names no levels")
    budget = preset(settings, Hierarchy.regular(1, len(names) - 1), levels=names, epsilon=epsilon, rho=rho).budget
    whole = replace(settings, promise=budget.promise)
    asked = dict.fromkeys(query for level in names for query in settings.queries_at(level))
    places = {level: f"level{place}" for place, level in enumerate(names)}
    queries = {query: f"query{place}" for place, query in enumerate(asked)}
    words = {f"topdown.{key}": name for known in (places, queries) for name, key in known.items()}
    exact = ", ".join(f"{query} of {level}" for level, query in settings.invariants.items()) or "nothing"
    words["topdown.about.own"] = f"Settings of {settings.name}. Published exactly: {exact}."
    first = f"{queries[next(iter(settings.queries_at(names[-1])))]}/{places[names[-1]]}"
    state, about = _state_of(whole, places, queries, first), ("topdown.about.1", "topdown.about.own")
    made = _sheet(state, {settings.name: {}}, about, [*places.values()], [*queries.values()])
    made.checked({f"{ALL}/budget": budget.promise.budget})
    return replace(made, words=words)


def _sheet(
    published: dict[str, Value],
    presets: Mapping[str, State],
    about: tuple[str, ...],
    levels: Sequence[str],
    queries: Sequence[str],
) -> Sheet:
    return Sheet(
        name="topdown",
        title="topdown.title",
        about=about,
        inputs=tuple(_inputs(published, tuple(presets), levels, queries)),
        compute=partial(compute, levels=levels, queries=queries),
        script=("algorithms.topdown.explorer", "explorer.js"),
        formulas="algorithms.topdown.explorer.formulas:cells",
        settings=tuple(f"{ALL}/{name}" for name in ("privacy", "budget", "relation", "delta")),
        tables=(_table(levels, queries),),
        charts=_charts(levels),
        totals=totals("topdown", ("replaced_", "added_")),
        presets=presets,
        data={
            "levels": [*levels],
            "queries": [*queries],
            "steps": {f"{step:02}": step for step in STEPS} | {"now": 20},
        },
    )


def compute(
    state: State, levels: Sequence[str] = tuple(PLACES.values()), queries: Sequence[str] = PERSON_QUERIES
) -> dict[str, Result]:
    """Return every number of a sheet with these levels and queries, by their keys."""
    given: dict[str, Any] = dict(state)
    kind, relation = given[f"{ALL}/privacy"], given[f"{ALL}/relation"]
    promise: Claim = KINDS[kind](given[f"{ALL}/budget"], relation)
    by_level, by_query = _shares(given, levels, queries)
    results: dict[str, Result] = {
        f"topdown/all/{level}/share": float(by_level[level]) if level in by_level else None for level in levels
    }
    for level in levels:
        for query in queries:
            place = f"topdown/{query}/{level}"
            results |= dict.fromkeys(f"{place}/{name}" for name in QUANTITIES)
            share = by_query.get(level, {}).get(query)
            if share:
                share *= by_level[level]
                results |= {f"{place}/share": float(share), f"{place}/budget": float(Fraction(promise.budget) * share)}
                law = _law(promise, share)
                if law is not None:
                    results |= {f"{place}/sigma": _sigma(law), f"{place}/margin": exact_margin_of_error(law)}
    budget = Budget(promise, [1], [{"total": 1}])
    claims = {"replaced_": budget.under("replace_one"), "added_": budget.under("add_remove")}
    results |= _curve(promise, given[CURVE], by_level, by_query)
    return results | promised("topdown", claims, given[f"{ALL}/delta"])


def _shares(
    given: dict[str, Any], levels: Sequence[str], queries: Sequence[str]
) -> tuple[dict[str, Fraction], dict[str, dict[str, Fraction]]]:
    """Return the shares of the levels and of their queries: parts over their sum. What has no query has no share."""
    parts = {level: given[f"topdown/all/{level}/parts"] for level in levels}
    by_level = {
        level: {query: given[f"topdown/{query}/{level}/parts"] for query in queries} for level in levels if parts[level]
    }
    by_level = {level: asked for level, asked in by_level.items() if any(asked.values())}
    shares = {level: Fraction(parts[level], sum(parts[other] for other in by_level)) for level in by_level}
    return shares, {
        level: {query: Fraction(part, sum(asked.values())) for query, part in asked.items()}
        for level, asked in by_level.items()
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
    query, level = row.split("/")
    share = levels.get(level, Fraction()) * queries.get(level, {}).get(query, Fraction())
    results: dict[str, Result] = {}
    for step in (*STEPS, 20):
        name = "now" if f"topdown/curve/{step:02}/margin" in results else f"{step:02}"
        budget = promise.budget * step / 20
        law = _law(type(promise)(budget, promise.relation), share) if share else None
        results[f"topdown/curve/{name}/budget"] = None if law is None else budget
        results[f"topdown/curve/{name}/margin"] = None if law is None else exact_margin_of_error(law)
    return results


def _state_of(settings: Preset, places: Mapping[str, str], queries: Mapping[str, str], row: str) -> dict[str, Value]:
    """Return settings as a state, shares as whole parts, by the keys of levels and queries; a row is drawn."""
    state: dict[str, Value] = {f"{ALL}/preset": settings.name, CURVE: row}
    if settings.promise is not None:
        state |= {
            f"{ALL}/privacy": "zcdp" if isinstance(settings.promise, ZCDP) else "puredp",
            f"{ALL}/budget": settings.promise.budget,
            f"{ALL}/relation": settings.promise.relation,
        }
    levels = _parts(settings.levels or dict.fromkeys(places, Fraction(1, len(places))))
    for level, place in places.items():
        parts = _parts(settings.queries_at(level) if level in levels else {})
        state[f"topdown/all/{place}/parts"] = levels.get(level, 0)
        state |= {f"topdown/{key}/{place}/parts": parts.get(query, 0) for query, key in queries.items()}
    return state


def _parts(shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Return shares as parts of their common denominator."""
    common = math.lcm(*(share.denominator for share in shares.values()))
    return {name: int(share * common) for name, share in shares.items()}


def _inputs(
    published: dict[str, Value], names: tuple[str, ...], levels: Sequence[str], queries: Sequence[str]
) -> Iterator[Input]:
    def choice(name: str, *choices: str, key: str = "") -> Input:
        key = key or f"{ALL}/{name}"
        return Input(
            key=key, kind="choice", value=published.get(key, choices[0]), choices=choices, label=f"topdown.{name}"
        )

    yield choice("preset", *names)
    yield choice("privacy", *KINDS)
    budget, delta = f"{ALL}/budget", f"{ALL}/delta"
    yield Input(key=budget, kind="number", value=published[budget], least=1e-3, most=1e6, label="topdown.all")
    yield choice("relation", *RELATIONS)
    yield Input(key=delta, kind="number", value=1e-10, least=1e-30, most=0.1, label="topdown.delta")
    keys = [f"topdown/all/{level}/parts" for level in levels]
    keys += [f"topdown/{query}/{level}/parts" for level in levels for query in queries]
    most = max(9999, *(int(str(published[key])) for key in keys))
    for key in keys:
        yield Input(key=key, kind="integer", value=published[key], least=0, most=most, label="topdown.parts")
    rows = [f"{query}/{level}" for level in levels for query in queries]
    yield Input(key=CURVE, kind="choice", value=published[CURVE], choices=tuple(rows), label="topdown.row")


def _table(levels: Sequence[str], queries: Sequence[str]) -> Table:
    columns = (
        Column(quantity="parts", label="topdown.parts", entry=True),
        Column(quantity="share", label="topdown.share", shown="share"),
        Column(quantity="budget", label="topdown.budget", shown="budget"),
        Column(quantity="sigma", label="topdown.sigma"),
        Column(quantity="margin", label="topdown.margin", shown="whole"),
    )
    groups = tuple(
        Group(
            label=f"topdown.{level}",
            rows=tuple(Row(place=f"topdown/{query}/{level}", label=f"topdown.{query}") for query in queries),
            inputs=(f"topdown/all/{level}/parts",),
            results=(Total(key=f"topdown/all/{level}/share", label="topdown.share", shown="share"),),
            folded=True,
        )
        for level in levels
    )
    return Table(label="topdown.table", columns=columns, groups=groups)


def _charts(levels: Sequence[str]) -> tuple[Chart, ...]:
    bars = tuple((f"topdown.{level}", f"topdown/all/{level}/share") for level in levels)
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
