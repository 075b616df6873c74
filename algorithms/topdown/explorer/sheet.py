"""TopDown's sheet: the division of the budget over levels and queries, and the accuracy of each query."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian
from algorithms.noise.budgets import exact_budget_for, margins_around
from algorithms.noise.margins import exact_margin_of_error
from algorithms.release.sheet import QUANTITIES as OF_TOTALS
from algorithms.release.sheet import TENTH, PlaceAccuracy, accuracy, accuracy_table, promised, totals, totals_input
from algorithms.topdown.budget import Budget, Claim, Law
from algorithms.topdown.presets import PERSON_QUERIES, PRESETS, Preset, preset
from audit.claims import ZCDP, PureDP, Relation
from audit.explorer.sheet import Chart, Column, Group, Input, Result, Row, Sheet, State, Table, Total, Value

__all__ = ["CURVE", "MARGIN", "PAYS", "sheet", "sheet_of"]

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
ALL, CURVE, NOW = "topdown/all/all", "topdown/curve/all/row", "topdown/curve/now"
MARGIN, PAYS = f"{ALL}/margin", f"{ALL}/pays"  # requested for the drawn query; source of its budget
WIDEST = 1e10  # largest sigma in the sheet; margins of much larger noise are not exact in float64
POINTS = tuple(f"{place:02}" for place in range(len(margins_around(0))))
QUANTITIES = ("share", "budget", "sigma", "margin", *OF_TOTALS)


def sheet() -> Sheet:
    """Return the sheet; its default settings are those of the persons in the 2020 redistricting data."""
    queries = {query: query for query in PERSON_QUERIES}
    published, *others = (_state_of(PRESETS[name], PLACES, queries, DRAWN[name]) for name in NAMES)
    presets: dict[str, State] = {NAMES[0]: {}}
    for name, state in zip(NAMES[1:], others, strict=True):
        presets[name] = {key: value for key, value in state.items() if value != published[key]}
    return _sheet(published, presets, ("topdown.about.1", "topdown.about.2"), [*PLACES.values()], PERSON_QUERIES)


def sheet_of(settings: Preset, areas: Sequence[str], *, epsilon: float | None, rho: float | None) -> Sheet:
    """Return the sheet of the user's settings; their names of levels and queries are the same in every language."""
    names = (settings.levels_of(areas) if areas else None) or list(settings.levels)
    if not names:
        raise ValueError(f"--areas is needed: {settings.name} names no levels")
    budget = preset(settings, Hierarchy.regular(1, len(names) - 1), levels=names, epsilon=epsilon, rho=rho).budget
    whole = replace(settings, promise=budget.promise)
    names_of_queries = dict.fromkeys(query for level in names for query in settings.queries_at(level))
    places = {level: f"level{place}" for place, level in enumerate(names)}
    queries = {query: f"query{place}" for place, query in enumerate(names_of_queries)}
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
        answer=_answer,
        settings=tuple(f"{ALL}/{name}" for name in ("privacy", "budget", "relation", "delta")),
        tables=_tables(levels, queries),
        charts=_charts(levels),
        totals=(
            *totals("topdown", ("replaced_", "added_")),
            Total(key=f"{ALL}/needed", label="topdown.needed", shown="budget"),
            Total(key=f"{ALL}/refused", label="topdown.refused", shown="text", main=True),
        ),
        presets=presets,
        data={"levels": [*levels], "queries": [*queries], "points": POINTS},
    )


def _answer(given: Mapping[str, Any], results: Mapping[str, Result], words: Mapping[str, str]) -> str:
    if given[MARGIN] is None:
        return ""
    query, level = (words[f"topdown.{part}"] for part in given[CURVE].split("/"))
    before, own = given[f"{ALL}/budget"], results[f"topdown/{given[CURVE]}/share"]
    total = f"total {'rho' if given[f'{ALL}/privacy'] == 'zcdp' else 'epsilon'} of"
    if refused := results[f"{ALL}/refused"]:
        needs = f"is out of reach: {words[str(refused)]}"
    elif given[PAYS] == "total":
        needs = f"needs a {total} {results[f'{ALL}/budget']:.4g}, instead of the {before:.4g} of the settings."
    else:
        needs = f"needs {own:.2%} of the {total} {before:.4g}."
    return f"{level}, {query}: a margin of {given[MARGIN]:,} {needs}"


