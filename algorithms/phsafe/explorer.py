"""PHSafe's sheet of the explorer: levels, thresholds, margins or budgets of the nine queries, from Table 10 on."""

from __future__ import annotations

from functools import partial
from typing import Any

from algorithms.phsafe.budget import CLAIMS, PRESETS, Config, Settings, read_config
from algorithms.phsafe.explore import Z_PRODUCTION, exact_budget_for, explore, rho_for
from algorithms.phsafe.ledger import ledger
from algorithms.phsafe.schema import PUERTO_RICO, STATES
from algorithms.phsafe.tables import QUERIES
from algorithms.phsafe.tabulation.sizes import Sizes
from algorithms.tables.accountant import conversions
from audit.explorer.sheet import Chart, Column, Group, Input, Result, Row, Sheet, Shown, State, Table, Total, Value

__all__ = ["sheet", "state_of"]

BUDGETS = {"zcdp": "rho", "puredp": "epsilon"}
SETTINGS = {name: f"phsafe/all/all/{name}" for name in ("privacy", "delta", "states")}
PRESET, CURVE = "phsafe/all/all/preset", "phsafe/curve/all/row"
STEPS = (8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 30, 33, 36, 40, 45, 50)
"""Margins of the curve, in twentieths of the current one."""
TARGETS = {  # margins of Table 10 from which its budgets were computed
    "persons": {"usa": 500, "state_*": 200, "state_H,I": 200, "state_A-G": 68},
    "children": {"usa": 500, "state_*": 200, "state_H,I": 200, "state_A-G": 20},
}
CHILDREN = ("PH3", "PH6")
LARGEST = 10**9  # margin, in people
BESIDE: dict[str, Shown] = {"share": "share", "left_out": "whole", "left_out_share": "share"}
PLACES = tuple((table, level) for table, query in QUERIES.items() for level in query.levels)


def sheet(sizes: Sizes | None = None) -> Sheet:
    """Return the sheet; it starts from Table 10, the production settings of the 2020 Census.

    With `sizes` of households at hand, it says how many people the thresholds leave out, and is confidential.
    """
    us, pr = (state_of(name) for name in PRESETS)
    return Sheet(
        name="phsafe",
        title="phsafe.title",
        about=("phsafe.about.1", "phsafe.about.2"),
        inputs=tuple(_inputs(us)),
        compute=partial(compute, sizes=sizes),
        script=("algorithms.phsafe", "explorer.js"),
        formulas="algorithms.workbook.phsafe:cells",
        settings=tuple(SETTINGS.values()),
        tables=(_table(),),
        charts=_charts(),
        totals=_totals(),
        presets={"us": {}, "pr": {PRESET: "pr"} | {key: value for key, value in pr.items() if value != us[key]}},
        file="config.json",
        data={
            "tables": {name: [*query.levels] for name, query in QUERIES.items()},
            "truncated": [name for name, query in QUERIES.items() if query.truncated],
            "states": STATES,
            "steps": {f"{step:02}": step for step in STEPS},
            "sizes": {table: [*homes.items()] for table, homes in (sizes or {}).items()},
        },
        confidential=sizes is not None,
    )


def state_of(config: Settings) -> dict[str, Value]:
    """Return the state of the sheet that settings of PHSafe are."""
    config = read_config(config)
    kind = BUDGETS[config.privacy_definition]
    state: dict[str, Value] = {
        SETTINGS["privacy"]: config.privacy_definition,
        SETTINGS["states"]: " ".join(config.states),
    }
    for table, tau in config.tau.items():
        state[f"phsafe/{table}/all/tau"] = tau
    for table, level in PLACES:
        budget = config.budget(table, level)
        state[f"phsafe/{table}/{level}/on"] = budget > 0
        state |= {f"phsafe/{table}/{level}/{name}": None for name in BUDGETS.values()}
        if budget:
            state[f"phsafe/{table}/{level}/{kind}"] = budget
    return state


