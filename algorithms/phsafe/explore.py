"""Margins of error of PHSafe's noise for a budget, the budget for a margin, and PHSafe's sheet of the explorer.

The margin of error is the half width of the 90% interval: the least k with ``P(|noise| <= k) >= 0.9``. The paper
(Sexton et al., 2024, sections 7.1 and 7.3) takes it from the normal law, as the whole part of ``z * sigma``. Its table
10, the production budgets, was computed with `Z_PRODUCTION`; its text and corollary 2 print 1.64, which is too small:
above a sigma of 104 the whole part of 1.64 sigma never covers 90% of the discrete Gaussian.

Truncation adds an error that depends on the data; margins do not include it. The sheet starts from Table 10.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from algorithms.noise.budgets import exact_budget_for
from algorithms.noise.margins import checked_margin, coverage, exact_margin_of_error
from algorithms.phsafe.budget import CLAIMS, PRESETS, Config, Settings, noise_law, noise_parameters, read_config
from algorithms.phsafe.schema import PUERTO_RICO, STATES
from algorithms.phsafe.tables import QUERIES, TAU
from algorithms.phsafe.tabulation.tabulate import Sizes
from algorithms.phsafe.workbook import build_workbook
from algorithms.release.frames import Frame
from algorithms.release.sheet import (
    QUANTITIES,
    TENTH,
    PlaceAccuracy,
    accuracy,
    accuracy_table,
    promised,
    totals,
    totals_input,
)
from audit.explorer.sheet import Chart, Column, Group, Input, Result, Row, Sheet, Shown, State, Table, Total, Value

__all__ = ["Z_PRODUCTION", "choose", "compute", "explore", "rho_for", "sheet", "state_of"]

Z_PRODUCTION = 1.645


def rho_for(margin: float, stability: int, *, z: float = Z_PRODUCTION) -> float:
    """Return rho = (z^2 / 2) stability^2 / margin^2, with `margin` rounded down (corollary 2: z^2 / 2 = 1.3448)."""
    return (z * stability / math.floor(checked_margin(margin, least=1))) ** 2 / 2


def choose(
    config: Settings, *, margins: Mapping[str, Mapping[str, float]] | None = None, tau: Mapping[str, int] | None = None
) -> Config:
    """Change thresholds and, if `margins` are given, budgets: only these levels are released, with these margins."""
    config = read_config(config)
    config = replace(config, tau={**config.tau, **(tau or {})})
    if margins is None:
        return config
    chosen = {table: dict.fromkeys(query.levels, 0.0) for table, query in QUERIES.items()}
    for table, levels in margins.items():
        for level, margin in levels.items():
            config.budget(table, level)  # refuses unknown queries and levels
            chosen[table][level] = _needed(margin, config.stability(table), config.privacy_definition)
    return replace(config, privacy_budget=chosen)


def explore(config: Settings) -> Frame:
    """Tabulate the accuracy of noisy counts, without truncation, by query and level; ``MARGIN`` uses `Z_PRODUCTION`."""
    config = read_config(config)
    rows = []
    for table, level, budget, stability, variance, _ in noise_parameters(config).rows():
        law, sigma = noise_law(config, table, level), math.sqrt(variance)
        margin = math.floor(Z_PRODUCTION * sigma * (1 + 1e-12))  # rounding errors may be below a whole number
        accuracy = (sigma, margin, coverage(law, margin), exact_margin_of_error(law))
        rows.append((table, level, budget, stability, *accuracy))
    names = ("TABLE", "LEVEL", "BUDGET", "STABILITY", "SIGMA", "MARGIN", "COVERAGE", "EXACT_MARGIN")
    return Frame.from_rows(names, rows)


# The sheet of the explorer

BUDGETS = {"zcdp": "rho", "puredp": "epsilon"}
SETTINGS = {name: f"phsafe/all/all/{name}" for name in ("privacy", "delta", "states")}
PRESET, CURVE, NOW = "phsafe/all/all/preset", "phsafe/curve/all/row", "phsafe/curve/now"
STEPS = (8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 30, 33, 36, 40, 45, 50)
"""Margins of the curve, in twentieths of the current margin."""
TARGETS = {"usa": 500, "state_*": 200, "state_H,I": 200, "state_A-G": 68}
"""Margins of Table 10 from which its budgets were computed; 20 for children's tables in the states' groups A-G."""
CHILDREN = ("PH3", "PH6")
LARGEST = 10**9  # largest margin, in people
BESIDE: dict[str, Shown] = {"share": "share", "left_out": "whole", "left_out_share": "share"}
PLACES = tuple((table, level) for table, query in QUERIES.items() for level in query.levels)
NOISE = ("share", "sigma", "margin", "coverage", "exact")
POINTS = tuple((f"phsafe/curve/{step}/margin", f"phsafe/curve/{step}/budget") for step in map("{:02}".format, STEPS))
COLUMNS = (
    Column(quantity="on", label="phsafe.on", entry=True),
    Column(quantity="margin", label="phsafe.wanted", entry=True),
    Column(quantity="rho", label="phsafe.rho", shown="budget", entry=True, decides=True),
    Column(quantity="epsilon", label="phsafe.epsilon", shown="budget", entry=True, decides=True),
    Column(quantity="share", label="phsafe.share", shown="share"),
    Column(quantity="sigma", label="accuracy.sigma"),
    Column(quantity="margin", label="phsafe.margin", shown="whole"),
    Column(quantity="coverage", label="phsafe.coverage", shown="share"),
    Column(quantity="exact", label="phsafe.exact", shown="whole", decides=True),
    TENTH,
)


def sheet(sizes: Sizes | None = None) -> Sheet:
    """Return the sheet, at Table 10; with household `sizes` it shows the persons cut off, and is confidential."""
    us, pr = (state_of(name) for name in PRESETS)
    return Sheet(
        name="phsafe",
        title="phsafe.title",
        about=("phsafe.about.1", "phsafe.about.2"),
        inputs=tuple(_inputs(us)),
        compute=partial(compute, sizes=sizes),
        script=("algorithms.phsafe", "explorer.js"),
        workbook=build_workbook,
        settings=tuple(SETTINGS.values()),
        tables=_tables(),
        charts=_charts(),
        totals=totals("phsafe", ("", "bounded_")),
        presets={"us": {}, "pr": {PRESET: "pr"} | {key: value for key, value in pr.items() if value != us[key]}},
        file="config.json",
        data={
            "tables": {name: [*query.levels] for name, query in QUERIES.items()},
            "truncated": list(TAU),
            "states": STATES,
            "steps": {f"{step:02}": step for step in STEPS},
            "sizes": {table: [*homes.items()] for table, homes in (sizes or {}).items()},
        },
        confidential=sizes is not None,
    )


def state_of(config: Settings) -> dict[str, Value]:
    """Return the state of the sheet for settings of PHSafe."""
    config = read_config(config)
    kind = BUDGETS[config.privacy_definition]
    state: dict[str, Value] = {f"phsafe/{table}/all/tau": tau for table, tau in config.tau.items()}
    state |= {SETTINGS["privacy"]: config.privacy_definition, SETTINGS["states"]: " ".join(config.states)}
    for table, level in PLACES:
        place, budget = f"phsafe/{table}/{level}", config.budget(table, level)
        state |= {f"{place}/on": budget > 0, **{f"{place}/{name}": None for name in BUDGETS.values()}}
        if budget:
            state[f"{place}/{kind}"] = budget
    return state


def compute(state: State, sizes: Sizes | None = None) -> dict[str, Result]:
    """Return every number of the sheet; `sizes` are those of the user's households, if given."""
    kind = str(state[SETTINGS["privacy"]])
    unit, own = BUDGETS[kind], str(state[CURVE])
    tau: dict[str, Any] = {table: state[f"phsafe/{table}/all/tau"] for table in TAU}
    stability = {table: query.stability(tau.get(table)) for table, query in QUERIES.items()}
    budgets = {table: dict.fromkeys(query.levels, 0.0) for table, query in QUERIES.items()}
    for table, level in PLACES:
        place = f"phsafe/{table}/{level}"
        if state[f"{place}/on"]:
            given: Any = state[f"{place}/{unit}"]
            margin: Any = state[f"{place}/margin"]
            budgets[table][level] = _needed(margin, stability[table], kind) if given is None else float(given)
    results = _left_out(tau, sizes or {})
    for table, level in PLACES:
        results |= {f"phsafe/{table}/{level}/{name}": None for name in (*BUDGETS.values(), *NOISE, *QUANTITIES)}
    results |= {key: None for point in (*POINTS, (f"{NOW}/margin", f"{NOW}/budget")) for key in point}
    total = 0.0
    if any(budget for levels in budgets.values() for budget in levels.values()):
        config = Config(budgets, tau, STATES, privacy_definition=kind)
        total, places = config.total, {}
        for table, level, budget, sensitivity, *noise in explore(config).rows():
            place = f"phsafe/{table}/{level}"
            numbers = zip((unit, *NOISE), (budget, budget / total, *noise), strict=True)
            results |= {f"{place}/{name}": number for name, number in numbers}
            law = noise_law(config, table, level)
            places[place] = PlaceAccuracy(law, noise[-1], budget, sensitivity, state[f"{place}/totals"])
        results |= accuracy(kind, places)
    now: Any = results[f"phsafe/{own}/margin"]
    if now is not None:  # budgets of one level for margins around the current one
        results |= {f"{NOW}/margin": now, f"{NOW}/budget": results[f"phsafe/{own}/{unit}"]}
        for step, (margin_key, budget_key) in zip(STEPS, POINTS, strict=True):
            results[margin_key] = margin = min(max(1, now * step // 20), LARGEST)
            results[budget_key] = _needed(margin, stability[own.split("/")[0]], kind)
    spent = {table: sum(levels.values()) for table, levels in budgets.items()}
    return results | _promise(spent, total, kind, float(str(state[SETTINGS["delta"]])))


def _needed(margin: float, stability: int, kind: str) -> float:
    if kind == "zcdp":
        return rho_for(margin, stability, z=Z_PRODUCTION)
    return exact_budget_for(margin, stability, privacy_definition=kind)


def _left_out(tau: Mapping[str, int], sizes: Sizes) -> dict[str, Result]:
    """Return the number and share of people of the user's households whom the thresholds leave out."""
    results: dict[str, Result] = {}
    for table, threshold in tau.items():
        homes = sizes.get(table)
        left = None if homes is None else sum(max(people - threshold, 0) * number for people, number in homes.items())
        people = homes and sum(people * number for people, number in homes.items())
        results[f"phsafe/{table}/all/left_out"] = left
        results[f"phsafe/{table}/all/left_out_share"] = left / people if people and left is not None else None
    return results


def _promise(spent: Mapping[str, float], total: float, kind: str, delta: float) -> dict[str, Result]:
    """Return the budget and share of each query, and the promise as epsilon at delta."""
    results: dict[str, Result] = {}
    for table, part in spent.items():
        results[f"phsafe/{table}/all/share"] = part / total if total else None
        results |= {f"phsafe/{table}/all/{name}": part if own == kind else None for own, name in BUDGETS.items()}
    claims = {"": CLAIMS[kind](total), "bounded_": CLAIMS[kind](2 * total)}
    return results | promised("phsafe", claims, delta)


def _inputs(us: dict[str, Value]) -> list[Input]:
    def number(key: str, label: str, least: float, most: float, **more: Any) -> Input:
        return Input(**{"kind": "number", "value": us.get(key)} | more, key=key, label=label, least=least, most=most)

    budgets = tuple(f"phsafe/{table}/{level}/{name}" for table, level in PLACES for name in BUDGETS.values())
    states, privacy = SETTINGS["states"], SETTINGS["privacy"]
    kinds, regions = tuple(BUDGETS), (*STATES, PUERTO_RICO)
    inputs = [
        Input(key=PRESET, kind="choice", value=PRESETS[0], choices=PRESETS, label="phsafe.preset"),
        Input(key=privacy, kind="choice", value="zcdp", choices=kinds, label="phsafe.privacy", clears=budgets),
        number(SETTINGS["delta"], "total.delta", 1e-30, 0.1, value=1e-10),
        Input(key=states, kind="codes", value=us[states], choices=regions, label="phsafe.states"),
    ]
    for table, query in QUERIES.items():
        if query.truncated:
            key = f"phsafe/{table}/all/tau"
            inputs.append(number(key, "phsafe.tau", 1, 99_999, kind="integer", unit="page.people"))
        targets = TARGETS | ({"state_A-G": 20} if table in CHILDREN else {})
        for level in query.levels:
            place, target = f"phsafe/{table}/{level}", targets["usa" if level.startswith("usa") else level]
            own = (f"{place}/rho", f"{place}/epsilon")
            wanted: dict[str, Any] = {"kind": "integer", "value": target, "clears": own}
            inputs += [
                Input(key=f"{place}/on", kind="flag", value=us[f"{place}/on"], label="phsafe.on"),
                number(f"{place}/margin", "phsafe.wanted", 1, LARGEST, **wanted),
                number(own[0], "phsafe.rho", 1e-13, 1e9, optional=True),
                number(own[1], "phsafe.epsilon", 1e-6, 1e6, optional=True),
                totals_input(place),
            ]
    places = tuple(f"{table}/{level}" for table, level in PLACES)
    return [*inputs, Input(key=CURVE, kind="choice", value="PH3/state_A-G", choices=places, label="phsafe.row")]


def _tables() -> tuple[Table, Table]:
    groups = tuple(
        Group(
            label=f"phsafe.{table}",
            rows=tuple(Row(place=f"phsafe/{table}/{level}", label=f"phsafe.{level}") for level in query.levels),
            inputs=(f"phsafe/{table}/all/tau",) if query.truncated else (),
            results=tuple(
                Total(key=f"phsafe/{table}/all/{name}", label=f"phsafe.{name}", shown=shown)
                for name, shown in BESIDE.items()
                if query.truncated or name == "share"
            ),
        )
        for table, query in QUERIES.items()
    )
    return (
        Table(label="phsafe.table", columns=COLUMNS, groups=groups),
        accuracy_table({group.label: group.rows for group in groups}),
    )


def _charts() -> tuple[Chart, ...]:
    shares: dict[str, Shown] = {"share": "share", "rho": "budget", "epsilon": "budget"}
    bars = tuple((f"phsafe.{table}", *(f"phsafe/{table}/all/{name}" for name in shares)) for table in QUERIES)
    axes = tuple((f"phsafe.{name}", shown) for name, shown in shares.items())
    price: dict[str, Any] = {"axes": (("phsafe.wanted", "whole"), ("phsafe.budget", "budget")), "inputs": (CURVE,)}
    now = (f"{NOW}/margin", f"{NOW}/budget")
    return (
        Chart(kind="bars", label="phsafe.bars", points=bars, axes=axes),
        Chart(kind="curve", label="phsafe.curve", points=POINTS, current=now, **price),
    )