def compute(
    state: State, levels: Sequence[str] = tuple(PLACES.values()), queries: Sequence[str] = PERSON_QUERIES
) -> dict[str, Result]:
    """Return every number of a sheet with these levels and queries, by their keys."""
    given: dict[str, Any] = dict(state)
    kind, relation, row = given[f"{ALL}/privacy"], given[f"{ALL}/relation"], given[CURVE]
    shares = _shares(given, levels, queries)
    own = shares.get(row, Fraction())
    stability = {"add_remove": 1.0, "replace_one": math.sqrt(2) if kind == "zcdp" else 2.0}[relation]

    def needed(margin: int) -> float:
        return exact_budget_for(margin, stability, privacy_definition=kind)

    total, wanted = given[f"{ALL}/budget"], given[MARGIN]
    results: dict[str, Result] = {f"{ALL}/needed": needed(wanted) if wanted and own else None, f"{ALL}/refused": None}
    if wanted and own and given[PAYS] == "total":
        total = needed(wanted) / float(own)
    elif wanted and own < 1 and (part := Fraction(needed(wanted)) / Fraction(total)) < 1 and own:
        rest = (1 - part) / (1 - own)
        shares = {place: part if place == row else share * rest for place, share in shares.items()}
    elif wanted:
        results[f"{ALL}/refused"] = "topdown.refused.share" if own else "topdown.refused.measured"
    promise: Claim = KINDS[kind](total, relation)
    results[f"{ALL}/budget"] = total
    noisy: dict[str, PlaceAccuracy] = {}
    for level in levels:
        part = sum((shares.get(f"{query}/{level}", Fraction()) for query in queries), Fraction())
        results[f"topdown/all/{level}/share"] = float(part) if part else None
        for query in queries:
            place = f"topdown/{query}/{level}"
            results |= dict.fromkeys(f"{place}/{name}" for name in QUANTITIES)
            share = shares.get(f"{query}/{level}")
            if share:
                results |= {f"{place}/share": float(share), f"{place}/budget": float(Fraction(promise.budget) * share)}
                law = _law(promise, share)
                if law is not None:
                    exact = exact_margin_of_error(law)
                    results |= {f"{place}/sigma": _sigma(law), f"{place}/margin": exact}
                    noisy[place] = PlaceAccuracy(law, exact, total * float(share), stability, given[f"{place}/totals"])
    results |= accuracy(kind, noisy)
    now: Any = results[f"topdown/{row}/margin"]
    results[MARGIN] = None if wanted and given[PAYS] == "share" else now
    results |= {f"{NOW}/margin": now, f"{NOW}/budget": None if now is None else total}
    for at, margin in enumerate(margins_around(now or 0)):  # and the least total budget that gives it
        point = f"topdown/curve/{at:02}"
        results[f"{point}/margin"] = None if now is None else margin
        results[f"{point}/budget"] = None if now is None else needed(margin) / float(shares[row])
    budget = Budget(promise, [1], [{"total": 1}])
    claims = {"replaced_": budget.under("replace_one"), "added_": budget.under("add_remove")}
    return results | promised("topdown", claims, given[f"{ALL}/delta"])


def _shares(given: dict[str, Any], levels: Sequence[str], queries: Sequence[str]) -> dict[str, Fraction]:
    """Return the shares by query and level: parts over their sums; a level without queries has no share."""
    parts_of_queries = {level: sum(given[f"topdown/{query}/{level}/parts"] for query in queries) for level in levels}
    parts = {level: given[f"topdown/all/{level}/parts"] for level in levels if parts_of_queries[level]}
    return {
        f"{query}/{level}": Fraction(part, sum(parts.values())) * Fraction(own, parts_of_queries[level])
        for level, part in parts.items()
        for query in queries
        if part and (own := given[f"topdown/{query}/{level}/parts"])
    }


def _law(promise: Claim, share: Fraction) -> Law | None:
    """Return the noise of a query with a share of the budget, or None if it would be too large."""
    try:
        law = Budget(promise, [1], [{"total": 1}]).law(share, "total", 0)
    except ValueError:
        return None
    return law if _sigma(law) <= WIDEST else None


def _sigma(law: Law) -> float:
    return law.scale if isinstance(law, DiscreteGaussian) else math.sqrt(law.variance)


def _state_of(settings: Preset, places: Mapping[str, str], queries: Mapping[str, str], row: str) -> dict[str, Value]:
    """Return settings as a state of the sheet, with shares as whole parts, by keys; `row` is the drawn query."""
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
    number: dict[str, Any] = {"kind": "number", "value": published[budget], "least": 1e-3, "most": 1e6}
    yield Input(key=budget, label="topdown.all", clears=(MARGIN,), **number)
    yield Input(key=MARGIN, kind="integer", value=None, least=1, most=10**9, optional=True, label="topdown.wanted")
    yield choice("pays", "total", "share")
    yield choice("relation", *RELATIONS)
    yield Input(key=delta, kind="number", value=1e-10, least=1e-30, most=0.1, label="total.delta")
    keys = [f"topdown/all/{level}/parts" for level in levels]
    keys += [f"topdown/{query}/{level}/parts" for level in levels for query in queries]
    most = max(999_999, *(int(str(published[key])) for key in keys))
    for key in keys:
        yield Input(key=key, kind="integer", value=published[key], least=0, most=most, label="topdown.parts")
    rows = [f"{query}/{level}" for level in levels for query in queries]
    yield from (totals_input(f"topdown/{row}") for row in rows)
    yield Input(key=CURVE, kind="choice", value=published[CURVE], choices=tuple(rows), label="topdown.row")


def _tables(levels: Sequence[str], queries: Sequence[str]) -> tuple[Table, Table]:
    columns = (
        Column(quantity="parts", label="topdown.parts", entry=True),
        Column(quantity="share", label="topdown.share", shown="share"),
        Column(quantity="budget", label="topdown.budget", shown="budget"),
        Column(quantity="sigma", label="accuracy.sigma"),
        Column(quantity="margin", label="topdown.margin", shown="whole", decides=True),
        TENTH,
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
    own = accuracy_table({group.label: group.rows for group in groups})
    names: dict[str, Any] = {"names": "page.level", "rows": "page.query"}
    return Table(label="topdown.table", columns=columns, groups=groups, **names), replace(own, **names)


def _charts(levels: Sequence[str]) -> tuple[Chart, ...]:
    bars = tuple((f"topdown.{level}", f"topdown/all/{level}/share") for level in levels)
    curve = tuple((f"topdown/curve/{point}/budget", f"topdown/curve/{point}/margin") for point in POINTS)
    return (
        Chart(kind="bars", label="topdown.bars", points=bars, axes=(("topdown.share", "share"),)),
        Chart(
            kind="curve",
            label="topdown.curve",
            points=curve,
            axes=(("topdown.all", "budget"), ("topdown.margin", "whole")),
            current=(f"{NOW}/budget", f"{NOW}/margin"),
            inputs=(CURVE, MARGIN, PAYS),
        ),
    )