def compute(state: State, sizes: Sizes | None = None) -> dict[str, Result]:
    """Return every number of the sheet; `sizes` are of households at hand, if there are any."""
    kind = str(state[SETTINGS["privacy"]])
    budgets = {table: dict.fromkeys(query.levels, 0.0) for table, query in QUERIES.items()}
    tau: dict[str, Any] = {name: state[f"phsafe/{name}/all/tau"] for name, query in QUERIES.items() if query.truncated}
    for table, level in PLACES:
        if state[f"phsafe/{table}/{level}/on"]:
            budgets[table][level] = _budget(state, kind, table, level, QUERIES[table].stability(tau.get(table)))
    results: dict[str, Result] = {}
    for table, threshold in tau.items():
        homes = (sizes or {}).get(table)
        left = None if homes is None else sum(max(people - threshold, 0) * number for people, number in homes.items())
        results[f"phsafe/{table}/all/left_out"] = left
        whole = homes and sum(people * number for people, number in homes.items())
        results[f"phsafe/{table}/all/left_out_share"] = left / whole if whole and left is not None else None
    for table, level in PLACES:
        results |= dict.fromkeys(_keys(table, level))
    if not any(budget for levels in budgets.values() for budget in levels.values()):
        return results | dict.fromkeys(_curve()) | _spent({}, 0.0, kind, float(str(state[SETTINGS["delta"]])))
    config = Config(budgets, tau, STATES, privacy_definition=kind)
    for table, level, budget, _, sigma, margin, covered, exact in explore(config).rows():
        shares = (budget, budget / config.total, sigma, margin, covered, exact)
        quantities = (BUDGETS[kind], "share", "sigma", "margin", "coverage", "exact")
        results |= {f"phsafe/{table}/{level}/{name}": number for name, number in zip(quantities, shares, strict=True)}
    spent = {table: sum(levels.values()) for table, levels in config.privacy_budget.items()}
    results |= _curve_of(state, config, results)
    return results | _spent(spent, config.total, kind, float(str(state[SETTINGS["delta"]])), config)


def _budget(state: State, kind: str, table: str, level: str, stability: int) -> float:
    """Return the budget that a reader set, or else what the margin needs."""
    given: Any = state[f"phsafe/{table}/{level}/{BUDGETS[kind]}"]
    if given is not None:
        return float(given)
    margin: Any = state[f"phsafe/{table}/{level}/margin"]
    return _needed(margin, stability, kind)


def _needed(margin: float, stability: int, kind: str) -> float:
    if kind == "zcdp":
        return rho_for(margin, stability, z=Z_PRODUCTION)
    return exact_budget_for(margin, stability, privacy_definition=kind)


def _keys(table: str, level: str) -> list[str]:
    names = (*BUDGETS.values(), "share", "sigma", "margin", "coverage", "exact")
    return [f"phsafe/{table}/{level}/{name}" for name in names]


def _spent(
    spent: dict[str, float], total: float, kind: str, delta: float, config: Config | None = None
) -> dict[str, Result]:
    """Return what the queries spend together, and the promise as epsilon at delta."""
    results: dict[str, Result] = {}
    for table in QUERIES:
        part = spent.get(table, 0.0)
        results[f"phsafe/{table}/all/share"] = part / total if total else None
        for name, budget in BUDGETS.items():
            results[f"phsafe/{table}/all/{budget}"] = part if name == kind else None
    for name, budget in BUDGETS.items():
        results[f"phsafe/total/all/{budget}"] = total if name == kind else None
        results[f"phsafe/total/all/bounded_{budget}"] = 2 * total if name == kind else None
    for relation in ("unbounded", "bounded"):
        ways = dict.fromkeys(("simple", "tight", "gaussian"))
        if config is None:
            found = conversions(CLAIMS[kind](0.0), delta)
        else:
            found = conversions(getattr(ledger(config, delta), relation), delta)
        ways |= {way.lower(): epsilon for way, epsilon in found.items()}
        prefix = "" if relation == "unbounded" else "bounded_"
        results |= {f"phsafe/total/all/{prefix}epsilon_{way}": epsilon for way, epsilon in ways.items()}
    return results


def _curve() -> list[str]:
    names = [f"phsafe/curve/{step:02}/{name}" for step in STEPS for name in ("margin", "budget")]
    return [*names, "phsafe/curve/now/margin", "phsafe/curve/now/budget"]


def _curve_of(state: State, config: Config, results: dict[str, Result]) -> dict[str, Result]:
    """Return budgets of one level for margins around the current one."""
    place, kind = str(state[CURVE]), config.privacy_definition
    now: Any = results[f"phsafe/{place}/margin"]
    if now is None:
        return dict.fromkeys(_curve())
    table = place.split("/")[0]
    curve: dict[str, Result] = {}
    for step in STEPS:
        margin = min(max(1, now * step // 20), LARGEST)
        curve[f"phsafe/curve/{step:02}/margin"] = margin
        curve[f"phsafe/curve/{step:02}/budget"] = _needed(margin, config.stability(table), kind)
    curve["phsafe/curve/now/margin"] = now
    curve["phsafe/curve/now/budget"] = results[f"phsafe/{place}/{BUDGETS[kind]}"]
    return curve


def _inputs(us: dict[str, Value]) -> list[Input]:
    budgets = tuple(f"phsafe/{table}/{level}/{name}" for table, level in PLACES for name in BUDGETS.values())
    inputs = [
        Input(key=PRESET, kind="choice", value=PRESETS[0], choices=PRESETS, label="phsafe.preset"),
        Input(
            key=SETTINGS["privacy"],
            kind="choice",
            value="zcdp",
            choices=tuple(BUDGETS),
            label="phsafe.privacy",
            clears=budgets,
        ),
        Input(key=SETTINGS["delta"], kind="number", value=1e-10, least=1e-30, most=0.1, label="phsafe.delta"),
        Input(
            key=SETTINGS["states"],
            kind="codes",
            value=us[SETTINGS["states"]],
            choices=(*STATES, PUERTO_RICO),
            label="phsafe.states",
        ),
    ]
    for table, query in QUERIES.items():
        if query.truncated:
            key = f"phsafe/{table}/all/tau"
            inputs.append(
                Input(
                    key=key, kind="integer", value=us[key], least=1, most=99_999, label="phsafe.tau", unit="page.people"
                )
            )
        for level in query.levels:
            place = f"phsafe/{table}/{level}"
            own = (f"{place}/rho", f"{place}/epsilon")
            targets = TARGETS["children" if table in CHILDREN else "persons"]
            target = targets["usa" if level.startswith("usa") else level]
            inputs += [
                Input(key=f"{place}/on", kind="flag", value=us[f"{place}/on"], label="phsafe.on"),
                Input(
                    key=f"{place}/margin",
                    kind="integer",
                    value=target,
                    least=1,
                    most=LARGEST,
                    label="phsafe.wanted",
                    clears=own,
                ),
                Input(
                    key=own[0],
                    kind="number",
                    value=us[own[0]],
                    least=1e-13,
                    most=1e9,
                    label="phsafe.rho",
                    optional=True,
                ),
                Input(
                    key=own[1], kind="number", value=None, least=1e-6, most=1e6, label="phsafe.epsilon", optional=True
                ),
            ]
    places = tuple(f"{table}/{level}" for table, level in PLACES)
    inputs.append(Input(key=CURVE, kind="choice", value="PH3/state_A-G", choices=places, label="phsafe.row"))
    return inputs


def _table() -> Table:
    columns = (
        Column(quantity="on", label="phsafe.on", entry=True),
        Column(quantity="margin", label="phsafe.wanted", entry=True),
        Column(quantity="rho", label="phsafe.rho", shown="budget", entry=True),
        Column(quantity="epsilon", label="phsafe.epsilon", shown="budget", entry=True),
        Column(quantity="share", label="phsafe.share", shown="share"),
        Column(quantity="sigma", label="phsafe.sigma"),
        Column(quantity="margin", label="phsafe.margin", shown="whole"),
        Column(quantity="coverage", label="phsafe.coverage", shown="share"),
        Column(quantity="exact", label="phsafe.exact", shown="whole"),
    )
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
    return Table(label="phsafe.table", columns=columns, groups=groups)


def _charts() -> tuple[Chart, ...]:
    bars = tuple(
        (f"phsafe.{table}", *(f"phsafe/{table}/all/{name}" for name in ("share", *BUDGETS.values())))
        for table in QUERIES
    )
    curve = tuple((f"phsafe/curve/{step:02}/margin", f"phsafe/curve/{step:02}/budget") for step in STEPS)
    return (
        Chart(
            kind="bars",
            label="phsafe.bars",
            points=bars,
            axes=(("phsafe.share", "share"), ("phsafe.rho", "budget"), ("phsafe.epsilon", "budget")),
        ),
        Chart(
            kind="curve",
            label="phsafe.curve",
            points=curve,
            axes=(("phsafe.wanted", "whole"), ("phsafe.budget", "budget")),
            current=("phsafe/curve/now/margin", "phsafe/curve/now/budget"),
            inputs=(CURVE,),
        ),
    )


def _totals() -> tuple[Total, ...]:
    names = ("rho", "bounded_rho", "epsilon", "bounded_epsilon", "epsilon_tight", "bounded_epsilon_tight")
    more = ("epsilon_simple", "bounded_epsilon_simple", "epsilon_gaussian", "bounded_epsilon_gaussian")
    return tuple(
        Total(
            key=f"phsafe/total/all/{name}",
            label=f"phsafe.total.{name}",
            shown="budget" if name in names[:4] else "epsilon",
            main=name in names,
        )
        for name in (*names, *more)
    )
